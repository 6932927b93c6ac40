"""Moving the cells of the slowest ways to where they are shorter."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daedal.hw.boards.placement.delays import Pin, Place, read_delays
from daedal.hw.boards.placement.estimates import Estimates
from daedal.hw.boards.placement.netlist import Placed
from daedal.hw.boards.placement.tiles import Cells, Tiles
from daedal.hw.boards.placement.timing import NEVER, SAME, Timing

LEAST = 0.05
"""ns that a move must gain: less than a step of a wire, which takes 0.08 at grade 6."""

TILES_TRIED = 400
"""Tiles in which a place is looked for, the best first."""

PATIENCE = 60
"""Ways that no move makes shorter after which it ends."""

MEMORY = "DP16KD"
"""Block RAMs, which change places with each other: the part's others are few."""


@dataclass(frozen=True)
class Outcome:
    """The longest way, ns, and the cells that were moved."""

    before: float
    after: float
    moves: int


def shorten(placed: Path, delays: Path, to: Path) -> Outcome:
    """Make the slowest ways of a placed design shorter, and write it.

    Parameters
    ----------
    placed, delays
        What nextpnr wrote with ``--write`` and ``--sdf``.
    to
        The design with its cells where they are then.

    ValueError if one of the files is none of nextpnr's, if they are of two designs, or of one with several clocks or
    with multiplexers wider than a LUT.
    """
    design = Placed(placed)
    timing = Timing(design, read_delays(delays))
    before = timing.longest()
    moves = Mover(design, timing).run()
    design.write(to)
    return Outcome(before, timing.longest(), moves)


class Mover:
    """Moves cells of the slowest way, one that gains the most at a time, until some ways cannot get shorter.

    A move is taken if the longest way through the cells that it moves gets shorter; other ways stay as they are. So the
    design's longest way never gets longer.
    """

    def __init__(self, placed: Placed, timing: Timing) -> None:
        self._placed, self._timing, self._tiles = placed, timing, Tiles(placed)
        self._estimates = Estimates(placed, timing)
        self._memories = [
            name for name, cell in placed.cells.items() if cell["type"] == MEMORY and placed.is_free(name)
        ]

    def run(self) -> int:
        """Move until no more is gained; returns the number of moves."""
        timing = self._timing
        complete = {net for net in timing.order if timing.through(net) > 0}
        """Others have a clock at one end of their ways, or at none."""
        slowest = [(-timing.through(net), net) for net in complete]
        heapq.heapify(slowest)
        fixed: set[int] = set()
        moves = failures = 0
        while slowest and failures < PATIENCE:
            known, net = heapq.heappop(slowest)
            if net in fixed:
                continue
            if -known != timing.through(net):
                heapq.heappush(slowest, (-timing.through(net), net))
                continue
            way = timing.way(net)
            if changed := self._improve(way):
                moves += 1
                fixed -= changed
                for other in complete & {*changed, net}:
                    heapq.heappush(slowest, (-timing.through(other), other))
            else:
                failures += 1
                nets = [self._placed.ports[name][port] for name, port in way]
                fixed.update(other for other in nets if abs(timing.through(other) + known) < SAME)
        return moves

    def _improve(self, way: list[Pin]) -> set[int]:
        """Take the move that gains the most for a way, of one for each of its cells; the nets with other times then."""
        first, _ = self._placed.source(way[0])
        names = dict.fromkeys([first, *(name for name, _ in way)])
        memories = [name for name in names if name in self._memories]
        groups = dict.fromkeys(group for name in names if (group := self._tiles.group(name)))
        options = [(self._gain(group, place), group, place) for group in groups if (place := self._find(group))]
        swaps = [((name, other), self._swap_gain(name, other)) for name in memories if (other := self._partner(name))]
        gain, group, place = max(options, default=(0.0, (), (0, 0, 0)))
        pair, swap_gain = max(swaps, key=lambda each: each[1], default=((), 0.0))
        if max(gain, swap_gain) < LEAST:
            return set()
        if gain >= swap_gain:
            return self._move(group, place)
        return self._swap(*pair)

    def _move(self, group: Cells, place: Place) -> set[int]:
        self._placed.move(group, place)
        return self._timing.moved(group)

    def _swap(self, one: str, other: str) -> set[int]:
        self._placed.swap(one, other)
        return self._timing.moved((one, other))

    def _gain(self, group: Cells, place: Place) -> float:
        """What a move would make the longest way through a group shorter, ns: it is tried."""
        before, old = self._longest(group), self._placed.place[group[0]]
        self._move(group, place)
        after = self._longest(group)
        self._move(group, old)
        return before - after

    def _swap_gain(self, one: str, other: str) -> float:
        before = self._longest((one,))
        self._swap(one, other)
        after = max(self._longest((one,)), self._longest((other,)))
        self._swap(one, other)
        return before - after

    def _longest(self, cells: Iterable[str]) -> float:
        """Of the ways through cells, ns."""
        return max((self._through(name, port, net) for name in cells for port, net in self._placed.ports[name].items()
                    if self._timing.timed(net)), default=NEVER)  # fmt: skip

    def _through(self, name: str, port: str, net: int) -> float:
        pin = name, port
        if self._placed.driver[net] == pin:
            return self._timing.through(net)
        return self._timing.ready[net] + self._timing.wire(pin) + self._timing.behind(pin)

    def _find(self, group: Cells) -> Place | None:
        """The best place for a group, if one is better than where it is."""
        ways, most = self._estimates.of_group(group), self._longest(group) - LEAST
        for index in np.argsort(ways, axis=None)[:TILES_TRIED]:
            column, row = map(int, np.unravel_index(index, ways.shape))
            if ways[column, row] > most:
                return None
            if place := self._tiles.find(group, column, row):
                return place
        return None

    def _partner(self, name: str) -> str | None:
        """The block RAM to change places with so that both are better than this one is now, if there is one."""
        here = self._estimates.of_memory(name, [self._placed.place[other] for other in self._memories])
        best, most = None, self._longest((name,)) - LEAST
        for index in np.argsort(here):
            if here[index] > most:
                break
            other = self._memories[index]
            both = max(here[index], self._estimates.of_memory(other, [self._placed.place[name]])[0])
            if other != name and both < most:
                best, most = other, both
        return best
