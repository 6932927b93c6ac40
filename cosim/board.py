"""A board's own design under Verilator, reached over the bytes of its serial line and nothing else."""

import ctypes
import json
import socket
from collections.abc import Callable
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from daedal.base.cache import cache_directory, keep_text
from daedal.base.handle import Handle
from daedal.base.process_resource import Owned
from daedal.cosim.builder.library import FLOAT_MODE, load_library, read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.hw.config.core import Config
from daedal.hw.verilog import core_verilog

SLICE_CYCLES = 1 << 16
"""Cycles in C++ at a stretch, so that an interrupt from the keyboard gets through and no socket overflows."""

SLACK_CYCLES = 20_000
"""Cycles without a byte after which an answer that should be there is given up; no access on a board takes as many."""

RECEIVE_BYTES = 4096

_SELF, _U64 = ctypes.c_void_p, ctypes.c_uint64
_FUNCTIONS = {
    "daedal_board_create": (_SELF, (ctypes.c_int, ctypes.c_double)),
    "daedal_board_destroy": (None, (_SELF,)),
    "daedal_board_run": (_U64, (_SELF, _U64, _U64, _U64)),
    "daedal_board_cycle": (_U64, (_SELF,)),
}


def generated_board(board: str, config: Config) -> tuple[str, dict[str, Any]]:
    """Verilog and description of a simulated board; kept in the cache, since generating them takes ten seconds."""
    from daedal.fpga.boards import find_board
    from daedal.fpga.soc.generator import generate

    found = find_board(board)
    clocks = f"{found.clock_hz} {found.core_hz}"
    digest = sha256(
        f"{board} {clocks} litex {metadata.version('litex')} litedram {metadata.version('litedram')}".encode()
    )
    digest.update(core_verilog(config).encode())
    trees = Path(__file__).resolve().parents[1]
    for source in sorted(path for tree in ("hw", "fpga") for path in (trees / tree).rglob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    key = digest.hexdigest()[:20]

    def make() -> str:
        made = generate(board, config, simulated=True, serial="pins")
        return json.dumps([made.verilog, made.description])

    verilog, description = json.loads(keep_text(cache_directory() / f"board-{key}.json", make))
    return verilog, description


def build_board(
    name: str, verilog: str, *, top: str, clock: str = "sys_clk", reset: str | None = "sys_rst",
    rx: str = "serial_rx", tx: str = "serial_tx",
) -> Path:  # fmt: skip
    """The shared library of a design with one clock and a serial line, with the loop around it."""
    pins = {"BOARD_CLOCK": clock, "BOARD_RX": rx, "BOARD_TX": tx} | ({"BOARD_RESET": reset} if reset else {})
    header = "#pragma once\n" + "".join(f"#define {macro} {port}\n" for macro, port in pins.items())
    folder = Path(__file__).parent
    files = read_sources(folder / "board_harness", "board.cpp") | read_sources(folder, FLOAT_MODE)
    files |= {"board_pins.h": header}
    return build_verilated(name, verilog, files, top=top)


def _unchanged(data: bytes) -> bytes:
    return data


class SimulatedLine(Handle):
    """The host's end of a verilated board's serial line: a socket, with the board clocked while the host waits.

    Time is the board's, so it does not matter how fast the simulation is.

    Parameters
    ----------
    library
        What :func:`build_board` made.
    clock_hz, baud
        The board's clock and the rate of its line.

    Attributes
    ----------
    up, down
        What happens to bytes on their way to and from the board: functions from bytes to bytes, for tests.
    """

    def __init__(self, library: Path, *, clock_hz: float, baud: int, name: str = "simulated board") -> None:
        self.name, self.byte_seconds, self.slack = name, 10 / baud, SLACK_CYCLES / clock_hz
        self.clock_hz = clock_hz
        self.up: Callable[[bytes], bytes] = _unchanged
        self.down: Callable[[bytes], bytes] = _unchanged
        self._owned = Owned("the simulated board")
        self._library = load_library(library)
        for function, (result, arguments) in _FUNCTIONS.items():
            found = getattr(self._library, function)
            found.restype, found.argtypes = result, arguments
        self._socket, self._far = socket.socketpair()
        self._socket.setblocking(False)
        self._came = bytearray()
        self._self: int | None = self._library.daedal_board_create(self._far.fileno(), clock_hz / baud)

    @property
    def cycles(self) -> int:
        """Cycles of the board's clock so far."""
        with self._owned.lock:
            count: int = self._library.daedal_board_cycle(self._handle())
        return count

    def send(self, data: bytes) -> None:
        """Put bytes on the line."""
        self._handle()
        data = self.up(data)
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                self._clock(SLICE_CYCLES, 1 << 30)

    def receive(self, size: int, seconds: float) -> bytes:
        """``size`` bytes, or those that came before so many simulated seconds went by without one."""
        idle, last = int(seconds * self.clock_hz), self.cycles
        while True:
            try:
                part = self.down(self._socket.recv(RECEIVE_BYTES))
            except BlockingIOError:
                part = b""
            self._came += part
            if part:
                last = self.cycles
            if len(self._came) >= size or self.cycles - last >= idle:
                got = bytes(self._came[:size])
                del self._came[:size]
                return got
            self._clock(idle, size - len(self._came))

    def pause(self, seconds: float) -> None:
        """Let the board work for so long by its own clock."""
        self.clock(int(seconds * self.clock_hz))

    def clock(self, cycles: int) -> None:
        """Let the board work for so many cycles."""
        end = self.cycles + cycles
        while self.cycles < end:
            self._clock(1 << 62, 1 << 62, end - self.cycles)

    def close(self) -> None:
        """End the simulation; every other use raises DeviceClosed. May be called again."""
        self._owned.close(self._give_back)

    def _give_back(self) -> None:
        board, self._self = self._self, None
        self._library.daedal_board_destroy(board)
        self._socket.close()
        self._far.close()

    def _clock(self, idle: int, size: int, most: int = SLICE_CYCLES) -> None:
        with self._owned.lock:
            self._library.daedal_board_run(self._handle(), idle, size, min(most, SLICE_CYCLES))

    def _handle(self) -> int:
        self._owned.check()
        assert self._self is not None
        return self._self
