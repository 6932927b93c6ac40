"""Several tiles as ``daedal verilog --tiles`` writes them: one model, with a memory for each tile."""

import threading
import time
from collections.abc import Sequence

from daedal.base.handle import Handle
from daedal.cosim.harness_library import Harness, build_harness
from daedal.cosim.harness_ports import Ports
from daedal.cosim.litedram.fit import dram_behind
from daedal.cosim.memory_spec import MemorySpec
from daedal.cosim.verilator import SLICE_CYCLES, SLICE_SECONDS
from daedal.errors import ConfigMismatch
from daedal.hw.config.core import Config
from daedal.hw.isa.registers import PAGE_BYTES, REVISION, SYSTEM_IDENTITY, SystemRegister
from daedal.hw.verilog import system_verilog

PENDING_CYCLES = 64
"""For which a tile works while another one's interrupt is raised, before it looks whether its own is."""


class SystemRtl:
    """The simulated system; ``targets`` are its tiles, each for a ``Device``.

    The window of registers and the interrupt are those of all; a clock cycle of one tile is one of all.

    Parameters
    ----------
    config
        The configuration of each tile.
    tiles, axi
        As of ``daedal verilog``.
    memory, memory_bytes
        The memory of each tile.
    """

    def __init__(self, config: Config, tiles: int, axi: str, *, memory: str = "ideal", memory_bytes: int) -> None:
        spec = MemorySpec.parse(memory)
        top, verilog = system_verilog(config, tiles, axi)
        library = build_harness(verilog, Ports(config, tiles, joined=axi != "ports"), top=top)
        dram = None if spec.dram is None else dram_behind(config, spec.dram, checks=bool(spec.checks))
        self._harness, self._turn = Harness(library, memory_bytes, spec, dram), threading.RLock()
        mixed = spec.dram is None and bool(spec.mixed)
        self.targets: Sequence[TileTarget] = tuple(
            TileTarget(self._harness, self._turn, number, memory_bytes, mixed=mixed) for number in range(tiles)
        )
        """The tiles."""
        found = [self.register(each) for each in SystemRegister][:4]
        if found != [SYSTEM_IDENTITY, REVISION, config.hash, tiles]:
            raise ConfigMismatch(f"the system must be of {tiles} tiles of {config.name}, not {found}")

    def register(self, register: SystemRegister) -> int:
        """A register of the system's page."""
        return self._harness.read_register(int(register.value))

    @property
    def interrupt(self) -> bool:
        """Whether the system raises its interrupt, which is that of any tile."""
        return self._harness.run(0, SLICE_SECONDS)

    @property
    def cycles(self) -> int:
        """Clock cycles simulated so far."""
        return self._harness.cycle

    def close(self) -> None:
        """End the simulation of all tiles."""
        self._harness.close()


class TileTarget(Handle):
    """A tile of a simulated system: the five primitives, on its page of the registers and its memory."""

    def __init__(self, harness: Harness, turn: threading.RLock, number: int, memory_bytes: int, *, mixed: bool) -> None:
        self._harness, self._turn, self._number = harness, turn, number
        self._page = (number + 1) * PAGE_BYTES
        self._pending = SystemRegister.INTERRUPTS_HIGH if number >= 32 else SystemRegister.INTERRUPTS_LOW
        self.memory_bytes, self.mixed = memory_bytes, mixed

    def csr_read(self, address: int) -> int:
        """The register at this address of the tile's page."""
        return self._harness.read_register(self._page + address)

    def csr_write(self, address: int, value: int) -> None:
        """Write the register at this address of the tile's page."""
        self._harness.write_register(self._page + address, value)

    def mem_read(self, address: int, size: int) -> bytes:
        """Bytes of the tile's memory, taken without simulated time."""
        self._check(address, size)
        return self._harness.read(address, size, self._number)

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        """Put bytes into the tile's memory without simulated time."""
        self._check(address, memoryview(data).nbytes)
        self._harness.write(address, data, self._number)

    def wait(self, timeout: float | None = None) -> bool:
        """Clock until this tile raises its interrupt; False if ``timeout`` seconds pass before."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._turn:  # what the bits say is still so when the clock goes on
                pending = self._harness.read_register(int(self._pending.value))
                if pending >> self._number % 32 & 1:
                    return True
                if end is not None and time.monotonic() >= end:
                    return False
                cycles, least = (PENDING_CYCLES, PENDING_CYCLES) if pending else (SLICE_CYCLES, 0)
                self._harness.run(cycles, SLICE_SECONDS, least)

    def counted(self, record: int) -> dict[str, int] | None:
        """As of the target ``verilator``: what a launch did, seen on the buses; None if there is none."""
        counts = self._harness.counts(record, self._number)
        return None if counts is None else {name: n for name, n in counts.items() if n or name.endswith("WRITTEN")}

    def close(self) -> None:
        """Nothing: the system is closed as a whole."""

    def _check(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self.memory_bytes:
            raise ValueError(f"an access must lie within {self.memory_bytes} bytes, not {size} bytes at {address:#x}")
