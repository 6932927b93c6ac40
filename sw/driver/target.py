"""Targets: what a machine is to the driver. Five primitives, and a registry of those there are."""

from typing import Protocol, runtime_checkable

from daedal.hw.config.core import Config


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
class Counting(Protocol):
    """A target that counts for itself what a launch did, so that the machine's counters can be checked."""

    def counted(self, record: int, /) -> dict[str, int] | None:
        """Counts by the name of their Counter of the launch that ended last with its completion record at this address,
        or None if there is none.
        """
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


def _without_options(kind: str, memory: str, wave: str | None) -> None:
    """ValueError for options of simulated machines that a board does not have."""
    if memory != "ideal":
        raise ValueError(f"memory must be left out for {kind}, which has its own, not {memory!r}")
    if wave is not None:
        raise ValueError(f"wave must be None for {kind}, not {wave!r}")


TARGETS = {"emulator": _open_emulator, "verilator": _open_verilator}
"""Target name -> what opens it; a target's modules are imported when it is first opened."""

BOARD_TARGETS = ("board-sim", "uart:DEVICE[@BAUD]", "etherbone:HOST[:PORT]")
"""Targets that are boards, and need the name of one."""


def open_target(
    name: str, config: Config, *, memory: str, memory_bytes: int, wave: str | None, board: str | None = None
) -> Target:
    """Start the target called ``name``; ValueError names those there are."""
    if name in TARGETS:
        if board is not None:
            raise ValueError(f"board must be None for target {name}, which is none, not {board!r}")
        return TARGETS[name](config, memory, memory_bytes, wave)
    kind, colon, address = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name != "board-sim" and not (colon and kind in ("uart", "etherbone")):
        raise ValueError(f"target must be one of {', '.join([*TARGETS, *BOARD_TARGETS])}, not {name!r}")
    _without_options(f"target {kind}", memory, wave)
    from daedal.driver import board as boards

    if name == "board-sim":
        return boards.open_simulated(config, board)
    return (boards.open_uart if kind == "uart" else boards.open_etherbone)(address, config, board)
