"""Targets: what a machine is to the driver. Five primitives, and a registry of those there are."""

from importlib import import_module
from typing import Protocol, runtime_checkable

from daedal.hw.config import Config


class Target(Protocol):
    """A machine as the driver sees it. Everything else is shared code on top of these primitives."""

    memory_bytes: int
    """Size of the device's memory, bytes; it starts at address 0."""

    def csr_read(self, address: int) -> int:
        """The 32-bit register at this byte address."""
        ...

    def csr_write(self, address: int, value: int) -> None:
        """Write the 32-bit register at this byte address."""
        ...

    def mem_read(self, address: int, size: int) -> bytes:
        """``size`` bytes of the device's memory."""
        ...

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        """Write to the device's memory; a memoryview must be contiguous."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
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


class TargetFactory(Protocol):
    """Makes a target; all targets take the same options, and pass over those that mean nothing to them."""

    def __call__(self, config: Config, *, memory: str, memory_bytes: int, wave: str | None) -> Target:
        """Start a machine of this configuration."""
        ...


TARGETS = {
    "emulator": ("daedal.cosim.emulator.target", "EmulatorTarget"),
    "verilator": ("daedal.cosim.verilator", "VerilatorTarget"),
}
"""Target name -> module and class, imported when the target is first opened."""


def open_target(name: str, config: Config, *, memory: str, memory_bytes: int, wave: str | None) -> Target:
    """Start the target called ``name``; ValueError names those there are."""
    if name not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {name!r}")
    module, attribute = TARGETS[name]
    factory: TargetFactory = getattr(import_module(module), attribute)
    return factory(config, memory=memory, memory_bytes=memory_bytes, wave=wave)
