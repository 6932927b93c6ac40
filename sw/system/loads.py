"""Parts of tables on tiles while a plan is made: their cycles and bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from daedal.system.demand import Demand
from daedal.system.plan import Range


@dataclass(eq=False)
class Part:
    """Columns and bags of a table; ``per_bag`` are cycles, and ``fixed`` those that it takes however many bags it has;
    ``bytes`` are those of the columns of all rows.
    """

    demand: Demand
    columns: Range
    bags: Range
    per_bag: float
    fixed: float
    bytes: int

    @property
    def load(self) -> float:
        """Cycles."""
        return self.fixed + self.per_bag * (self.bags[1] - self.bags[0])


@dataclass(eq=False)
class Tile:
    """A tile, with what it does so far."""

    number: int
    parts: list[Part] = field(default_factory=list)
    load: float = 0.0
    held: dict[tuple[str, Range], int] = field(default_factory=dict)
    """How many parts need the same columns of a table."""
    bytes: int = 0

    def has(self, part: Part) -> bool:
        """Whether it has these columns of the table for others of its parts."""
        return (part.demand.table.name, part.columns) in self.held

    def added(self, part: Part) -> int:
        """Bytes more that it has with this part."""
        return 0 if self.has(part) else part.bytes

    def freed(self, part: Part) -> int:
        """Bytes less that it has without this part of its own."""
        return part.bytes if self.held[part.demand.table.name, part.columns] == 1 else 0

    def room_for(self, part: Part, capacity: int) -> bool:
        """Whether they fit, if its tables may take ``capacity`` bytes."""
        return self.has(part) or self.bytes + part.bytes <= capacity

    def add(self, part: Part) -> None:
        """It does this part too."""
        key = part.demand.table.name, part.columns
        self.bytes += 0 if key in self.held else part.bytes
        self.held[key] = self.held.get(key, 0) + 1
        self.parts.append(part)
        self.load += part.load

    def remove(self, part: Part) -> None:
        """It does this part no more."""
        key = part.demand.table.name, part.columns
        self.held[key] -= 1
        if not self.held[key]:
            del self.held[key]
            self.bytes -= part.bytes
        self.parts.remove(part)
        self.load -= part.load


def settle(tiles: Sequence[Tile], part_of: Callable[[Demand, Range, Range], Part]) -> None:
    """Let the bags that a tile has of the same columns of a table follow each other, which cost as much as others, and
    make parts that lie beside each other one; ``part_of`` makes the part of some columns and bags.
    """
    same: dict[tuple[str, Range], list[tuple[Range, Part, Tile]]] = {}
    for tile in tiles:
        for part in tile.parts:
            same.setdefault((part.demand.table.name, part.columns), []).append((part.bags, part, tile))
    found: dict[int, list[Part]] = {tile.number: [] for tile in tiles}
    for parts in same.values():
        first, counts = 0, dict[int, int]()
        for (start, end), part, tile in sorted(parts, key=lambda each: each[0]):
            if counts and start != first + sum(counts.values()):  # others have the columns of the bags between
                _follow(part.demand, part.columns, first, counts, found, part_of)
                counts = {}
            first = first if counts else start
            counts[tile.number] = counts.get(tile.number, 0) + end - start
        _follow(part.demand, part.columns, first, counts, found, part_of)
    for tile in tiles:
        for part in list(tile.parts):
            tile.remove(part)
        tile.load = 0.0
        for part in _joined(_joined(found[tile.number], part_of, along="bags"), part_of, along="columns"):
            tile.add(part)


def _follow(
    demand: Demand,
    columns: Range,
    first: int,
    counts: Mapping[int, int],
    found: Mapping[int, list[Part]],
    part_of: Callable[[Demand, Range, Range], Part],
) -> None:
    """Give so many bags to each tile, from the first one on."""
    for number, count in counts.items():
        found[number].append(part_of(demand, columns, (first, first + count)))
        first += count


def _joined(parts: list[Part], part_of: Callable[[Demand, Range, Range], Part], *, along: str) -> list[Part]:
    def ends(part: Part) -> tuple[Range, Range]:
        return (part.columns, part.bags) if along == "bags" else (part.bags, part.columns)

    joined: list[Part] = []
    for part in sorted(parts, key=lambda each: (each.demand.table.name, ends(each))):
        last = joined[-1] if joined else None
        across, own = ends(part)
        if last is not None and last.demand is part.demand and ends(last)[0] == across and ends(last)[1][1] == own[0]:
            both = ends(last)[1][0], own[1]
            joined[-1] = part_of(part.demand, *((across, both) if along == "bags" else (both, across)))
        else:
            joined.append(part)
    return joined
