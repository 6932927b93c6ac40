"""A board as a target: the five primitives over its host link."""

import struct
import time
from typing import Any, cast

from daedal.base.handle import Handle
from daedal.base.process_resource import Owned
from daedal.driver.link.bridge import Bridge
from daedal.driver.link.checked_link import CheckedLink
from daedal.driver.link.dram import Dram
from daedal.driver.link.etherbone import PORT, EtherboneBridge
from daedal.driver.link.transport import SerialTransport
from daedal.driver.link.uartbone import UartBridge
from daedal.driver.targets.description import read_description
from daedal.driver.targets.registers import Registers
from daedal.driver.targets.target_registry import DESIGN, LINE, DesignGenerator, LineOpener, imported
from daedal.errors import ConfigMismatch
from daedal.hw.config.core import Config

SUFFIX = ".json"


class BoardTarget(Handle):
    """The five primitives on a board. Several threads may use it; they take turns.

    Parameters
    ----------
    bridge
        The way to the board; closed with the target.
    description
        What ``daedal.fpga.soc.generator`` says of the board's design.
    config
        The core's configuration.

    Raises LinkLost if the board does not answer, ConfigMismatch if it has another core or another bitstream,
    LevellingFailed if its DRAM does not start.
    """

    def __init__(self, bridge: Bridge, description: dict[str, Any], config: Config) -> None:
        self.memory_bytes: int = description["memory"]["size"]
        self.mixed = description["sdram"] is None
        """Whether memory is on the chip: it loses no time between reads and writes."""
        self._memory, self._registers = description["memory"]["base"], description["registers"]["base"]
        self._owned = Owned("the board")
        self.link = link = CheckedLink(bridge)
        Registers(self).check(config)
        if link.design != description["design"]:
            raise ConfigMismatch(
                f"the board on {link.name} must have design {description['design']:#010x} of board "
                f"{description['board']}, not {link.design:#010x}: load the bitstream that belongs to this "
                "description, or give the description (board=FILE.json) that belongs to its bitstream"
            )
        if description["sdram"] is not None:
            Dram(link, description).start()

    def csr_read(self, address: int) -> int:
        """The core's register at this address."""
        value: int = struct.unpack("<I", self._read(self._registers + address, 4))[0]
        return value

    def csr_write(self, address: int, value: int) -> None:
        """Write the core's register at this address, once, whatever the line does."""
        self._write(self._registers + address, struct.pack("<I", value))

    def mem_read(self, address: int, size: int) -> bytes:
        """Bytes of the board's memory."""
        self._check(address, size)
        return self._read(self._memory + address, size)

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        """Put bytes into the board's memory."""
        raw = memoryview(data).cast("B")
        self._check(address, len(raw))
        self._write(self._memory + address, raw)

    def _read(self, address: int, size: int) -> bytes:
        with self._owned.lock:
            self._owned.check()
            return self.link.read(address, size)

    def _write(self, address: int, data: bytes | memoryview) -> None:
        with self._owned.lock:
            self._owned.check()
            self.link.write(address, data)

    def wait(self, timeout: float | None = None) -> bool:
        """Ask for the core's interrupt until it is raised; False if ``timeout`` seconds pass before."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._interrupted():
            if end is not None and time.monotonic() >= end:
                return False
        return True

    def _interrupted(self) -> bool:
        with self._owned.lock:
            self._owned.check()
            return bool(self.link.status()["interrupt"])

    def close(self) -> None:
        """Give the line back; the board goes on with what it does. Every other use raises DeviceClosed."""
        self._owned.close(self.link.close)

    def _check(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self.memory_bytes:
            raise ValueError(
                f"an access must lie within {self.memory_bytes} bytes of memory, not {size} bytes at {address:#x}"
            )


def describe(board: str | None, config: Config, *, etherbone: bool = False) -> dict[str, Any]:
    """The description of the design on a board.

    ``board`` is the name of a board, or the file in which its build put the description. ``etherbone``: of a named
    board, the design with a bridge to the network. ValueError if it is neither, UnknownBoard for another name.
    """
    if board is None:
        raise ValueError("board must be the name of a board or the description from its build, not None")
    if not board.endswith(SUFFIX):
        generate = cast(DesignGenerator, imported(DESIGN))
        return generate(board, config, etherbone=etherbone).description
    return read_description(board)


def parse_uart(address: str, baud: int) -> tuple[str, int]:
    """Device and baud rate of ``DEVICE[@BAUD]``; ValueError if it is not that."""
    device, at, rate = address.partition("@")
    if not device or (at and not rate.isdecimal()):
        raise ValueError(f"target must be uart:DEVICE or uart:DEVICE@BAUD, not {'uart:' + address!r}")
    return device, int(rate) if at else baud


def parse_etherbone(address: str) -> tuple[str, int]:
    """Host and port of ``HOST[:PORT]``; ValueError if it is not that."""
    host, colon, port = address.partition(":")
    if not host or (colon and not (port.isdecimal() and 0 < int(port) < 1 << 16)):
        raise ValueError(f"target must be etherbone:HOST or etherbone:HOST:PORT, not {'etherbone:' + address!r}")
    return host, int(port) if colon else PORT


def open_uart(address: str, config: Config, board: str | None) -> BoardTarget:
    """The board on a serial device ``DEVICE[@BAUD]``; the baud rate is that of its design unless given."""
    parse_uart(address, 0)
    description = describe(board, config)
    device, baud = parse_uart(address, description["baud"])
    return _start(UartBridge(SerialTransport(device, baud)), description, config)


def open_etherbone(address: str, config: Config, board: str | None) -> BoardTarget:
    """The board at ``HOST[:PORT]``."""
    host, port = parse_etherbone(address)
    description = describe(board, config, etherbone=True)
    return _start(EtherboneBridge(host, port), description, config)


def open_simulated(address: str, config: Config, board: str | None) -> BoardTarget:
    """A board's own design under Verilator; there is no ``address``."""
    if board is None:
        raise ValueError("board must be the name of a board, not None")
    line, description = cast(LineOpener, imported(LINE))(config, board)
    return _start(UartBridge(line), description, config)


def _start(bridge: Bridge, description: dict[str, Any], config: Config) -> BoardTarget:
    try:
        return BoardTarget(bridge, description, config)
    except BaseException:
        bridge.close()
        raise
