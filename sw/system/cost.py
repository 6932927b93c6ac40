"""What a piece costs a tile: lines of its memory, by the share of them that it gives for rows so long, or lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from daedal.hw.config.core import Config
from daedal.system.demand import Demand


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
    start
        Cycles of a launch before its first row and after its last one, less those of a table.
    table
        Cycles in which a table, or a part of one, begins and ends: descriptors, first indices, last results.
    row
        Least cycles of a look-up, where the memory opens rows of its banks no faster.
    most_read
        Lines that can be read per cycle: the machine has so many places for those on their way.
    """

    shares: Mapping[int, float]
    writes: float
    latency: int
    start: int
    table: int
    row: float = 0.0
    most_read: float = inf

    def share(self, row_lines: int, *, is_short: bool, written: float) -> float:
        """Lines per cycle for rows of so many lines, if this share of the lines is written."""
        key = 0 if is_short else max(lines for lines in self.shares if lines <= row_lines)
        return self.shares[key] - self.writes * written


DRAM = Costs({0: 0.88, 1: 0.74, 2: 0.925, 4: 0.935, 8: 0.945, 16: 0.95}, writes=0.02, latency=57, start=180, table=180)
"""Fitted to the rows of ``bench/results`` (workloads, sweep) with ``litedram-ddr3-x16``, ``-x64`` and ``ddr4-x64``, and
to random launches of 1 to 12 tables on the target ``model``.
"""

X64 = replace(DRAM, shares={**DRAM.shares, 1: 0.8})
"""The same with channels of 64 bits, whose pages are four times as long."""

HBM = replace(DRAM, row=6.7)
"""Fitted to look-ups with ``hbm2e`` on the target ``model``: 1 KiB rows of banks, of which it opens one in 6 cycles."""

IDEAL = Costs({0: 0.99, 1: 1.0}, writes=0.0, latency=100, start=340, table=190)
"""Fitted to those with memory ``ideal``."""

_BY_MEMORY = {"ideal": IDEAL, "hbm2e": HBM}
"""By name; those of other DRAMs are of 64 bits, or as those of ``litedram-ddr3-x16``."""

ON_THE_WAY = 20
"""Cycles of a line besides the memory's, from its request to the place that it leaves free."""


def costs_of(memory: str, config: Config) -> Costs:
    """The costs with a memory model."""
    model, _, options = memory.partition(":")
    costs = _BY_MEMORY.get(model, X64 if model.endswith("-x64") else DRAM)
    given = [text.partition("=")[2] for text in options.split(",") if text.startswith("latency=")]
    latency = int(given[-1]) if given else costs.latency
    return replace(costs, most_read=config.reorder_beats / (latency + ON_THE_WAY))


def cycles_of(demand: Demand, columns: int, config: Config, costs: Costs) -> float:
    """Cycles of some columns of all bags of a table, without those of the launch and of the table's beginning and end:
    of the memory, or of the lanes.
    """
    line, width = config.bus_bytes, demand.bytes_of(columns)
    row_lines = -(-width // line)
    written = demand.bags * columns * demand.element / line
    read = demand.overhead_of(columns) / line
    lines = demand.lookups * row_lines + read + written
    if not lines:
        return 0.0
    memory = lines / costs.share(row_lines, is_short=2 * width <= line, written=written / lines)
    opens = demand.lookups * costs.row + (read + written) / costs.share(1, is_short=False, written=0)
    places = (lines - written) / costs.most_read
    return max(memory, places, opens if costs.row else 0.0, demand.lookups * -(-columns // config.lanes))
