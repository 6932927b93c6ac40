"""Makes loads of tiles equal: parts of tables move from the tile with most work to those with least, whole or cut."""

from collections.abc import Callable, Sequence

from daedal.system.cuts import LEAST_SLICE
from daedal.system.demand import Demand
from daedal.system.loads import Part, Tile
from daedal.system.plan import Range

CLOSE = 1.01
"""Longest ÷ mean load at which no more is cut."""

MOST_LOOKED_AT = 64
"""Parts of a tile of which one is exchanged, or cut by columns: those with most work."""


class Balance:
    """Tiles whose loads are made equal.

    Parameters
    ----------
    tiles
        The tiles, with all parts.
    part_of
        Makes the part of a table of some columns and bags.
    slices_of
        A part in so many slices of columns.
    capacity
        Bytes that a tile has for tables.
    most_bytes
        Bytes that all tiles together may take for tables and copies.
    """

    def __init__(
        self,
        tiles: Sequence[Tile],
        part_of: Callable[[Demand, Range, Range], Part],
        slices_of: Callable[[Part, int], list[Part]],
        capacity: int,
        most_bytes: float,
    ) -> None:
        self._tiles, self._part_of, self._slices_of = tiles, part_of, slices_of
        self._capacity, self._most = capacity, most_bytes
        self._left = 0.0
        """Bytes that more copies may take."""

    def improve(self) -> bool:
        """Take load from the tile with most; whether that was possible, and worth it."""
        mean = sum(tile.load for tile in self._tiles) / len(self._tiles)
        high = max(self._tiles, key=lambda tile: (tile.load, -tile.number))
        self._left = max(0.0, self._most - sum(tile.bytes for tile in self._tiles))
        if high.load <= CLOSE * mean:
            return False
        below = sorted((tile for tile in self._tiles if tile.load < mean), key=lambda tile: (tile.load, tile.number))
        return (
            any(self._move(high, low, mean) or self._divide(high, low, mean) for low in below)
            or any(self._move(high, low, mean, least=0.0) for low in below)
            or any(self._exchange(high, low) for low in below)
            or any(self._divide(high, low, mean, evenly=True) for low in below)
            or self._slice_off(high, below, mean)
            or self._slice_one(high)
        )

    def _move(self, high: Tile, low: Tile, mean: float, least: float = 0.9) -> bool:
        """Move a part as it is that takes at least this share of what one of the tiles has too much or too little."""
        wanted, gap, left = min(high.load - mean, mean - low.load), high.load - low.load, self._left
        fits = [
            part for part in high.parts
            if least * wanted <= part.load and 0 < part.load < (1.1 * wanted if least else 0.999 * gap)
            and low.room_for(part, self._capacity) and low.added(part) - high.freed(part) <= left
        ]  # fmt: skip
        if not fits:
            return False
        best = min(fits, key=lambda part: (abs(part.load - wanted), part.demand.table.name, part.bags))
        high.remove(best)
        low.add(best)
        return True

    def _divide(self, high: Tile, low: Tile, mean: float, *, evenly: bool = False) -> bool:
        """Give some bags of a part to another tile, of the part whose copy takes fewest bytes: no more than either tile
        is away from the mean, or ``evenly``, half of what they are apart.
        """
        over, under = high.load - mean, mean - low.load
        wanted, left = over if evenly else min(over, under), self._left
        chosen: tuple[tuple[float, float, str], Part, int] | None = None
        for part in high.parts:
            bags = part.bags[1] - part.bags[0]
            room = (high.load - low.load - part.fixed) / 2 if evenly else under - part.fixed
            count = min(bags - 1, round(min(over, room) / part.per_bag)) if part.per_bag else 0
            cost = low.added(part)
            if count < 1 or count * part.per_bag < 0.3 * wanted or not low.room_for(part, self._capacity):
                continue
            if cost > left:
                continue
            rank = (cost, abs(count * part.per_bag - wanted), part.demand.table.name)
            if chosen is None or rank < chosen[0]:
                chosen = rank, part, count
        if chosen is None:
            return False
        _, part, count = chosen
        cut = part.bags[1] - count
        high.remove(part)
        high.add(self._part_of(part.demand, part.columns, (part.bags[0], cut)))
        low.add(self._part_of(part.demand, part.columns, (cut, part.bags[1])))
        return True

    def _exchange(self, high: Tile, low: Tile) -> bool:
        """Exchange two parts, if that brings the tiles nearer to each other."""
        gap = high.load - low.load
        best: tuple[float, Part, Part] | None = None
        smaller = sorted(low.parts, key=lambda part: part.load)[:MOST_LOOKED_AT]
        for one in sorted(high.parts, key=lambda part: -part.load)[:MOST_LOOKED_AT]:
            for other in smaller:
                by = one.load - other.load
                left = abs(gap - 2 * by)
                if by > 0 and left < 0.9 * gap and (best is None or left < best[0]):
                    best = left, one, other
        if best is None:
            return False
        _, one, other = best
        if low.bytes + one.bytes > self._capacity or high.bytes + other.bytes > self._capacity:
            return False
        more = low.added(one) + high.added(other) - high.freed(one) - low.freed(other)
        if more > self._left:
            return False
        high.remove(one)
        low.remove(other)
        high.add(other)
        low.add(one)
        return True

    def _slice_off(self, high: Tile, below: Sequence[Tile], mean: float) -> bool:
        """Give half of the columns of some bags of a part to another tile: of all its bags, or of so many that the tile
        has little too much then. The half that stays is a table of its own beside the bags that stay whole.
        """
        over, spare = high.load - mean, self._left
        best: tuple[tuple[float, float], Tile, Part, list[Part], Part] | None = None
        for part in sorted(high.parts, key=lambda each: (-each.load, each.demand.table.name))[:MOST_LOOKED_AT]:
            step, width = part.demand.step, (part.columns[1] - part.columns[0]) * part.demand.element
            if not step or width < 2 * max(LEAST_SLICE, step * part.demand.element):
                continue
            halves, (first, end) = self._slices_of(part, 2), part.bags
            few = min(end - first, max(1, round(over / halves[1].per_bag))) if halves[1].per_bag else end - first
            for count in {few, end - first}:
                ends = end - count, end
                kept, moved = (self._part_of(part.demand, half.columns, ends) for half in halves)
                stay = [kept] + (
                    [self._part_of(part.demand, part.columns, (first, ends[0]))] if ends[0] > first else []
                )
                left = high.load - part.load + sum(each.load for each in stay)
                more = high.added(kept) - (high.freed(part) if len(stay) == 1 else 0)
                for low in below:
                    cost = more + low.added(moved)
                    after = max(left, low.load + moved.load)
                    fits = cost <= spare and low.room_for(moved, self._capacity)
                    if fits and after < high.load - 0.3 * over and (best is None or (after, cost) < best[0]):
                        best = (after, cost), low, part, stay, moved
        if best is None:
            return False
        _, low, part, stay, moved = best
        high.remove(part)
        for each in stay:
            high.add(each)
        low.add(moved)
        return True

    def _slice_one(self, high: Tile) -> bool:
        """Cut a part of this tile by columns, so that a slice can go elsewhere."""
        for part in sorted(high.parts, key=lambda each: (-each.load, each.demand.table.name)):
            step = part.demand.step
            width = (part.columns[1] - part.columns[0]) * part.demand.element
            if step and width >= 2 * max(LEAST_SLICE, step * part.demand.element):
                halves = self._slices_of(part, 2)
                if sum(high.added(each) for each in halves) - high.freed(part) > self._left:
                    continue
                high.remove(part)
                for each in halves:
                    high.add(each)
                return True
        return False
