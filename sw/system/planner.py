"""Makes plans: tables are shared out largest first, and cut where that leaves tiles with unequal loads."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

from daedal.driver.memory.layout import row_pitch
from daedal.errors import OutOfDeviceMemory
from daedal.hw.config.core import Config
from daedal.system.balance import Balance
from daedal.system.cost import costs_of
from daedal.system.cuts import LEAST_SLICE
from daedal.system.demand import Demand
from daedal.system.loads import Part, Tile, settle
from daedal.system.plan import Piece, Plan, Range

NEARLY = 0.1
"""Of a tile's share: what a slice may have more before it is cut again, which takes the indices once more."""

FOR_HEAVY = 0.8
"""The share of the bytes for copies that may go to tables with more work than a tile has time for."""

FOR_BUFFERS = 1 / 16
"""The share of a tile's memory that tables leave to the buffers of calls."""


class Planner:
    """Shares the ``demands`` of a sample out to so many tiles, of ``memory_bytes`` each; ``extra_bytes`` are those for
    copies, as a share of all tables' bytes.
    """

    def __init__(
        self,
        demands: Sequence[Demand],
        config: Config,
        memory: str,
        tiles: int,
        memory_bytes: int,
        extra_bytes: float,
    ) -> None:
        self._demands, self._config, self._memory = demands, config, memory
        self._costs = costs_of(memory, config)
        self._capacity = int(memory_bytes * (1 - FOR_BUFFERS))
        self._tiles = [Tile(number) for number in range(tiles)]
        whole = [self._part(each, (0, each.table.dim)) for each in demands]
        self._total = sum(part.bytes for part in whole)
        self._budget = extra_bytes * self._total
        self._parts = self._sliced(whole)

    def plan(self) -> Plan:
        """The plan. OutOfDeviceMemory names a table that fits no tile."""
        for part in sorted(self._parts, key=lambda each: -each.load):
            self._place(part)
        balance = Balance(self._tiles, self._part, self._slices, self._capacity, self._total + self._budget)
        for _ in range(64 + 16 * len(self._tiles)):
            if not balance.improve():
                break
        settle(self._tiles, self._part)
        pieces = [
            Piece(part.demand.table.name, part.columns, part.bags, tile.number)
            for tile in self._tiles
            for part in tile.parts
        ]
        pieces.sort(key=lambda each: (each.table, each.columns, each.bags))
        cycles = [round(tile.load + self._costs.start * bool(tile.parts)) for tile in self._tiles]
        held = sum(tile.bytes for tile in self._tiles)
        return Plan(
            tuple(pieces),
            tuple(demand.table for demand in self._demands),
            (self._config.name, self._config.hash),
            self._memory,
            len(self._tiles),
            tuple(cycles),
            round(max(0.0, held / self._total - 1), 4) if self._total else 0.0,
        )

    def _part(self, demand: Demand, columns: Range, bags: Range | None = None) -> Part:
        width = columns[1] - columns[0]
        bags = (0, demand.table.bags) if bags is None else bags
        load = self._costs.cycles_of(demand, width)
        fixed = self._costs.table * max(1.0, demand.bags / demand.table.bags)
        return Part(demand, columns, bags, load / demand.table.bags, fixed, self._bytes(demand, width))

    def _bytes(self, demand: Demand, width: int) -> int:
        superblock = self._config.superblock_bytes
        size = demand.rows * row_pitch(demand.bytes_of(width), self._config)
        return -(-size // superblock) * superblock

    # ------------------------------------------------------------------ columns

    def _sliced(self, whole: Sequence[Part]) -> list[Part]:
        """Tables that are too large, or whose copies would take too many bytes, cut by columns; all others as they
        are.
        """
        total = sum(part.load for part in whole)
        target, budget = total / len(self._tiles), FOR_HEAVY * self._budget
        found = []
        for part in sorted(whole, key=lambda each: (each.bytes, each.demand.table.name)):
            count = 1
            while (cost := self._copies(part, count, target)) is None or cost > budget:
                more = self._next_count(part, count)
                if more is None or (cost is not None and not self._is_worth(part, count, more, total)):
                    break
                count = more
            cost = self._copies(part, count, target)
            if cost is None:
                raise self._too_large(part, count)
            budget -= min(cost, budget)
            slices = self._slices(part, count)
            total += sum(each.load for each in slices) - part.load
            found += slices
        return found

    def _is_worth(self, part: Part, count: int, more: int, total: float) -> bool:
        """Whether more slices of a table, which is one of those with this load, take less time: narrow ones may take as
        long as wide ones, where a DRAM opens its rows no faster.
        """
        rest = total - part.load
        few, many = ([each.load for each in self._slices(part, number)] for number in (count, more))
        before = max(max(few), (rest + sum(few)) / len(self._tiles))
        return max(max(many), (rest + sum(many)) / len(self._tiles)) < before

    def _copies(self, part: Part, count: int, target: float) -> float | None:
        """Bytes of the copies that a table in so many slices needs to be shared out; None if a slice fits no tile."""
        slices = self._slices(part, count)
        if max(each.bytes for each in slices) > self._capacity:
            return None
        if target <= 0 or len(self._tiles) == 1:
            return 0.0
        return sum(max(0, ceil(each.load / target - NEARLY) - 1) * each.bytes for each in slices)

    def _next_count(self, part: Part, count: int) -> int | None:
        step = part.demand.step
        if not step:
            return None
        narrowest = max(step, LEAST_SLICE // part.demand.element)
        is_needed = max(each.bytes for each in self._slices(part, count)) > self._capacity
        most = part.demand.table.dim // (step if is_needed else narrowest)
        if not is_needed:
            most = min(most, len(self._tiles))
        return min(2 * count, most) if count < most else None

    def _slices(self, part: Part, count: int) -> list[Part]:
        """The part in so many slices of about equally many columns, at lines where there are enough."""
        first, end = part.columns
        dim, step = end - first, max(part.demand.step, 1)
        line = self._config.bus_bytes // part.demand.element
        if line > step and dim // line >= count:
            step = line // step * step
        units = -(-dim // step)
        count = min(count, units)
        ends = [first + min(dim, units * n // count * step) for n in range(count + 1)]
        return [self._part(part.demand, pair, part.bags) for pair in pairwise(ends)]

    def _too_large(self, part: Part, count: int) -> OutOfDeviceMemory:
        size = max(each.bytes for each in self._slices(part, count))
        what = "even its narrowest slice of columns takes" if count > 1 else "it takes"
        return OutOfDeviceMemory(
            f"table {part.demand.table.name!r} must fit a tile, but {what} {size:,} of the {self._capacity:,} bytes "
            "that a tile has for tables: open the system with a larger memory_bytes"
        )

    # ------------------------------------------------------------------ tiles

    def _place(self, part: Part) -> None:
        fitting = [tile for tile in self._tiles if tile.room_for(part, self._capacity)]
        if not fitting:
            raise OutOfDeviceMemory(
                f"table {part.demand.table.name!r} must fit a tile, but {part.bytes:,} bytes of it do not go beside "
                f"other tables or parts: open the system with more tiles than {len(self._tiles)}, or a larger "
                "memory_bytes"
            )
        min(fitting, key=lambda tile: (tile.load, tile.bytes, tile.number)).add(part)
