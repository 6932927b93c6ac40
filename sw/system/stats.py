"""What a call of a system did: all tiles together, and each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from daedal.driver.launch.record import Stats


@dataclass(repr=False)
class SystemStats(Stats):
    """What the tiles of a system did in a call: ``cycles`` are those of the tile that took longest, counts are sums.

    Attributes
    ----------
    per_tile
        The figures of each tile; one without work has none but zeros.
    """

    per_tile: tuple[Stats, ...] = ()


def together(tiles: Sequence[Stats]) -> SystemStats:
    """The figures of tiles that worked side by side."""
    total = sum(tiles, Stats())
    known = {each.name: getattr(total, each.name) for each in fields(total)}
    longest = max((each.cycles for each in tiles), default=0)
    return SystemStats(**(known | {"cycles": longest}), per_tile=tuple(tiles))
