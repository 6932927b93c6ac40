"""How long the longest way through cells would be if they were elsewhere: for many places at once, from wires' lengths.

Direct wires within a tile are not looked for, so the truth may be shorter.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daedal.hw.boards.placement.delays import STEPS, Place, spread
from daedal.hw.boards.placement.netlist import Pin, Placed
from daedal.hw.boards.placement.tiles import Cells
from daedal.hw.boards.placement.timing import NEVER, Timing

COLUMNS, ROWS = 127, 96
"""Of LFE5U-85F, the largest part."""

SPREAD = np.array([spread(distance) for distance in range(max(COLUMNS, ROWS))])

Times = NDArray[np.float64]
"""ns, for each column and row, or for each of some places."""

Anchor = tuple[int, int, float]
"""Column and row of a wire's other end, and what a way takes without that wire, ns."""


class Estimates:
    """Of a placed design, as it is when asked."""

    def __init__(self, placed: Placed, timing: Timing) -> None:
        self._placed, self._timing = placed, timing

    def of_group(self, group: Cells) -> Times:
        """The longest way through a LUT, a flip-flop or both in each tile."""
        return np.maximum.reduce([self._of_cell(name, group) for name in group])

    def _of_cell(self, name: str, group: Cells) -> Times:
        before, within = [], NEVER
        for port, net in self._inputs(name):
            ready = self._timing.ready[net] + self._added((name, port))
            driver = self._placed.driver[net][0]
            if driver in group:
                within = max(within, ready + STEPS * self._timing.step)
            elif self._timing.wire((name, port)):  # others are on the part's own network
                before.append(self._anchor(driver, ready))
        arrival = ways = np.maximum(self._reach(before), within)
        for pin, net in self._outputs(name):
            after = [self._anchor(reader, self._timing.behind((reader, port)))
                     for reader, port in self._placed.readers[net] if reader not in group]  # fmt: skip
            start = self._timing.start(pin)
            ways = np.maximum(ways, (arrival if start is None else start) + self._reach(after))
        return ways

    def of_memory(self, name: str, places: Sequence[Place]) -> Times:
        """The longest way through a block RAM at each of these places."""
        anchors = [self._anchor(self._placed.driver[net][0], self._timing.ready[net] + self._added((name, port)))
                   for port, net in self._inputs(name) if self._timing.wire((name, port))]  # fmt: skip
        anchors += [self._anchor(reader, self._timing.ready[net] + self._timing.behind((reader, port)))
                    for _, net in self._outputs(name) for reader, port in self._placed.readers[net]]  # fmt: skip
        if not anchors:
            return np.full(len(places), NEVER)
        x, y, time = (np.array(values) for values in zip(*anchors, strict=True))
        columns, rows = (np.array([place[axis] for place in places])[:, None] for axis in (0, 1))
        wires = STEPS + SPREAD[np.abs(columns - x)] + SPREAD[np.abs(rows - y)]
        return np.asarray((time + self._timing.step * wires).max(axis=1))

    def _reach(self, anchors: list[Anchor]) -> Times:
        """From or to the farthest of these, in each tile."""
        longest = np.full((COLUMNS, ROWS), NEVER)
        for x, y, time in anchors:
            across, up = SPREAD[np.abs(np.arange(COLUMNS) - x)], SPREAD[np.abs(np.arange(ROWS) - y)]
            np.maximum(longest, time + self._timing.step * (STEPS + across[:, None] + up[None, :]), out=longest)
        return longest

    def _inputs(self, name: str) -> list[tuple[str, int]]:
        nets = [(port, net) for port, net in self._placed.ports[name].items() if self._timing.timed(net)]
        return [(port, net) for port, net in nets if self._placed.driver[net] != (name, port)]

    def _outputs(self, name: str) -> list[tuple[Pin, int]]:
        nets = [((name, port), net) for port, net in self._placed.ports[name].items() if self._timing.timed(net)]
        return [(pin, net) for pin, net in nets if self._placed.driver[net] == pin]

    def _added(self, pin: Pin) -> float:
        """From an input to the cell's output, or to the clock's edge, ns."""
        end = self._timing.ends.get(pin)
        return max((ns for _, ns in self._timing.outputs(pin)), default=NEVER) if end is None else end

    def _anchor(self, name: str, time: float) -> Anchor:
        x, y, _ = self._placed.place[name]
        return x, y, time
