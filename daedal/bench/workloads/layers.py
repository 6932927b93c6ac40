"""Layers that are measured: seeded tables and index streams, and what PyTorch makes of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from daedal.bench.workloads import dlrm
from daedal.hw.isa.elements import BINARY32

ROWS = 65_536
"""Rows of the table."""

BAGS = 128
"""Bags of a batch, or rows of a gather's index matrix."""

POOLING = 32
"""Rows of a bag."""

INDEX_BYTES = 4
"""Bytes of an index and of an offset: int32."""


@dataclass(frozen=True)
class Workload:
    """A layer over one table with uniform int32 indices.

    Attributes
    ----------
    name
        What tables and JSON call it.
    mode
        ``sum``, ``mean`` or ``max`` for bags, ``gather`` for ``nn.Embedding``.
    dim
        Columns of the table.
    weighted
        With ``per_sample_weights``.
    goal
        Least share of one line per cycle that is wanted, or None.
    of_allowed
        The goal is for the share of what the layer's traffic allows (``machine.allowed_share``).
    rows, bags, pooling
        Rows of the table, bags, rows of a bag.
    """

    name: str
    mode: str
    dim: int
    weighted: bool = False
    goal: float | None = None
    of_allowed: bool = False
    rows: int = ROWS
    bags: int = BAGS
    pooling: int = POOLING

    @property
    def waits(self) -> int:
        """Reads and writes that wait for each other: a bag's offset, an index, its row, the result's response."""
        return 3 if self.mode == "gather" else 4

    @property
    def useful_bytes(self) -> int:
        """Bytes of rows, indices, offsets, weights and results."""
        lookups, row = self.bags * self.pooling, BINARY32.bytes * self.dim
        if self.mode == "gather":
            return lookups * (2 * row + INDEX_BYTES)
        each = row + INDEX_BYTES + (BINARY32.bytes if self.weighted else 0)
        return lookups * each + self.bags * (INDEX_BYTES + row)

    def smaller(self) -> "Workload":
        """The same with little work, to see that it runs."""
        return replace(self, rows=256, bags=4, pooling=6, dim=min(self.dim, 32))

    def longer(self) -> "Workload":
        """The same with four times the bags."""
        return replace(self, bags=4 * self.bags)

    def make(self, seed: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The module and its inputs; equal for equal seeds."""
        rng = np.random.default_rng(seed)
        weight = torch.from_numpy(rng.standard_normal((self.rows, self.dim), dtype=np.float32))
        indices = torch.from_numpy(rng.integers(0, self.rows, self.bags * self.pooling, dtype=np.int32))
        if self.mode == "gather":
            return nn.Embedding(self.rows, self.dim, _weight=weight), (indices.reshape(self.bags, self.pooling),)
        offsets = torch.arange(0, len(indices), self.pooling, dtype=torch.int32)
        bag = nn.EmbeddingBag.from_pretrained(weight, mode=self.mode)
        if not self.weighted:
            return bag, (indices, offsets)
        weights = torch.from_numpy(rng.standard_normal(len(indices), dtype=np.float32))
        return Weighted(bag), (indices, offsets, weights)


class Weighted(nn.Module):
    """An embedding bag that takes ``per_sample_weights`` by position."""

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        super().__init__()
        self.bag = bag

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """The weighted sums of the bags."""
        result: Tensor = self.bag(indices, offsets, per_sample_weights=weights)
        return result


@dataclass(frozen=True)
class Tables:
    """Sums over several tables, side by side in one result: one launch.

    Attributes
    ----------
    name
        What tables and JSON call it.
    shapes
        Rows and columns of each table, and rows of a bag over it.
    goal
        Least share of one line per cycle that is wanted, or None.
    batch
        Bags over each table.
    """

    name: str
    shapes: tuple[tuple[int, int, int], ...]
    goal: float | None = None
    batch: int = BAGS

    @property
    def bags(self) -> int:
        """Bags over all tables."""
        return self.batch * len(self.shapes)

    @property
    def pooling(self) -> float:
        """Rows of a bag in the mean."""
        return sum(pooling for _, _, pooling in self.shapes) / len(self.shapes)

    @property
    def dim(self) -> int:
        """Columns of the result."""
        return sum(dim for _, dim, _ in self.shapes)

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(rows for rows, _, _ in self.shapes)

    @property
    def useful_bytes(self) -> int:
        """Bytes of rows, indices, offsets and results."""
        rows = sum(dim * (pooling + 1) for _, dim, pooling in self.shapes) * BINARY32.bytes
        arrays = sum(pooling + 1 for _, _, pooling in self.shapes) * INDEX_BYTES
        return self.batch * (rows + arrays)

    def smaller(self) -> "Tables":
        """The same with little work, to see that it runs."""
        shapes = tuple((min(rows, 256), min(dim, 32), min(pooling, 6)) for rows, dim, pooling in self.shapes)
        return replace(self, shapes=shapes, batch=4)

    def make(self, seed: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The module and its inputs, int32 indices and offsets with a row for each table."""
        rng = np.random.default_rng(seed)
        longest = max(pooling for _, _, pooling in self.shapes)
        weights = [rng.standard_normal((rows, dim), dtype=np.float32) for rows, dim, _ in self.shapes]
        indices = [rng.integers(0, rows, self.batch * longest, dtype=np.int32) for rows, _, _ in self.shapes]
        offsets = [np.arange(self.batch + 1, dtype=np.int32) * pooling for _, _, pooling in self.shapes]
        bags = [
            nn.EmbeddingBag.from_pretrained(torch.from_numpy(weight), mode="sum", include_last_offset=True)
            for weight in weights
        ]
        return _SideBySide(bags), (torch.from_numpy(np.stack(indices)), torch.from_numpy(np.stack(offsets)))


class _SideBySide(nn.Module):
    """Bags over several tables; row k of the inputs is for table k, indices behind its last offset for none."""

    def __init__(self, bags: list[nn.EmbeddingBag]) -> None:
        super().__init__()
        self.bags = nn.ModuleList(bags)

    def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
        """The sums of the bags of all tables, side by side."""
        return torch.cat([bag(indices[k], offsets[k]) for k, bag in enumerate(self.bags)], dim=1)


SUM = Workload("sum, D = 64", "sum", 64, goal=0.97)

RECOMMENDER = tuple((rows, dim, int(4 * lookups)) for rows, dim, lookups in dlrm.TABLES)
"""The tables of the workload ``dlrm``, with four times the lookups."""

WORKLOADS = (
    SUM,
    Workload("weighted sum, D = 64", "sum", 64, weighted=True, goal=0.97),
    Workload("mean, D = 64", "mean", 64, goal=0.95),
    Workload("sum, D = 256", "sum", 256),
    Workload("sum, D = 16", "sum", 16, goal=0.93),
    Workload("sum, D = 4", "sum", 4, goal=0.93, of_allowed=True),
    Workload("sum, D = 1", "sum", 1, goal=0.93, of_allowed=True),
    Workload("mean, D = 4", "mean", 4),
    Workload("max, D = 4", "max", 4),
    Workload("gather, D = 64", "gather", 64, goal=0.97),
    Tables("8 tables, D = 64", ((20_000, 64, POOLING),) * 8, goal=0.95),
    Tables("8 tables of a recommender", RECOMMENDER, goal=0.95),
)
"""What the suite ``machine`` runs."""


def run(exe: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    """One run of a compiled layer, whose result is one tensor."""
    result: Tensor = exe(*inputs)
    return result
