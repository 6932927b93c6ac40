"""Fleets of tables for systems: the tables of recommenders, of many sizes, and inputs for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from daedal.bench.workloads.made import Bags
from daedal.bench.workloads.streams import draw
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32

MOST_ROWS = 65_536
"""Of a table of ``mixed100``: further ones would only take the host's memory."""


@dataclass(frozen=True)
class Shape:
    """A table: rows, columns, and the least and most rows of a bag."""

    rows: int
    dim: int
    pooling: tuple[int, int]


@dataclass(frozen=True)
class Fleet:
    """Tables, all with as many bags."""

    name: str
    batch: int
    tables: tuple[Shape, ...]

    @property
    def table_bytes(self) -> int:
        """Bytes of all tables."""
        return sum(table.rows * table.dim * BINARY32.bytes for table in self.tables)

    def smaller(self) -> "Fleet":
        """The same with little work, to see that it runs."""
        tables = tuple(replace(table, rows=min(table.rows, 256), pooling=(1, 4)) for table in self.tables[:6])
        return replace(self, batch=8, tables=tables)

    def make(
        self, distribution: str, seed: int, config: Config
    ) -> tuple[nn.Module, tuple[list[tuple[Tensor, Tensor]]]]:
        """Module and inputs, equal for equal arguments; bags are as long whatever the distribution of indices."""
        rng = np.random.default_rng([seed, len(self.tables)])
        drawn = np.random.default_rng([seed, len(self.tables), self.batch])
        bags, inputs = [], []
        for table in self.tables:
            low, high = table.pooling
            lengths = drawn.integers(low, high + 1, self.batch)
            offsets = np.cumsum(lengths) - lengths
            indices = draw(distribution, int(lengths.sum()), table.rows, rng, config)
            weight = torch.from_numpy(rng.standard_normal((table.rows, table.dim), dtype=np.float32))
            bags.append(nn.EmbeddingBag(table.rows, table.dim, mode="sum", _weight=weight))
            inputs.append((torch.from_numpy(indices), torch.from_numpy(offsets)))
        return Bags(bags), (inputs,)


def _mixed(count: int) -> Sequence[Shape]:
    """Tables of many sizes: rows and pooling are lognormal, rows of 64 to 512 bytes."""
    rng = np.random.default_rng(11)
    rows = np.clip(np.exp(rng.normal(np.log(20_000), 2.5, count)), 10, MOST_ROWS).astype(int)
    pooling = np.clip(np.exp(rng.normal(np.log(6), 1.2, count)), 1, 120).astype(int)
    dims = rng.choice([16, 32, 64, 128], count, p=[0.3, 0.35, 0.25, 0.1])
    return [
        Shape(int(r), int(d), (max(1, int(0.5 * p)), max(1, int(1.5 * p))))
        for r, d, p in zip(rows, dims, pooling, strict=True)
    ]


FLEETS = {
    fleet.name: fleet
    for fleet in (
        Fleet("rm1", 64, (Shape(65_536, 32, (80, 80)),) * 8),
        Fleet("rm2", 128, (Shape(65_536, 64, (32, 32)),) * 4),
        Fleet("rm3", 128, (Shape(65_536, 128, (20, 20)),) * 2),
        Fleet("mixed100", 64, tuple(_mixed(100))),
        Fleet(
            "skew",
            128,
            (Shape(12_500, 64, (100, 100)), *[Shape(250_000, 64, (2, 2))] * 4, *[Shape(500, 32, (1, 1))] * 21),
        ),
    )
}
"""Name -> fleet. In ``skew`` one table has most of the look-ups, and four large ones have few."""
