"""Parts of tables on tiles while a plan is made: their cycles and bytes."""

from collections.abc import Callable
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


def merge(tile: Tile, part_of: Callable[[Demand, Range, Range], Part]) -> None:
    """Make parts that lie beside each other one; ``part_of`` makes the part of some columns and bags."""
    found = _joined(_joined(list(tile.parts), part_of, along="bags"), part_of, along="columns")
    for part in list(tile.parts):
        tile.remove(part)
    tile.load = 0.0
    for part in found:
        tile.add(part)


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
