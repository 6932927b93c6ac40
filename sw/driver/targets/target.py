"""What a machine is to the driver: five primitives, and what some machines have beside them."""

from typing import Protocol, runtime_checkable


class Target(Protocol):
    """A machine as the driver sees it. Everything else is shared code on top of these primitives."""

    memory_bytes: int
    """Size of the device's memory, bytes; it starts at address 0."""
    mixed: bool
    """Whether the memory loses no time when it turns from reads to writes; DRAM does."""

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
class Predicting(Protocol):
    """A target whose cycles are predicted."""

    checked: str
    """What predictions for this configuration and memory were compared with, with what error; empty if nothing."""


@runtime_checkable
class Counting(Protocol):
    """A target that counts for itself what a launch did, so that the machine's counters can be checked."""

    def counted(self, record: int, /) -> dict[str, int] | None:
        """Counts by the name of their Counter of the launch that ended last with its completion record at this address,
        or None if there is none.
        """
        ...
