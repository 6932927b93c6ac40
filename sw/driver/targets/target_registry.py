"""The targets that there are, by name, and how one is opened.

Where a target is opened is given as a path, imported when it is first opened. So the driver depends on none of them: a
simulator knows the driver's interfaces, and not the other way round.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from daedal.driver.link.transport import Transport
from daedal.driver.targets.target import Target
from daedal.hw.config.core import Config

TARGETS: Mapping[str, str] = {
    "emulator": "daedal.cosim.targets:open_emulator",
    "model": "daedal.cosim.targets:open_model",
    "verilator": "daedal.cosim.targets:open_verilator",
}
"""Name of a machine on this computer -> what opens it, an ``Opener``."""

BOARDS: Mapping[str, str] = {
    "board-sim": "daedal.driver.targets.board:open_simulated",
    "uart": "daedal.driver.targets.board:open_uart",
    "etherbone": "daedal.driver.targets.board:open_etherbone",
}
"""Kind of a link to a board -> what opens it, a ``BoardOpener``."""

BOARD_TARGETS = ("board-sim", "uart:DEVICE[@BAUD]", "etherbone:HOST[:PORT]")
"""Targets that are boards, and need the name of one."""

LINE = "daedal.cosim.targets:open_line"
"""The serial line of a simulated board, a ``LineOpener``."""

DESIGN = "daedal.fpga.soc.generator:generate"
"""The design of a board that is known by its name, a ``DesignGenerator``."""

HOST_DIGESTS = "daedal.cosim.host_digests:open_digests"
"""Digests of the host's memory: a function that gives a ``driver.tables.digests.Digests``."""


class Opener(Protocol):
    """Opens a machine of a configuration, from a memory model, bytes of memory, and the file for a waveform."""

    def __call__(self, config: Config, memory: str, memory_bytes: int, wave: str | None, /, *, sparse: bool) -> Target:
        """``sparse``: memory may be larger than the host's, as little of it is written."""
        ...


BoardOpener = Callable[[str, Config, str | None], Target]
"""The machine on a board, from the link's address, its configuration, and the board's name or description."""

LineOpener = Callable[[Config, str], tuple[Transport, dict[str, Any]]]
"""A board's serial line and the description of its design, from a configuration and the board's name."""


class Design(Protocol):
    """What the generator makes for a board, as far as the driver asks."""

    @property
    def description(self) -> dict[str, Any]:
        """What ``driver.description`` reads from a file."""
        ...


class DesignGenerator(Protocol):
    """Makes the design of a core on a board."""

    def __call__(self, board: str, config: Config, /, *, etherbone: bool) -> Design:
        """``etherbone``: with a bridge to the network."""
        ...


def imported(path: str) -> object:
    """What ``package.module:name`` stands for."""
    module, _, name = path.partition(":")
    found: object = getattr(import_module(module), name)
    return found


def open_target(
    name: str,
    config: Config,
    *,
    memory: str,
    memory_bytes: int,
    wave: str | None,
    board: str | None = None,
    sparse: bool = False,
) -> Target:
    """Start the target called ``name``; ValueError names those there are.

    ``sparse``: memory may be larger than the host's, as no tables are written there; emulated machines have such.
    """
    if name in TARGETS:
        if board is not None:
            raise ValueError(f"board must be None for target {name}, which is none, not {board!r}")
        return cast(Opener, imported(TARGETS[name]))(config, memory, memory_bytes, wave, sparse=sparse)
    kind, colon, address = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in BOARDS or bool(colon) == (kind == "board-sim"):
        raise ValueError(f"target must be one of {', '.join([*TARGETS, *BOARD_TARGETS])}, not {name!r}")
    if sparse:
        raise ValueError(f"table_check must be 'contents' or 'versions' for target {kind}, not 'shapes'")
    _without_options(f"target {kind}", memory, wave)
    return cast(BoardOpener, imported(BOARDS[kind]))(address, config, board)


def _without_options(kind: str, memory: str, wave: str | None) -> None:
    """ValueError for options of simulated machines that a board does not have."""
    if memory != "ideal":
        raise ValueError(f"memory must be left out for {kind}, which has its own, not {memory!r}")
    if wave is not None:
        raise ValueError(f"wave must be None for {kind}, not {wave!r}")
