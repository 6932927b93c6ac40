"""The harness around a verilated model as a Python object: one shared library per model and options."""

import ctypes
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.base.process_resource import Owned
from daedal.cosim.builder.latched_inputs import latch_inputs
from daedal.cosim.builder.library import FLOAT_MODE, load_library, read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.cosim.harness_ports import Ports
from daedal.cosim.litedram.model import INTERFACE
from daedal.cosim.litedram.text import Description
from daedal.cosim.memory_spec import MemorySpec
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.tools.c_header import generate

_SOURCES = (
    "api.cpp", "bus_rules.h", "counts.h", "errors.h", "joined_bus.h", "lite.h", "memory/dram_memory.cpp",
    "memory/dram_memory.h", "memory/ideal_memory.cpp", "memory/ideal_memory.h", "memory/memory.h", "memory/random.h",
    "memory/ring.h",
    "memory/storage.h", "pins.h", "recorder.h", "sampler.h", "side.h", "simulation.cpp", "simulation.h",
)  # fmt: skip

COUNTED = (Counter.CYCLES, Counter.LINES_READ, Counter.LINES_WRITTEN, Counter.BYTES_WRITTEN)
"""Counters that the harness counts for itself, in the order of ``daedal_counts``."""

_U32, _U64, _TEXT, _SELF = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p
_NEVER = (1 << 64) - 1
_FUNCTIONS = {
    "daedal_create": (_SELF, (_U64, _U64, ctypes.c_double, ctypes.c_double, _U64, _U64, _U32, ctypes.c_int)),
    "daedal_create_with_dram": (_SELF, (_U64, ctypes.c_void_p, _U32, ctypes.c_double, _U32)),
    "daedal_destroy": (None, (_SELF,)),
    "daedal_write": (None, (_SELF, _U32, _U64, ctypes.c_void_p, _U64)),
    "daedal_dram_counts": (ctypes.c_int, (_SELF, _U32, ctypes.POINTER(_U64))),
    "daedal_read_register": (_U32, (_SELF, _U32)),
    "daedal_write_register": (None, (_SELF, _U32, _U32)),
    "daedal_memory": (_SELF, (_SELF, _U32)),
    "daedal_run": (ctypes.c_int, (_SELF, _U64, ctypes.c_double, _U64)),
    "daedal_cycle": (_U64, (_SELF,)),
    "daedal_counts": (ctypes.c_int, (_SELF, _U32, _U64, ctypes.POINTER(_U64))),
    "daedal_traffic": (None, (_SELF, _U32, ctypes.POINTER(_U64))),
    "daedal_record": (None, (_SELF, _U32, ctypes.c_int)),
    "daedal_recorded": (_U64, (_SELF, _U32, ctypes.POINTER(_SELF))),
    "daedal_trace": (ctypes.c_int, (_SELF, _TEXT)),
    "daedal_stop_trace": (None, (_SELF,)),
    "daedal_error": (_TEXT, (_SELF,)),
    "daedal_start_samples": (ctypes.c_int, ()),
    "daedal_stop_samples": (_U64, (ctypes.POINTER(_SELF),)),
}


class Traffic(NamedTuple):
    """Lines that moved on the memory ports, records included; cycles in which none did although a launch was at work,
    and the most of these in a row.
    """

    lines_read: int
    lines_written: int
    idle: int
    longest: int


BURST = np.dtype([("cycle", "<u8"), ("address", "<u8"), ("beats", "<u4"), ("port", "<u4")])
"""A burst that the core asked for: when its address was taken, the address as memory sees it, its lines, the read port
or ``WRITE_PORT``.
"""

WRITE_PORT = 0xFFFFFFFF
"""What bursts of the write port have as their port."""


class DramCounts(NamedTuple):
    """What a DRAM did: words that it read and wrote, words read that were compared with what had been stored, and
    refreshes.
    """

    reads: int
    writes: int
    checked: int
    refreshes: int


class BusError(DaedalError):
    """The RTL broke a rule of its bus, or a DRAM did not give what was stored or broke its timing; the message has
    cycle, channel or port, and address. A defect of the RTL or of the memory model.
    """


def build_harness(verilog: str, ports: Ports | Config, *, top: str, trace: bool = False, named: bool = False) -> Path:
    """The shared library of this Verilog with the harness around it; ``ports`` are those of a core, or what is given.

    See :func:`build_verilated` for ``trace`` and ``named``.
    """
    ports = ports if isinstance(ports, Ports) else Ports(ports)
    folder = Path(__file__).parent
    files = read_sources(folder / "harness", *_SOURCES) | read_sources(folder, FLOAT_MODE)
    files |= {**INTERFACE, **ports.headers(), "encodings.h": generate()}
    text = latch_inputs(verilog, top)
    return build_verilated(f"{top}-{ports.config.name}", text, files, top=top, trace=trace, named=named)


class Harness(Handle):
    """A running model: registers, memory and clock. Several threads may use it; they take turns.

    Methods on memory and what was counted take the number of a tile, for a model that has several.

    Parameters
    ----------
    library
        What :func:`build_harness` made.
    memory_bytes
        Size of the memory; an access beyond it is answered with an error.
    spec
        Memory model and options.
    dram
        The library of the spec's DRAM and its description; None for a model without.
    """

    def __init__(
        self, library: Path, memory_bytes: int, spec: MemorySpec, dram: tuple[Path, Description] | None = None
    ) -> None:
        self._owned = Owned("the simulated device")
        self._library = load_library(library)
        self._dram = None if dram is None else load_library(dram[0])  # stays loaded as long as the simulation
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._self: int | None = self._create(memory_bytes, spec, dram)
        if not self._self:
            raise MemoryError(f"no room for a device memory of {memory_bytes} bytes")
        self._bytes = memory_bytes
        self._memories = {0: self._map(0)}

    def _map(self, tile: int) -> memoryview:
        array = ctypes.c_uint8 * self._bytes
        return memoryview(array.from_address(self._library.daedal_memory(self._self, tile))).cast("B")

    def _create(self, memory_bytes: int, spec: MemorySpec, dram: tuple[Path, Description] | None) -> int | None:
        seed = 1 if spec.seed is None else spec.seed
        created: int | None
        if dram is not None and self._dram is not None:
            create, page_bytes = ctypes.cast(self._dram.daedal_create_dram, ctypes.c_void_p), dram[1].page_bytes
            created = self._library.daedal_create_with_dram(memory_bytes, create, page_bytes, spec.stall, seed)
            return created
        pause_after, pause = (_NEVER if n is None else n for n in (spec.pause_after, spec.pause))
        created = self._library.daedal_create(
            memory_bytes, spec.latency, spec.lines, spec.stall, pause_after, pause, seed, spec.random
        )
        return created

    @property
    def memory(self) -> memoryview:
        """The device's memory, until the simulation ends. To be written with :meth:`write` only if it is a DRAM, which
        checks what it gives.
        """
        self._owned.check()
        return self._memories[0]

    def read(self, address: int, size: int, tile: int = 0) -> bytes:
        """Bytes of the device's memory, in which they must lie."""
        with self._owned.lock:
            self._owned.check()
            if tile not in self._memories:
                self._memories[tile] = self._map(tile)
            return bytes(self._memories[tile][address : address + size])

    def write(self, address: int, data: bytes | memoryview, tile: int = 0) -> None:
        """Put bytes into the device's memory, in which they must lie."""
        raw = np.frombuffer(data, np.uint8)
        with self._owned.lock:
            self._library.daedal_write(self._handle(), tile, address, raw.ctypes.data, raw.nbytes)

    def dram_counts(self, tile: int = 0) -> DramCounts | None:
        """What the DRAM did so far; None without one."""
        values = (_U64 * len(DramCounts._fields))()
        with self._owned.lock:
            if not self._library.daedal_dram_counts(self._handle(), tile, values):
                return None
        return DramCounts(*values)

    def close(self) -> None:
        """End the simulation and finish its waveform; every other use raises DeviceClosed. May be called again."""
        self._owned.close(self._give_back)

    def _give_back(self) -> None:
        it, self._self = self._self, None
        self._memories.clear()
        self._library.daedal_destroy(it)

    def __del__(self) -> None:
        if getattr(self, "_self", None):
            self.close()

    def read_register(self, address: int) -> int:
        """A register over AXI4-Lite; BusError if the model does not answer."""
        with self._owned.lock:
            value: int = self._library.daedal_read_register(self._handle(), address)
            self._check()
        return value

    def write_register(self, address: int, value: int) -> None:
        """Write a register over AXI4-Lite; BusError if the model does not answer."""
        with self._owned.lock:
            self._library.daedal_write_register(self._handle(), address, value)
            self._check()

    def run(self, cycles: int, seconds: float, least: int = 0) -> bool:
        """Clock until the interrupt is raised (True), or so many cycles or seconds are over (False).

        The interrupt is not looked at before ``least`` cycles are over.
        """
        with self._owned.lock:
            raised = bool(self._library.daedal_run(self._handle(), cycles, seconds, least))
            self._check()
        return raised

    @property
    def cycle(self) -> int:
        """Cycles so far."""
        with self._owned.lock:
            value: int = self._library.daedal_cycle(self._handle())
        return value

    def counts(self, record: int, tile: int = 0) -> dict[str, int] | None:
        """What the launch that ended last with its completion record at this address did, as seen from the buses, by
        the name of its Counter; None if there is none.
        """
        values = (_U64 * len(COUNTED))()
        with self._owned.lock:
            if not self._library.daedal_counts(self._handle(), tile, record, values):
                return None
        return {counter.name: value for counter, value in zip(COUNTED, values, strict=True)}

    def traffic(self) -> Traffic:
        """What moved since the last call."""
        values = (_U64 * len(Traffic._fields))()
        with self._owned.lock:
            self._library.daedal_traffic(self._handle(), 0, values)
        return Traffic(*values)

    def record(self, on: bool) -> None:
        """Begin anew to keep the bursts that the core asks for, or stop."""
        with self._owned.lock:
            self._library.daedal_record(self._handle(), 0, on)

    def recorded(self) -> NDArray[np.void]:
        """The bursts since then, as ``BURST``, in the order in which their addresses were taken."""
        first = _SELF()
        with self._owned.lock:
            count = self._library.daedal_recorded(self._handle(), 0, ctypes.byref(first))
            raw = ctypes.string_at(first.value, count * BURST.itemsize) if count and first.value else b""
        return np.frombuffer(raw, BURST)

    def start_samples(self) -> None:
        """Begin to note where the processor is; OSError if that cannot be."""
        if not self._library.daedal_start_samples():
            raise OSError("a profile is of one simulation at a time, on x86-64 and AArch64: close the other one")

    def stop_samples(self) -> NDArray[np.uint64]:
        """The addresses at which the processor was since then."""
        first = _SELF()
        count = self._library.daedal_stop_samples(ctypes.byref(first))
        raw = ctypes.string_at(first.value, 8 * count) if count and first.value else b""
        return np.frombuffer(raw, np.uint64)

    def place_of(self, function: str) -> int:
        """The address of a function of the library, or of the DRAM's, if there is one."""
        library = self._dram if hasattr(self._dram, function) else self._library
        return ctypes.cast(getattr(library, function), _SELF).value or 0

    def trace(self, path: str) -> None:
        """Write waveforms to this file from here on; OSError if it cannot be written."""
        with self._owned.lock:
            if not self._library.daedal_trace(self._handle(), path.encode()):
                raise OSError(f"waveforms cannot be written to {path!r}")

    def _handle(self) -> int:
        self._owned.check()
        assert self._self is not None
        return self._self

    def _check(self) -> None:
        text = self._library.daedal_error(self._handle()).decode()
        if text:
            raise BusError(f"the model broke a rule of its bus in {text}")
