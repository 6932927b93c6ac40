"""Shapes of embedding operations, with their data, and what each has to move and to compute at least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32

MODES = ("sum", "mean", "max", "weighted", "gather")
"""What is done with rows. A weighted bag is a sum."""

LONG_LINES = 50_000
"""Lines that a launch moves at least if its start and end are not the point: these are less than a fiftieth of it."""

QUICK_LINES, QUICK_ROWS, QUICK_POOLING = 100, 256, 64
"""The same of a run that only shows that everything works, rows of its tables, and of its bags."""

DIVIDED_IN_TWO = 4096
"""Rows of a bag up to which its mean is a multiplication by a constant in two parts."""


@dataclass(frozen=True)
class Table:
    """Rows and columns of a table of binary32."""

    rows: int
    dim: int

    @property
    def row_bytes(self) -> int:
        """Useful bytes of a row."""
        return self.dim * BINARY32.bytes


@dataclass(frozen=True)
class Shape:
    """One operation over one table or several, side by side in one result.

    Attributes
    ----------
    name, group
        What tables and JSON call it, and the rows that it stands with.
    mode
        One of ``MODES``.
    tables
        The tables, each with bags of its own.
    pooling
        Least and most rows of a bag; lengths are uniform in between. Of a gather, 1 and 1.
    batch
        Bags over each table, or look-ups of a gather; 0 for as many as make a long launch.
    index_bytes
        Bytes of an index and of an offset: 8 or 4.
    """

    name: str
    group: str
    mode: str
    tables: tuple[Table, ...]
    pooling: tuple[int, int] = (1, 1)
    batch: int = 0
    index_bytes: int = 8

    @property
    def dim(self) -> float:
        """Columns of a table in the mean."""
        return sum(table.dim for table in self.tables) / len(self.tables)

    def sized(self, config: Config, lines: int = LONG_LINES) -> "Shape":
        """The same with a batch: as many bags as move so many lines of this machine, if it has none yet."""
        if self.batch:
            return self
        probe = 1024
        each = needed_lines(replace(self, batch=probe), probe * self._mean_length, config) / probe
        return replace(self, batch=ceil(lines / each))

    def smaller(self, config: Config) -> "Shape":
        """The same with little work, to see that it runs."""
        tables = tuple(replace(table, rows=min(table.rows, QUICK_ROWS)) for table in self.tables[:4])
        pooling = (min(self.pooling[0], QUICK_POOLING), min(self.pooling[1], QUICK_POOLING))
        return replace(self, tables=tables, pooling=pooling, batch=min(self.batch, 4)).sized(config, QUICK_LINES)

    @property
    def _mean_length(self) -> int:
        return ceil(sum(self.pooling) / 2)

    def make(self, seed: int) -> "MadeShape":
        """Module and inputs, equal for equal arguments."""
        rng = np.random.default_rng([seed, len(self.tables), self.tables[0].dim, *self.pooling])
        weights = [
            torch.from_numpy(rng.standard_normal((table.rows, table.dim), dtype=np.float32)) for table in self.tables
        ]
        dtype, inputs = np.dtype(f"i{self.index_bytes}"), []
        lengths = [rng.integers(*self.pooling, self.batch, dtype=np.int64, endpoint=True) for _ in self.tables]
        for table, length in zip(self.tables, lengths, strict=True):
            indices = rng.integers(0, table.rows, int(length.sum()), dtype=np.int64).astype(dtype)
            offsets = (np.cumsum(length) - length).astype(dtype)
            weighted = (rng.standard_normal(len(indices), dtype=np.float32),) if self.mode == "weighted" else ()
            inputs.append(tuple(torch.from_numpy(array) for array in (indices, offsets, *weighted)))
        if self.mode == "gather":
            return MadeShape(self, _Rows(weights), ([each[0] for each in inputs],), tuple(lengths))
        mode = "sum" if self.mode == "weighted" else self.mode
        return MadeShape(self, _Bags(weights, mode), (inputs,), tuple(lengths))


@dataclass(frozen=True)
class MadeShape:
    """A shape with its data: the layer on the CPU, what to call it with, and the rows of each bag of each table."""

    shape: Shape
    module: nn.Module
    inputs: tuple[Any, ...]
    lengths: tuple[Any, ...]

    @property
    def lookups(self) -> int:
        """Indices over all tables."""
        return sum(int(length.sum()) for length in self.lengths)

    def rows(self, config: Config) -> int:
        """Row fetches: an index's row comes in as many parts as the execute unit needs for it."""
        return sum(
            int(length.sum()) * len(parts(self.shape, table, config))
            for table, length in zip(self.shape.tables, self.lengths, strict=True)
        )

    def row_lines(self, config: Config) -> int:
        """Lines of all rows, each row for itself."""
        return sum(
            int(length.sum()) * lines_of_row(self.shape, table, config)
            for table, length in zip(self.shape.tables, self.lengths, strict=True)
        )

    def needed_lines(self, config: Config) -> int:
        """Lines that the operation has to move: each row for itself, each part of an array once."""
        arrays = sum(-(-size // config.bus_bytes) for size in self.array_bytes)
        return self.row_lines(config) + arrays + self.result_lines(config)

    def result_lines(self, config: Config) -> int:
        """Lines that each table's part of the result touches: a row of the result has one of each, side by side."""
        sizes = [table.row_bytes for table in self.shape.tables]
        starts = np.arange(self.shape.batch, dtype=np.int64) * sum(sizes)
        found, offset = 0, 0
        for size in sizes:
            first, last = (starts + offset) // config.bus_bytes, (starts + offset + size - 1) // config.bus_bytes
            found += int((last - first + 1).sum() - (first[1:] == last[:-1]).sum())
            offset += size
        return found

    @property
    def array_bytes(self) -> tuple[int, ...]:
        """Bytes of the indices, offsets and weights of each table."""
        shape = self.shape
        found = []
        for length in self.lengths:
            indices = int(length.sum())
            found.append(indices * shape.index_bytes)
            found.append(0 if shape.mode == "gather" else len(length) * shape.index_bytes)
            found.append(indices * BINARY32.bytes if shape.mode == "weighted" else 0)
        return tuple(found)

    @property
    def useful_bytes(self) -> int:
        """Bytes of rows, indices, offsets, weights and results."""
        rows = sum(
            int(length.sum()) * table.row_bytes for table, length in zip(self.shape.tables, self.lengths, strict=True)
        )
        return rows + sum(self.array_bytes) + self.shape.batch * sum(table.row_bytes for table in self.shape.tables)

    def lane_cycles(self, config: Config) -> int:
        """Beats that the lanes compute: each row is added, and a mean's sum passes through them once or more."""
        if self.shape.mode == "gather":
            return 0
        found = 0
        for table, length in zip(self.shape.tables, self.lengths, strict=True):
            beats = sum(-(-part // config.lanes) for part in parts(self.shape, table, config))
            found += beats * int(length.sum())
            if self.shape.mode == "mean":
                lengths, counts = np.unique(length, return_counts=True)
                found += beats * sum(passes(int(n)) * int(m) for n, m in zip(lengths, counts, strict=True))
        return found


def passes(rows: int) -> int:
    """Passes through the lanes that divide the sum of so many rows by their number."""
    if rows <= 1:
        return 0
    if rows & (rows - 1) == 0:
        return 1
    return 2 if rows <= DIVIDED_IN_TWO else 3


def parts(shape: Shape, table: Table, config: Config) -> list[int]:
    """Elements of the parts in which a row is read: of bags, as many as a vector register holds."""
    most = table.dim if shape.mode == "gather" else config.vl_max
    return [min(most, table.dim - first) for first in range(0, table.dim, most)]


def lines_of_row(shape: Shape, table: Table, config: Config) -> int:
    """Lines of a row in its parts."""
    return sum(-(-part * BINARY32.bytes // config.bus_bytes) for part in parts(shape, table, config))


def needed_lines(shape: Shape, lookups: int, config: Config) -> float:
    """About the lines that a shape has to move with so many look-ups in each table."""
    index, rows = shape.index_bytes, sum(lines_of_row(shape, table, config) for table in shape.tables)
    arrays = lookups * (index + (BINARY32.bytes if shape.mode == "weighted" else 0))
    arrays += 0 if shape.mode == "gather" else shape.batch * index
    results = shape.batch * sum(table.row_bytes for table in shape.tables)
    return lookups * rows + (len(shape.tables) * arrays + results) / config.bus_bytes


class _Bags(nn.Module):
    """Bags over several tables, side by side: one launch, if the machine walks lists of tables."""

    def __init__(self, weights: Sequence[Tensor], mode: str) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag.from_pretrained(weight, mode=mode) for weight in weights)

    def forward(self, inputs: list[tuple[Tensor, ...]]) -> Tensor:
        """Pooled rows of all tables; inputs are indices and offsets (and weights) for each."""
        found = [
            bag(*tensors[:2], per_sample_weights=tensors[2] if len(tensors) > 2 else None)
            for bag, tensors in zip(self.bags, inputs, strict=True)
        ]
        return torch.cat(found, dim=1) if len(found) > 1 else found[0]


class _Rows(nn.Module):
    """Rows of several tables as they are, side by side."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(len(weight), weight.shape[1], _weight=weight) for weight in weights)

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """The rows; inputs are indices for each table."""
        found = [table(indices) for table, indices in zip(self.tables, inputs, strict=True)]
        return torch.cat(found, dim=1) if len(found) > 1 else found[0]
