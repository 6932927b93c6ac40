"""The shapes that the suite ``shapes`` measures: where a machine like this falls off, and any number at random."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from daedal.bench.workloads.models import KAGGLE
from daedal.bench.workloads.shapes import MODES, Shape, Table

ROWS = 65_536
"""Rows of a table unless its shape says otherwise."""

MEANS, SHORT, TINY, ODD, TABLES, START, WIDE = "means", "short", "tiny", "odd", "tables", "start", "wide"
"""Groups: means; bags of one to three rows; tables of few rows; rows that do not end with a line; many tables with a
small batch; a launch with next to nothing to do; what a memory of 64 bytes a cycle is wanted for."""

POOLINGS = (1, 3, 4, 5, 8, 17, 20)
POOLED = 20
"""Rows of a bag where their number is not the point."""

MIXED = (1, 4, 5, 8, 9, 16, 17, 32, 64, 100, 128)
"""Columns of eleven tables side by side."""

BAGS = ("sum", "mean", "max", "weighted")


def shapes() -> Iterator[Shape]:
    """All of the list, for machines with narrow and with wide memory."""
    yield from _means()
    yield from _short_bags()
    yield from _tiny_tables()
    yield from _odd_widths()
    yield from _many_tables()
    yield bag(START, "sum", 64, 1, batch=1, name="one bag of one row, D 64")
    yield bag(START, "sum", 4, 32_768, batch=1, name="one long bag, D 4")
    yield bag(START, "sum", 16, 32_768, batch=1, name="one long bag, D 16")
    yield from _wide()


def bag(group: str, mode: str, dim: int, pooling: int, *, rows: int = ROWS, batch: int = 0, name: str = "") -> Shape:
    """Bags of equal length over one table."""
    called = name or f"{mode} D {dim} pooling {pooling}" + (f", {rows} rows" if rows != ROWS else "")
    return Shape(called, group, mode, (Table(rows, dim),), (pooling, pooling), batch)


def gather(group: str, dim: int, rows: int = ROWS) -> Shape:
    """Rows of one table as they are."""
    return Shape(f"gather D {dim}" + (f", {rows} rows" if rows != ROWS else ""), group, "gather", (Table(rows, dim),))


def _means() -> Iterator[Shape]:
    for dim in (4, 16, 64, 128):
        for pooling in POOLINGS:
            yield bag(MEANS, "mean", dim, pooling)
    mixed = tuple(Table(5_000 + 1_000 * position, dim) for position, dim in enumerate(MIXED))
    yield Shape("11 tables, D 1 to 128, mean pooling 17", MEANS, "mean", mixed, (17, 17), 200)


def _short_bags() -> Iterator[Shape]:
    """Means of one row are among the means."""
    for dim in (1, 4, 16):
        for pooling in (1, 2, 3):
            for mode in BAGS:
                if mode != "mean" or dim == 1 or pooling == 2:
                    yield bag(SHORT, mode, dim, pooling)


def _tiny_tables() -> Iterator[Shape]:
    for rows in (3, 7):
        yield bag(TINY, "sum", 4, POOLED, rows=rows)
        yield bag(TINY, "sum", 16, POOLED, rows=rows)
        yield bag(TINY, "mean", 64, POOLED, rows=rows)
        yield bag(TINY, "sum", 1, 1, rows=rows)
        for dim in (4, 16, 64):
            yield gather(TINY, dim, rows)


def _odd_widths() -> Iterator[Shape]:
    for dim in (5, 9, 17):
        yield bag(ODD, "sum", dim, POOLED)
        yield gather(ODD, dim)


def _many_tables() -> Iterator[Shape]:
    for tables in (26, 50):
        for batch in (1, 8):
            name = f"{tables} tables, D 16, batch {batch}"
            yield Shape(name, TABLES, "sum", (Table(10_000, 16),) * tables, batch=batch)


def _wide() -> Iterator[Shape]:
    tables = tuple(Table(rows, 16) for rows in KAGGLE)
    yield Shape("wide: kaggle", WIDE, "sum", tables, batch=512)
    for mode, dim, pooling in (("sum", 16, 1), ("sum", 64, 1), ("mean", 64, 20), ("mean", 64, 5)):
        shape = bag(WIDE, mode, dim, pooling)
        yield replace(shape, name=f"wide: {shape.name}")


def drawn(count: int, seed: int) -> Iterator[Shape]:
    """``count`` shapes at random, equal for equal arguments: nothing in them is a power of two more than by chance."""
    rng = np.random.default_rng([seed, count])
    for number in range(count):
        mode = str(rng.choice(MODES))
        many = int(rng.choice((1, 1, 1, 1, 2, 3, 11, 26)))
        low = 1 if mode == "gather" else _log(rng, 1, 40)
        high = low if mode == "gather" or rng.random() < 0.6 else low + _log(rng, 1, 20)
        tables = tuple(Table(_log(rng, 2, 200_000 // many), _log(rng, 1, 160)) for _ in range(many))
        batch = _log(rng, 1, 16) if many > 3 and rng.random() < 0.3 else 0
        shape = Shape("", "random", mode, tables, (low, high), batch, int(rng.choice((4, 8))))
        yield replace(shape, name=f"{number}: {_described(shape)}")


def _log(rng: np.random.Generator, least: int, most: int) -> int:
    """A number from ``least`` to ``most``, as likely to be from 1 to 2 as from 100 to 200."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))


def _described(shape: Shape) -> str:
    low, high = shape.pooling
    dims, rows = sorted({table.dim for table in shape.tables}), [table.rows for table in shape.tables]
    text = f"{shape.mode} D {dims[0]}" + (f" to {dims[-1]}" if len(dims) > 1 else "")
    text += "" if shape.mode == "gather" else f" pooling {low}" + (f" to {high}" if high > low else "")
    text += f", {len(rows)} tables" if len(rows) > 1 else f", {rows[0]} rows"
    text += f", batch {shape.batch}" if shape.batch else ""
    return text + f", int{8 * shape.index_bytes}"
