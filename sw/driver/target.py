"""Targets: what a machine is to the driver. Five primitives, and a registry of those there are."""

from typing import Protocol, runtime_checkable

from daedal.hw.config import Config


class Target(Protocol):
    """A machine as the driver sees it. Everything else is shared code on top of these primitives."""

    memory_bytes: int
    """Size of the device's memory, bytes; it starts at address 0."""

    def csr_read(self, address: int, /) -> int:
        """The 32-bit register at this byte address."""
        ...

    def csr_write(self, address: int, value: int, /) -> None:
        """Write the 32-bit register at this byte address."""
        ...

    def mem_read(self, address: int, size: int, /) -> bytes:
        """``size`` bytes of the device's memory."""
        ...

    def mem_write(self, address: int, data: bytes | memoryview, /) -> None:
        """Write to the device's memory; a memoryview must be contiguous."""
        ...

    def wait(self, timeout: float | None = None, /) -> bool:
        """Let the machine work until its interrupt is raised; False if ``timeout`` seconds pass before."""
        ...

    def close(self) -> None:
        """Give back what the target holds."""
        ...


@runtime_checkable
class Counting(Protocol):
    """A target that counts for itself what a launch did, so that the machine's counters can be checked."""

    def counted(self) -> dict[str, int] | None:
        """Counts of the last launch by the name of their Counter, or None if there is none."""
        ...


def _open_emulator(config: Config, memory: str, memory_bytes: int, wave: str | None) -> Target:
    from daedal.cosim.emulator import EmulatorTarget
    from daedal.cosim.memory_spec import MemorySpec

    MemorySpec.parse(memory)  # means nothing here, but a mistake in it is one
    if wave is not None:
        raise ValueError(f"wave must be None for the emulator, which has no signals, not {wave!r}")
    return EmulatorTarget(config, memory_bytes)


def _open_verilator(config: Config, memory: str, memory_bytes: int, wave: str | None) -> Target:
    from daedal.cosim.verilator import VerilatorTarget

    return VerilatorTarget(config, memory=memory, memory_bytes=memory_bytes, wave=wave)


TARGETS = {"emulator": _open_emulator, "verilator": _open_verilator}
"""Target name -> what opens it; a target's modules are imported when it is first opened."""


def open_target(name: str, config: Config, *, memory: str, memory_bytes: int, wave: str | None) -> Target:
    """Start the target called ``name``; ValueError names those there are."""
    if name not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {name!r}")
    return TARGETS[name](config, memory, memory_bytes, wave)
