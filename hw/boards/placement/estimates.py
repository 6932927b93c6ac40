"""How long the longest way through cells would be if they were elsewhere: for many places at once, from wires' lengths.

Direct wires within a tile are not looked for, so the truth may be shorter.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daedal.hw.boards.placement.delays import STEPS, Pin, Place, spread
from daedal.hw.boards.placement.netlist import Placed
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
        before, within, inputs = [], NEVER, self._inputs(name)
        for pin, net in inputs:
            driver = self._placed.driver[net]
            if not self._timing.depends(net):
                within = max(within, self._timing.ready[net] + self._added(pin))
            elif driver[0] not in group:
                before.append(self._anchor(driver[0], self._timing.ready[net] + self._added(pin)))
            elif (start := self._timing.start(driver)) is not None:
                within = max(within, start + self._timing.wire(pin) + self._added(pin))
        arrival = np.maximum(self._reach(before), within)
        ways = arrival if any(pin in self._timing.ends for pin, _ in inputs) else np.full_like(arrival, NEVER)
        for output, net in self._outputs(name):
            start = self._timing.start(output)
            ready = arrival if start is None else start
            after = []
            for pin in self._placed.readers[net]:
                if pin[0] in group:  # a wire that moves along
                    ways = np.maximum(ways, ready + self._timing.wire(pin) + self._timing.behind(pin))
                else:
                    after.append(self._anchor(pin[0], self._timing.behind(pin)))
            ways = np.maximum(ways, ready + self._reach(after))
        return ways

    def of_memory(self, name: str, places: Sequence[Place]) -> Times:
        """The longest way through a block RAM at each of these places."""
        anchors = [self._anchor(self._placed.driver[net][0], self._timing.ready[net] + self._added(pin))
                   for pin, net in self._inputs(name) if self._timing.depends(net)]  # fmt: skip
        anchors += [self._anchor(pin[0], self._timing.ready[net] + self._timing.behind(pin))
                    for _, net in self._outputs(name) for pin in self._placed.readers[net]]  # fmt: skip
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

    def _inputs(self, name: str) -> list[tuple[Pin, int]]:
        return [(pin, net) for pin, net in self._pins(name) if self._placed.driver[net] != pin]

    def _outputs(self, name: str) -> list[tuple[Pin, int]]:
        return [(pin, net) for pin, net in self._pins(name) if self._placed.driver[net] == pin]

    def _pins(self, name: str) -> list[tuple[Pin, int]]:
        """Those with times, and the nets there."""
        nets = self._placed.ports[name].items()
        return [((name, port), net) for port, net in nets if self._timing.timed(net)]

    def _added(self, pin: Pin) -> float:
        """From an input to the cell's output, or to the clock's edge, ns."""
        end = self._timing.ends.get(pin)
        return max((ns for _, ns in self._timing.outputs(pin)), default=NEVER) if end is None else end

    def _anchor(self, name: str, time: float) -> Anchor:
        x, y, _ = self._placed.place[name]
        return x, y, time
