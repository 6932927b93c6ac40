"""A plan: which tile of a system does which part of each table's work."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, overload

from daedal.base.files import parse_json, read_json, write_json
from daedal.base.messages import shown
from daedal.errors import FileError, InvalidSystem, PlanMismatch
from daedal.system.picture import picture_of
from daedal.system.plan_fields import list_of, number_of, object_of, range_of, text_of
from daedal.system.plan_values import check_number, check_numbers, check_parts, check_text

SCHEMA = 1
"""Of the files."""

MOST_TILES = 1024
"""Tiles of the largest system."""

Range = tuple[int, int]
"""From the first to the one behind the last."""


@dataclass(frozen=True)
class Piece:
    """What one tile does: some bags of a table, and of these some columns, each from the first to the one behind the
    last.

    Bags are those of the sample that the plan was made from; of more or fewer of them each piece gets its share.
    """

    table: str
    columns: Range
    bags: Range
    tile: int


@dataclass(frozen=True)
class PlannedTable:
    """A table as the plan knows it: its name in the model, its shape and element type, and the sample's bags and
    look-ups. ``rows`` is None for a table that is no tensor of the model's, but comes with a call.
    """

    name: str
    rows: int | None
    dim: int
    dtype: str
    bags: int
    lookups: int


class _Load:
    """``plan.load`` is a plan's, ``Plan.load`` reads one from a file."""

    @overload
    def __get__(self, plan: None, owner: "type[Plan]") -> "Callable[[str | Path], Plan]": ...

    @overload
    def __get__(self, plan: "Plan", owner: "type[Plan]") -> tuple[int, ...]: ...

    def __get__(self, plan: "Plan | None", owner: "type[Plan]") -> Any:
        return read_plan if plan is None else plan.cycles


@dataclass(frozen=True)
class Plan:
    """Who does what: frozen, and the same for all values of tensors and inputs.

    Made by ``daedal.plan``. ``load`` are the predicted cycles by tile; ``Plan.load(path)`` reads what ``save`` wrote.

    Attributes
    ----------
    pieces
        What the tiles do; together they are all bags and columns of all tables, each once.
    tables
        The tables.
    config, memory, tiles
        The system: name and hash of its configuration, the memory of each tile, and how many tiles there are.
    cycles
        Predicted cycles of each tile for the sample.
    extra
        Bytes of the copies of tables, as a share of the tables' bytes.
    """

    pieces: tuple[Piece, ...]
    tables: tuple[PlannedTable, ...]
    config: tuple[str, int]
    memory: str
    tiles: int
    cycles: tuple[int, ...]
    extra: float

    load = _Load()

    def __post_init__(self) -> None:
        self._check_values()
        if len(self.table) < len(self.tables):
            raise InvalidSystem("each table must be there once")
        for table in self.tables:
            _check_cover(table, self.pieces_of[table.name], self.tiles)
        if unknown := set(self.pieces_of) - {table.name for table in self.tables}:
            raise InvalidSystem(f"a piece's table must be one of the plan's, not {min(unknown)!r}")

    def _check_values(self) -> None:
        check_parts("pieces", self.pieces, Piece)
        check_parts("tables", self.tables, PlannedTable)
        check_number("tiles", self.tiles, 1, MOST_TILES)
        check_numbers("cycles", self.cycles, self.tiles)
        check_text("memory", self.memory)
        config = self.config
        if not (isinstance(config, tuple) and [type(each) for each in config] == [str, int]):
            raise InvalidSystem(f"config must be a name and a hash, not {shown(config)}")
        if isinstance(self.extra, bool) or not isinstance(self.extra, int | float):
            raise InvalidSystem(f"extra must be a number, not {shown(self.extra)}")

    @cached_property
    def pieces_of(self) -> Mapping[str, Sequence[Piece]]:
        """The pieces of each table."""
        found: dict[str, list[Piece]] = {table.name: [] for table in self.tables}
        for piece in self.pieces:
            found.setdefault(piece.table, []).append(piece)
        return found

    @cached_property
    def table(self) -> Mapping[str, PlannedTable]:
        """The tables by name."""
        return {table.name: table for table in self.tables}

    @cached_property
    def hash(self) -> str:
        """The same for plans that say the same, 16 hexadecimal digits."""
        text = json.dumps(self._document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def balance(self) -> float:
        """The largest load by the mean one; 1 is the best there is."""
        return max(self.cycles) * len(self.cycles) / sum(self.cycles) if sum(self.cycles) else 1.0

    def check_system(self, config: tuple[str, int], memory: str, tiles: int) -> None:
        """Raise PlanMismatch unless it is for a system of this configuration, memory and number of tiles."""
        own = [("tiles", self.tiles, tiles), ("memory", self.memory, memory)]
        own.append(("configuration", f"{self.config[0]} ({self.config[1]:#010x})", f"{config[0]} ({config[1]:#010x})"))
        for what, planned, present in own:
            if planned != present:
                raise PlanMismatch(
                    f"the plan's {what} must be that of the system, {present}, not {planned}: make a plan for this "
                    "system with daedal.plan"
                )

    def explain(self) -> str:
        """In lines: the load of each tile with a bar, then the pieces of each table, and why it is cut."""
        most = max(self.cycles, default=0) or 1
        lines = [
            f"plan {self.hash}: {len(self.tables)} tables on {self.tiles} tiles of {self.config[0]} with {self.memory}"
            f"; longest ÷ mean load {self.balance:.3f}, {self.extra:.1%} more bytes in all"
        ]
        for tile, cycles in enumerate(self.cycles):
            count = sum(piece.tile == tile for piece in self.pieces)
            bar = "█" * round(30 * cycles / most)
            lines.append(f"tile {tile:>3} {bar:<30} {cycles:>12,} cycles predicted, {count} pieces")
        for table in self.tables:
            rows = "rows of a call" if table.rows is None else f"{table.rows:,} rows"
            lines.append(f"{table.name} ({rows} × {table.dim} {table.dtype}): {self._why(table)}")
            pieces = self.pieces_of[table.name]
            lines += [f"  {_where(piece, table)}" for piece in pieces if len(pieces) > 1]
        return "\n".join(lines)

    def picture(self, path: str | Path) -> None:
        """Draw each tile's load as a bar, with a part for each piece (SVG); FileError if it cannot be written."""
        drawn = [
            (piece.tile, piece.table, _work(piece, self.table[piece.table]), _where(piece, self.table[piece.table]))
            for piece in self.pieces
        ]
        path = _path_of(path)
        try:
            path.write_text(picture_of(self.explain().partition("\n")[0], self.cycles, drawn), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror or error}") from error

    def _why(self, table: PlannedTable) -> str:
        pieces = self.pieces_of[table.name]
        if len(pieces) == 1:
            return f"whole, on tile {pieces[0].tile}"
        ways = []
        if len({piece.columns for piece in pieces}) > 1:
            ways.append("columns, which takes no more bytes")
        if len({piece.bags for piece in pieces}) > 1:
            ways.append("bags, with a copy of the rows on each tile")
        return f"cut by {' and by '.join(ways)}, as tiles would have unequal loads otherwise"

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file; FileError if that cannot be."""
        path = _path_of(path)
        try:
            write_json(path, self.document())
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror or error}") from error

    def document(self) -> dict[str, Any]:
        """What a file says of it, as JSON has it."""
        return self._document() | {"hash": self.hash}

    def _document(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def _work(piece: Piece, table: PlannedTable) -> float:
    """What the piece is in proportion to, among those of its tile: columns of rows that are read and written."""
    (c0, c1), (b0, b1) = piece.columns, piece.bags
    return (c1 - c0) * (b1 - b0) * (table.lookups / table.bags + 1)


def _where(piece: Piece, table: PlannedTable) -> str:
    parts = [f"tile {piece.tile}:"]
    parts.append(_named("column", piece.columns, table.dim))
    parts.append(_named("bag", piece.bags, table.bags))
    return " ".join(parts).replace("all columns all bags", "all")


def _named(what: str, part: Range, whole: int) -> str:
    return f"all {what}s" if part == (0, whole) else f"{what}s {part[0]} to {part[1] - 1}"


def _check_cover(table: PlannedTable, pieces: Sequence[Piece], tiles: int) -> None:
    """InvalidSystem unless the pieces are all of the table, each part once."""
    area = 0
    for number, piece in enumerate(pieces):
        (c0, c1), (b0, b1) = piece.columns, piece.bags
        if not (0 <= c0 < c1 <= table.dim and 0 <= b0 < b1 <= table.bags and 0 <= piece.tile < tiles):
            raise InvalidSystem(
                f"a piece of {table.name!r} must lie within {table.dim} columns, {table.bags} bags and {tiles} tiles, "
                f"not {shown(piece)}"
            )
        area += (c1 - c0) * (b1 - b0)
        for other in pieces[:number]:
            if c0 < other.columns[1] and other.columns[0] < c1 and b0 < other.bags[1] and other.bags[0] < b1:
                raise InvalidSystem(
                    f"pieces of {table.name!r} must not overlap, as {shown(piece)} and {shown(other)} do"
                )
    if not pieces or area != table.dim * table.bags:
        raise InvalidSystem(f"the pieces of {table.name!r} must be all of its columns and bags")


def read_plan(path: str | Path) -> Plan:
    """The plan in a file that ``Plan.save`` wrote; FileError for what is none."""
    return _plan_in(read_json(_path_of(path), "a plan"), str(path))


def _path_of(path: object) -> Path:
    if not isinstance(path, str | PathLike) or not os.fspath(path):
        raise FileError(f"a plan's file must be a path, not {shown(path)}")
    return Path(path)


def _plan_in(document: Any, name: str) -> Plan:
    try:
        plan = plan_of(document)
    except ValueError as error:
        raise FileError(f"{name} cannot be used: {error}") from error
    if plan.hash != document.get("hash"):
        raise FileError(f"{name} cannot be used: its hash must be {plan.hash}, not {shown(document.get('hash'))}")
    return plan


def plan_in_text(text: str, name: str) -> Plan:
    """The plan of a document as text, as in a saved executable; FileError if it is none."""
    try:
        document = parse_json(text, "its plan")
    except ValueError as error:
        raise FileError(f"{name} cannot be used: {error}") from error
    return _plan_in(document, name)


def plan_of(document: Any) -> Plan:
    """The plan that a document says; ValueError says what is wrong with it."""
    fields = object_of(document, "a plan")
    if fields.get("schema") != SCHEMA:
        raise ValueError(f"schema must be {SCHEMA}, not {shown(fields.get('schema'))}")
    tiles = number_of(fields, "tiles", 1)
    if tiles > MOST_TILES:
        raise ValueError(f"tiles must be at most {MOST_TILES}, not {tiles}")
    tables = [object_of(each, "a table") for each in list_of(fields, "tables")]
    pieces = [object_of(each, "a piece") for each in list_of(fields, "pieces")]
    config, cycles, extra = list_of(fields, "config"), list_of(fields, "cycles"), fields.get("extra")
    if len(config) != 2 or not isinstance(config[0], str) or type(config[1]) is not int:
        raise ValueError(f"config must be a name and a hash, not {shown(config)}")
    if len(cycles) != tiles or not all(type(each) is int and each >= 0 for each in cycles):
        raise ValueError(f"cycles must be {tiles} whole numbers, not {shown(cycles)}")
    if isinstance(extra, bool) or not isinstance(extra, int | float):
        raise ValueError(f"extra must be a number, not {shown(extra)}")
    return Plan(
        tuple(
            Piece(text_of(p, "table"), range_of(p, "columns"), range_of(p, "bags"), number_of(p, "tile", 0))
            for p in pieces
        ),
        tuple(
            PlannedTable(
                text_of(t, "name"),
                None if t.get("rows") is None else number_of(t, "rows", 0),
                number_of(t, "dim", 1),
                text_of(t, "dtype"),
                number_of(t, "bags", 1),
                number_of(t, "lookups", 0),
            )
            for t in tables
        ),
        (config[0], config[1]),
        text_of(fields, "memory"),
        tiles,
        tuple(cycles),
        extra,
    )
