"""Layers that are measured: seeded tables and index streams, and what PyTorch makes of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

ROWS = 65_536
"""Rows of the table."""

BAGS = 128
"""Bags of a batch, or rows of a gather's index matrix."""

POOLING = 32
"""Rows of a bag."""


@dataclass(frozen=True)
class Workload:
    """A layer over one table with uniform int32 indices.

    Attributes
    ----------
    name
        What tables and JSON call it.
    mode
        ``sum`` or ``mean`` for bags, ``gather`` for ``nn.Embedding``.
    dim
        Columns of the table.
    weighted
        With ``per_sample_weights``.
    goal
        Least share of one line per cycle that is wanted, or None.
    rows, bags, pooling
        Rows of the table, bags, rows of a bag.
    """

    name: str
    mode: str
    dim: int
    weighted: bool = False
    goal: float | None = None
    rows: int = ROWS
    bags: int = BAGS
    pooling: int = POOLING

    def smaller(self) -> "Workload":
        """The same with little work, to see that it runs."""
        return replace(self, rows=256, bags=4, pooling=6, dim=min(self.dim, 32))

    def make(self, seed: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The module and its inputs; equal for equal seeds."""
        rng = np.random.default_rng(seed)
        weight = torch.from_numpy(rng.standard_normal((self.rows, self.dim), dtype=np.float32))
        indices = torch.from_numpy(rng.integers(0, self.rows, self.bags * self.pooling, dtype=np.int32))
        if self.mode == "gather":
            return nn.Embedding.from_pretrained(weight), (indices.reshape(self.bags, self.pooling),)
        offsets = torch.arange(0, len(indices), self.pooling, dtype=torch.int32)
        bag = nn.EmbeddingBag.from_pretrained(weight, mode=self.mode)
        if not self.weighted:
            return bag, (indices, offsets)
        weights = torch.from_numpy(rng.standard_normal(len(indices), dtype=np.float32))
        return _Weighted(bag), (indices, offsets, weights)


class _Weighted(nn.Module):
    """An embedding bag that takes ``per_sample_weights`` by position."""

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        super().__init__()
        self.bag = bag

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        """The weighted sums of the bags."""
        result: Tensor = self.bag(indices, offsets, per_sample_weights=weights)
        return result


SUM = Workload("sum, D = 64", "sum", 64, goal=0.93)

WORKLOADS = (
    SUM,
    Workload("weighted sum, D = 64", "sum", 64, weighted=True),
    Workload("mean, D = 64", "mean", 64),
    Workload("sum, D = 256", "sum", 256),
    Workload("sum, D = 16", "sum", 16),
    Workload("sum, D = 4", "sum", 4),
    Workload("sum, D = 1", "sum", 1),
    Workload("gather, D = 64", "gather", 64, goal=0.95),
)
"""What the suite ``machine`` runs."""


def same_bits(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two binary32 tensors agree in every bit, but for sign and payload of NaNs."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    equal = ours.contiguous().view(torch.int32) == theirs.contiguous().view(torch.int32)
    return bool((equal | (ours.isnan() & theirs.isnan())).all())


def run(exe: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    """One run of a compiled layer, whose result is one tensor."""
    result: Tensor = exe(*inputs)
    return result
