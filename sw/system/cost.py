"""What a piece costs a tile: lines of its memory, by the share of them that it gives for rows so long, or lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from daedal.hw.config.core import Config
from daedal.system.demand import Demand

START_CYCLES = 300
"""Of a launch before its first row and after its last one."""


@dataclass(frozen=True)
class Costs:
    """Lines per cycle of a memory, while a launch works.

    Attributes
    ----------
    shares
        By the lines of a row, for rows of at least so many; 0 is for rows of at most half a line.
    writes
        What a share is less by if all lines were written, as turns between reading and writing take time.
    latency
        Cycles from a request to its line.
    """

    shares: Mapping[int, float]
    writes: float
    latency: int

    def share(self, row_lines: int, *, is_short: bool, written: float) -> float:
        """Lines per cycle for rows of so many lines, if this share of the lines is written."""
        key = 0 if is_short else max(lines for lines in self.shares if lines <= row_lines)
        return self.shares[key] - self.writes * written


DRAM = Costs({0: 0.88, 1: 0.74, 2: 0.89, 4: 0.92, 8: 0.928, 16: 0.938}, writes=0.04, latency=60)
"""Fitted to the rows of ``bench/results`` (workloads, sweep) with ``litedram-ddr3-x16``, ``-x64`` and ``ddr4-x64``."""

IDEAL = Costs({0: 0.99, 1: 1.0}, writes=0.0, latency=100)
"""Fitted to those with memory ``ideal``."""


ON_THE_WAY = 20
"""Cycles of a line besides the memory's, from its request to the place that it leaves free."""


def costs_of(memory: str, config: Config) -> Costs:
    """The costs with a memory model: no more lines come per cycle than the machine has places for on their way."""
    model, _, options = memory.partition(":")
    costs = IDEAL if model == "ideal" else DRAM
    given = [text.partition("=")[2] for text in options.split(",") if text.startswith("latency=")]
    latency = int(given[-1]) if given else costs.latency
    most = config.reorder_beats / (latency + ON_THE_WAY)
    return replace(costs, shares={lines: min(share, most) for lines, share in costs.shares.items()})


def cycles_of(demand: Demand, columns: int, config: Config, costs: Costs) -> float:
    """Cycles of some columns of all bags of a table, without those of the launch: of the memory, or of the lanes."""
    line, width = config.bus_bytes, demand.bytes_of(columns)
    row_lines = -(-width // line)
    written = demand.bags * columns * demand.element / line
    lines = demand.lookups * row_lines + demand.overhead / line + written
    if not lines:
        return 0.0
    memory = lines / costs.share(row_lines, is_short=2 * width <= line, written=written / lines)
    return max(memory, demand.lookups * -(-columns // config.lanes))
