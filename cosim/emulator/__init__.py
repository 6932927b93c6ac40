"""The emulator: decodes and executes the encoded bytes in C++, as the golden model of the instruction set.

It knows nothing of the compiler or the RTL: its encodings come from ``hw.isa`` through a generated header.
"""

import ctypes
import time
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from daedal.base.handle import Handle
from daedal.base.process_resource import Owned
from daedal.cosim.builder.library import FLOAT_MODE, build_library, load_library, read_sources
from daedal.errors import OutOfDeviceMemory
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Queue
from daedal.hw.isa.registers import Register
from daedal.hw.isa.tools import c_header

FOLDER = Path(__file__).parent
"""Where its sources are."""

_SOURCES = (
    "address_map.h", "clock.h", "device_memory.h", "stored_bytes.h", "core.h", "store_unit.h", "legality.h",
    "narrow_rows.h", "execute_unit.h", "bundle_dealer.h", "access_unit.h", "machine.h",
    "execute_unit.cpp", "access_config.cpp", "access_unit.cpp", "machine.cpp", "api.cpp",
)  # fmt: skip
FLAGS = ("-fno-strict-aliasing",)
"""How its sources are compiled, beside what all are."""

_SLICE = 1 << 20
"""Program words, bundles, steps and instructions that run between two looks at the clock."""


_ENDED = 1
"""What the library says when a launch has ended."""


class TraceEntry(NamedTuple):
    """Something that the access unit enqueued.

    ``queue``: where; ``value``: the scalar, the token or the byte address; ``size``: bytes of a row, else 0;
    ``stream``: a store address whose data come from the store stream.
    """

    queue: Queue
    value: int
    size: int
    stream: bool


class EmulatorTarget(Handle):
    """The machine, emulated, with its memory: the five primitives of a target. Several threads may use it; they take
    turns.

    Parameters
    ----------
    config
        The machine's configuration.
    memory_bytes
        Size of device memory; pages that nobody touches cost nothing.
    trace
        Whether to keep what the access unit enqueues in each launch, for :meth:`trace`.
    sparse
        Whether memory may be larger than the host's, as little of it is written.
    library
        The emulator with something else in it, made of :func:`sources` and others; None for the emulator as it is.

    Raises
    ------
    OutOfDeviceMemory
        The host cannot give so much memory.
    ToolchainNotFound
        The emulator is not built yet and there is no C++ compiler.
    """

    def __init__(
        self,
        config: Config,
        memory_bytes: int = 1 << 30,
        *,
        trace: bool = False,
        sparse: bool = False,
        library: ctypes.CDLL | None = None,
    ) -> None:
        self.config = config
        self.memory_bytes = memory_bytes
        self.mixed = True
        """There is no time here that a memory could lose."""
        self._library = library or _library()
        values = c_header.config_values(config)
        self._owned = Owned("the emulator")
        self._memory: int | None = self._library.emulator_memory_open(memory_bytes, sparse)
        self._machine: int | None = None
        if self._memory is not None:
            self._machine = self._library.emulator_open((ctypes.c_int64 * len(values))(*values), self._memory)
        if self._machine is None:
            self._give_back()
            raise OutOfDeviceMemory(f"memory_bytes must be what this host can give, not {memory_bytes!r}")
        self._library.emulator_trace(self._machine, trace)

    def csr_read(self, address: int) -> int:
        """The 32-bit register at this byte address; 0 if there is none."""
        owned = self._owned
        with owned.lock:
            if not owned.usable:
                owned.check()
            return int(self._library.emulator_csr_read(self._machine, address))

    def csr_write(self, address: int, value: int) -> None:
        """Write a 32-bit register; nothing happens if there is none."""
        owned = self._owned
        with owned.lock:
            if not owned.usable:
                owned.check()
            self._library.emulator_csr_write(self._machine, address, value & 0xFFFFFFFF)

    def mem_read(self, address: int, size: int) -> bytes:
        """``size`` bytes of device memory; ValueError if they are not all there."""
        self._check(address, size)
        data = _characters(size)()
        with self._owned.lock:
            self._handle()
            self._library.emulator_memory_read(self._memory, address, size, data)
        return data.raw

    def mem_write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write a contiguous buffer's bytes to device memory; ValueError if they do not fit."""
        raw = memoryview(data).cast("B")
        self._check(address, len(raw))
        source: bytes | int
        if raw.readonly:
            source = raw.tobytes()
        elif len(raw):
            source = ctypes.addressof(ctypes.c_char.from_buffer(raw))
        else:
            return
        with self._owned.lock:
            self._handle()
            self._library.emulator_memory_write(self._memory, address, len(raw), source)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Run until a launch ends; False if ``timeout_s`` seconds pass before.

        Nothing runs outside of this method; a launch that was not finished goes on in the next call. With no
        launch to run, returns at once whether the interrupt of an earlier one is still set.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not (progress := self._run()):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return bool(progress == _ENDED or self.csr_read(Register.INTERRUPT.value))

    def _run(self) -> int:
        with self._owned.lock:
            return int(self._library.emulator_run(self._handle(), _SLICE))

    def memory_address(self, address: int) -> int:
        """Where in memory a program's address is, by the emulator's own reckoning."""
        with self._owned.lock:
            return int(self._library.emulator_memory_address(self._handle(), address))

    def trace(self) -> list[TraceEntry]:
        """What the access unit enqueued in the launch last begun, in order; empty unless asked for."""
        with self._owned.lock:
            size = self._library.emulator_trace_size(self._handle())
            words = (ctypes.c_uint64 * (4 * size))()
            self._library.emulator_trace_copy(self._handle(), words)
        return [
            TraceEntry(Queue(words[at]), words[at + 1], words[at + 2], bool(words[at + 3]))
            for at in range(0, 4 * size, 4)
        ]

    def close(self) -> None:
        """Give the memory back; every other use, also one that waits, raises DeviceClosed. May be called again."""
        self._owned.close(self._give_back)

    def _give_back(self) -> None:
        machine, memory, self._machine, self._memory = self._machine, self._memory, None, None
        self._library.emulator_close(machine)
        self._library.emulator_memory_close(memory)

    def __enter__(self) -> "EmulatorTarget":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_machine", None) is not None:
            self.close()

    def _handle(self) -> int:
        if not self._owned.usable:
            self._owned.check()
        assert self._machine is not None
        return self._machine

    def _check(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self.memory_bytes:
            raise ValueError(
                f"an access must lie within {self.memory_bytes} bytes of memory, not {size} bytes at {address:#x}"
            )


@lru_cache(64)
def _characters(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    """An array of so many bytes."""
    return ctypes.c_char * size


def sources() -> dict[str, str]:
    """The emulator's sources by name, with all headers that they include."""
    files = read_sources(FOLDER, *_SOURCES) | read_sources(FOLDER.parent, FLOAT_MODE)
    return files | {"encodings.h": c_header.generate()}


@cache
def _library() -> ctypes.CDLL:
    library = load_library(build_library("emulator", sources(), flags=FLAGS))
    declare(library)
    return library


def declare(library: ctypes.CDLL) -> None:
    """Tell Python the signatures of the emulator's functions in a library."""
    machine, memory, word, pointer = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p
    signatures: dict[str, tuple[list[type], type | None]] = {
        "memory_open": ([word, ctypes.c_int], memory),
        "memory_close": ([memory], None),
        "memory_read": ([memory, word, word, pointer], ctypes.c_int),
        "memory_write": ([memory, word, word, pointer], ctypes.c_int),
        "open": ([ctypes.POINTER(ctypes.c_int64), memory], machine),
        "config_values": ([], word),
        "close": ([machine], None),
        "csr_read": ([machine, ctypes.c_uint32], ctypes.c_uint32),
        "csr_write": ([machine, ctypes.c_uint32, ctypes.c_uint32], None),
        "memory_address": ([machine, word], word),
        "run": ([machine, ctypes.c_int64], ctypes.c_int),
        "trace": ([machine, ctypes.c_int], None),
        "trace_size": ([machine], word),
        "trace_copy": ([machine, ctypes.POINTER(word)], None),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(library, f"emulator_{name}")
        function.argtypes, function.restype = arguments, result
