"""What one wants to see first: the streams between the units, in the order in which a launch goes through them."""

from collections.abc import Iterator
from dataclasses import dataclass

from daedal.cosim.waveform.signals import Signals
from daedal.hw.config.core import MAX_LEVELS
from daedal.hw.verilog import TOP

TILE = f"{TOP}.tile"
"""Path of the tile below the module that registers its reset."""

CORE = f"{TILE}.core"
"""Path of the core, which has the units."""

VIEW: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("launch", "control.controller", ("fsm_state", "launch__state", "launch__side", "launch__execute_side")),
    ("loader", "core.loader", ("fsm_state", "launch", "config_bus", "run", "report__side")),
    *(
        (f"level {level}", f"core.access.level{level}", ("o__valid", "o__ready", "o__payload"))
        for level in range(MAX_LEVELS)
    ),
    ("events", "core.access.events", ("i", "tokens", "scalars", "store_addresses", "rows")),
    ("token queue", "core.tokens", ("o",)),
    ("scalar queue", "core.scalars", ("o",)),
    ("store address queue", "core.addresses", ("o",)),
    ("vector queues", "core.vectors", ("reserve", "returns", "vector0", "vector1", "stream")),
    ("execute unit", "core.execute.issue", ("i",)),
    ("store unit", "core.store", ("addresses", "data", "stream_data")),
    ("fault", "core.faults", ("found",)),
    ("memory", "", (*(f"read{port}" for port in range(16)), "write")),
)
"""Groups: title, unit below the tile, and what to show of it: a signal, or an interface with all its members. Levels
and ports that a configuration does not have are left out.
"""

_CONSTANT = ("arid", "arsize", "arburst", "awid", "awsize", "awburst", "rid", "bid")
"""Members of AXI interfaces that never change."""


@dataclass(frozen=True)
class Group:
    """Signals to show together, each as module path and name."""

    title: str
    signals: tuple[tuple[str, str], ...]


def select(signals: Signals) -> list[Group]:
    """The groups of ``VIEW`` that the design has; those without signals are left out."""
    groups = []
    for title, unit, shown in VIEW:
        path = f"{TILE}.{unit}" if unit else TILE
        found = tuple((path, name) for item in shown for name in members(signals, path, item))
        if found:
            groups.append(Group(title, found))
    return groups


def members(signals: Signals, path: str, item: str) -> Iterator[str]:
    """The signals of module ``path`` that are ``item`` or a member of it and have no members of their own.

    The handshake comes first.
    """
    own = signals.own(path)
    for plain in sorted(own, key=lambda plain: (plain != f"{item}__valid", plain != f"{item}__ready")):
        if plain != item and not plain.startswith(f"{item}__"):
            continue
        has_members = any(other.startswith(f"{plain}__") for other in own)
        if not has_members and plain.rpartition("__")[2] not in _CONSTANT:
            yield own[plain]
