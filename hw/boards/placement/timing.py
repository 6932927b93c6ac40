"""When signals of a placed design are there, and how long what follows takes: kept right while cells move."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from daedal.hw.boards.placement.delays import NETWORK, Delays, Pin, step_delay, steps
from daedal.hw.boards.placement.netlist import Placed

NEVER = -1000.0
"""ns: of a signal that no clock leads to, or that leads to none."""

CLOCKS = {"CLK", "WCK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3"}
"""Ports of flip-flops, distributed memories, block RAMs and multipliers."""

SAME = 1e-9
"""ns between times that are one."""


def _check_clocks(placed: Placed) -> None:
    """ValueError unless there is one clock, of which all cells use the rising edge."""
    clocks = {net for ports in placed.ports.values() for port, net in ports.items() if port in CLOCKS}
    if len(clocks) != 1:
        raise ValueError(f"the design must have one clock, not {len(clocks)}")
    if inverted := next((name for name in placed.cells if placed.parameter(name, "CLKMUX") == "INV"), None):
        raise ValueError(f"all cells must use the clock's rising edge: {inverted} does not")


def _check_delays(placed: Placed, delays: Delays) -> None:
    """ValueError unless all cells and inputs with delays are in the design."""
    if other := next((name for name in delays.through if name not in placed.cells), None):
        raise ValueError(f"the delays are of another design: this one has no cell {other}")
    driven = {pin for net in placed.driver for pin in placed.readers[net]}
    if wires := delays.wires.keys() - driven:
        raise ValueError(f"the delays are of another design: this one has no wire to {'/'.join(min(wires))}")


class Timing:
    """Times of a design with one clock.

    ValueError with several, with delays of another design, or if the wires' delays are not nextpnr's formula.

    The longest way through a net takes ``ready[net] + rest[net]`` ns.

    Attributes
    ----------
    ready
        Net -> when it has its value, ns after the clock's edge.
    rest
        Net -> the longest from there to a clock's edge, ns.
    order
        The nets, each behind those that it depends on.
    step
        ns that a step of a wire takes.
    """

    def __init__(self, placed: Placed, delays: Delays) -> None:
        self.placed, self._starts, self.ends = placed, delays.starts, delays.ends
        _check_clocks(placed)
        _check_delays(placed, delays)
        self.step = step_delay((self._steps(pin), delay) for pin, delay in delays.wires.items())
        self._inputs: dict[int, list[tuple[str, str, int, float]]] = defaultdict(list)
        """Net -> cell, input, the net there and the delay, of each way that leads to it through a cell."""
        self._outputs: dict[Pin, list[tuple[int, float]]] = defaultdict(list)
        """Input -> nets behind it and the delays to them."""
        for name, ways in delays.through.items():
            self._add_ways(name, ways)
        self._anywhere = {net for net, (_, port) in placed.driver.items() if port == NETWORK}
        """Nets whose wires take the same from anywhere to anywhere: tens of thousands of cells are on one."""
        self.order = self._ordered()
        self._rank = {net: rank for rank, net in enumerate(self.order)}
        self.ready: dict[int, float] = {}
        self.rest: dict[int, float] = {}
        for net in self.order:
            self.ready[net] = self._ready(net)
        for net in reversed(self.order):
            self.rest[net] = self._rest(net)

    def _add_ways(self, name: str, ways: Iterable[tuple[str, str, float]]) -> None:
        ports = self.placed.ports[name]
        for start, end, delay in ways:
            if start in ports and end in ports and ports[start] in self.placed.driver:
                self._inputs[ports[end]].append((name, start, ports[start], delay))
                self._outputs[name, start].append((ports[end], delay))

    def _ordered(self) -> list[int]:
        waiting = Counter({net: len(ways) for net, ways in self._inputs.items()})
        order = [net for net in self.placed.driver if not waiting[net]]
        for net in order:
            for pin in self.placed.readers[net]:
                for behind, _ in self._outputs.get(pin, ()):
                    waiting[behind] -= 1
                    if not waiting[behind]:
                        order.append(behind)
        return order  # nets in a loop of logic, which nextpnr cuts, and those behind are left out

    def _steps(self, pin: Pin) -> int:
        name, port = pin
        driver, output = self.placed.source(pin)
        return steps(output, self.placed.place[driver], port, self.placed.place[name])

    def wire(self, pin: Pin) -> float:
        """From its driver to an input, ns."""
        return self.step * self._steps(pin)

    def _ready(self, net: int) -> float:
        start = self._starts.get(self.placed.driver[net])
        if start is not None:
            return start
        ways = self._inputs.get(net, ())
        return max((self.ready.get(at, NEVER) + self.wire((name, port)) + ns for name, port, at, ns in ways),
                   default=NEVER)  # fmt: skip

    def start(self, pin: Pin) -> float | None:
        """When an output of a cell with a clock has its value, ns after the edge; None of any other."""
        return self._starts.get(pin)

    def outputs(self, pin: Pin) -> list[tuple[int, float]]:
        """The nets behind an input, by way of its cell, and the delays to them."""
        return self._outputs.get(pin, [])

    def behind(self, pin: Pin) -> float:
        """The longest way from an input to the clock's edge, ns."""
        end = self.ends.get(pin)
        if end is not None:
            return end
        return max((ns + self.rest.get(net, NEVER) for net, ns in self._outputs.get(pin, ())), default=NEVER)

    def _rest(self, net: int) -> float:
        return max((self.wire(pin) + self.behind(pin) for pin in self.placed.readers[net]), default=NEVER)

    def through(self, net: int) -> float:
        """The longest way through a net, ns."""
        return self.ready[net] + self.rest[net]

    def longest(self) -> float:
        """Of all ways, ns."""
        return max(self.through(net) for net in self.order)

    def timed(self, net: int) -> bool:
        """Whether a net has times: constants, and what is in or behind a loop of logic, have none."""
        return net in self._rank

    def depends(self, net: int) -> bool:
        """Whether a net has times that depend on where its cells are."""
        return net in self._rank and net not in self._anywhere

    def moved(self, cells: Iterable[str]) -> set[int]:
        """Count anew what depends on where these cells are; returns the nets with other times."""
        pins = [(name, port, net) for name in cells for port, net in self.placed.ports[name].items()]
        pins = [pin for pin in pins if pin[2] not in self._anywhere]
        driven = [net for name, port, net in pins if self.placed.driver.get(net) == (name, port)]
        behind = [net for at in driven for net in self._after(at)]
        changed = self._settle([*driven, *behind], 1, self.ready, self._ready, self._after)
        return changed | self._settle([net for _, _, net in pins], -1, self.rest, self._rest, self._before)

    def _after(self, net: int) -> list[int]:
        return [behind for pin in self.placed.readers[net] for behind, _ in self._outputs.get(pin, ())]

    def _before(self, net: int) -> list[int]:
        return [at for _, _, at, _ in self._inputs.get(net, ())]

    def _settle(
        self, nets: Iterable[int], sign: int, times: dict[int, float], count: Callable[[int], float],
        dependent: Callable[[int], list[int]],
    ) -> set[int]:  # fmt: skip
        waiting = {net for net in nets if net in self._rank}
        queue = [(sign * self._rank[net], net) for net in waiting]
        heapq.heapify(queue)
        changed = set()
        while queue:
            _, net = heapq.heappop(queue)
            waiting.discard(net)
            time = count(net)
            if abs(time - times[net]) < SAME:
                continue
            times[net] = time
            changed.add(net)
            for other in dependent(net):
                if other in self._rank and other not in waiting:
                    waiting.add(other)
                    heapq.heappush(queue, (sign * self._rank[other], other))
        return changed

    def way(self, net: int) -> list[Pin]:
        """The longest way through a net: the inputs that it passes, the last one at a clock's edge."""
        before: list[Pin] = []
        first = net
        while self.placed.driver[first] not in self._starts:
            ways = [(self.ready[at] + self.wire((name, port)) + ns, (name, port), at)
                    for name, port, at, ns in self._inputs[first] if at in self.ready]  # fmt: skip
            _, pin, first = max(ways)
            before.insert(0, pin)
        after: list[Pin] = []
        while True:
            pin = max((self.wire(pin) + self.behind(pin), pin) for pin in self.placed.readers[net])[1]
            after.append(pin)
            if pin in self.ends:
                return before + after
            net = max((ns + self.rest.get(at, NEVER), at) for at, ns in self._outputs[pin])[1]
