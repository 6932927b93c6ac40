"""The target ``verilator``: the core's RTL, compiled, with memory and clock in C++."""

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.cosim.harness_library import DramCounts, Harness, Traffic, build_harness
from daedal.cosim.litedram.fit import dram_behind
from daedal.cosim.memory_spec import MemorySpec
from daedal.cosim.simulator_time import Profile, SimulatorTime, is_wanted
from daedal.cosim.waveform import write_views
from daedal.cosim.waveform.waveform_verilog import traced_verilog
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Counter
from daedal.hw.verilog import TOP, core_verilog

SLICE_SECONDS = 0.003
"""Longest time in C++ at a stretch, so that an interrupt from the keyboard gets through."""

SLICE_CYCLES = 1 << 30

UNLIMITED_SECONDS = 1e9


class VerilatorTarget(Handle):
    """The five primitives on simulated RTL.

    Parameters
    ----------
    config
        The core's configuration; a model that was never built before takes a minute or so.
    memory
        Memory model and options, see :class:`MemorySpec`.
    memory_bytes
        Size of the memory, which starts at address 0.
    wave
        File for a VCD waveform of the whole run, or None. Beside it go the files of :func:`write_views`.
    """

    def __init__(
        self, config: Config, *, memory: str = "ideal", memory_bytes: int = 256 << 20, wave: str | None = None
    ) -> None:
        self.memory_bytes = memory_bytes
        spec = MemorySpec.parse(memory)
        dram = None if spec.dram is None else dram_behind(config, spec.dram, checks=bool(spec.checks))
        verilog = core_verilog(config) if wave is None else traced_verilog(core_verilog(config))
        profiled = is_wanted()
        library = build_harness(verilog, config, top=TOP, trace=wave is not None, named=profiled)
        self._harness = Harness(library, memory_bytes, spec, dram)
        self._profile = SimulatorTime(self._harness, library, dram and dram[0], verilog) if profiled else None
        self.mixed = spec.dram is None and bool(spec.mixed)
        """Whether reads and writes may be mixed: the memory loses no time between them."""
        self.dram = None if spec.dram is None else spec.model
        """Name of the DRAM behind the core, if there is one."""
        self.memory_settings = spec.settings(config.ports)
        """The memory with all that shapes its time, to be given with figures."""
        self.seconds = 0.0
        """Time spent in :meth:`wait` so far."""
        if wave is not None:
            self._start_trace(Path(wave), verilog)

    @property
    def cycles(self) -> int:
        """Clock cycles simulated so far."""
        return self._harness.cycle

    def csr_read(self, address: int) -> int:
        """The register at this address, over AXI4-Lite."""
        return self._harness.read_register(address)

    def csr_write(self, address: int, value: int) -> None:
        """Write the register at this address, over AXI4-Lite."""
        self._harness.write_register(address, value)

    def mem_read(self, address: int, size: int) -> bytes:
        """Bytes of the memory, taken without simulated time."""
        self._check(address, size)
        return self._harness.read(address, size)

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        """Put bytes into the memory without simulated time."""
        self._check(address, memoryview(data).nbytes)
        self._harness.write(address, data)

    def wait(self, timeout: float | None = None) -> bool:
        """Clock until the interrupt is raised; False if ``timeout`` seconds pass before."""
        start = time.monotonic()
        raised = False
        try:
            while not raised and (timeout is None or time.monotonic() - start < timeout):
                raised = self._harness.run(SLICE_CYCLES, SLICE_SECONDS)
        finally:
            self.seconds += time.monotonic() - start
        return raised

    def step(self, cycles: int) -> None:
        """Clock so many cycles, or until the interrupt is raised."""
        self._harness.run(cycles, UNLIMITED_SECONDS)

    def counted(self, record: int) -> dict[str, int] | None:
        """What the launch that ended last with its completion record at this address did, as the harness saw it on the
        buses; None if there is none.

        No cycles for a launch without writes, or one that waited for such a one; no lines read for one that was not
        alone, for its reads mix with others'.
        """
        counts = self._harness.counts(record)
        if counts is not None:
            counts = {
                name: n for name, n in counts.items() if n or name not in (Counter.CYCLES.name, Counter.LINES_READ.name)
            }
        return counts

    def traffic(self) -> Traffic:
        """Lines that moved on the memory ports since the last call, and cycles in which none did."""
        return self._harness.traffic()

    def record(self, on: bool = True) -> None:
        """Begin anew to keep the bursts that the core asks for, or stop."""
        self._harness.record(on)

    def recorded(self) -> NDArray[np.void]:
        """The bursts since :meth:`record`, as ``BURST`` of :mod:`daedal.cosim.harness_library`."""
        return self._harness.recorded()

    def dram_counts(self) -> DramCounts | None:
        """What the DRAM did so far; None without one."""
        return self._harness.dram_counts()

    def profile(self) -> Profile:
        """What the processor's time went to since the target was opened, and look no more.

        Raises ValueError if nobody looked: see :mod:`daedal.cosim.simulator_time`.
        """
        if self._profile is None:
            raise ValueError("DAEDAL_PROFILE must be 1 when the target is opened: set it, and run once more")
        return self._profile.stop()

    def close(self) -> None:
        """End the simulation."""
        if self._profile is not None:
            self._profile.stop()
        self._harness.close()

    def _start_trace(self, path: Path, verilog: str) -> None:
        try:
            self._harness.trace(str(path))
            write_views(path, verilog)
        except OSError:
            self._harness.close()
            raise

    def _check(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self.memory_bytes:
            raise ValueError(
                f"an access must lie within {self.memory_bytes} bytes of memory, not {size} bytes at {address:#x}"
            )
