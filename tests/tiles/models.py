"""Random models with embedding operations of many kinds, their inputs, and random plans for them."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from daedal.system.plan import Piece, Plan
from tests.compiler.layers.compiler_support import random_bags, wild_table

Case = tuple[nn.Module, Any]


class Mixed(nn.Module):
    """Bags of several kinds, a gather, a sum by destination and a pooled look-up; results joined or apart."""

    def __init__(self, rng: np.random.Generator, *, joined: bool) -> None:
        super().__init__()
        self.joined = joined
        self.bags = nn.ModuleList()
        for _ in range(int(rng.integers(1, 5))):
            rows, dim = int(rng.integers(3, 300)), int(rng.integers(1, 70))
            bag = nn.EmbeddingBag(rows, dim, mode=str(rng.choice(["sum", "mean", "max"])), include_last_offset=True)
            bag.weight = nn.Parameter(wild_table(rows, dim, rng))
            self.bags.append(bag)
        half = 2 * int(rng.integers(1, 20))
        self.narrow = nn.EmbeddingBag(40, half, mode="sum", include_last_offset=True)
        self.narrow.weight = nn.Parameter(wild_table(40, half, rng).clamp(-1e3, 1e3).bfloat16())
        self.weighted = nn.EmbeddingBag(50, 24, mode="sum", include_last_offset=True)
        self.weighted.weight = nn.Parameter(wild_table(50, 24, rng).clamp(-1e9, 1e9))
        kinds = (torch.float32, torch.float64, torch.float16)  # copied, the last of them as halves of words
        self.rows = nn.Embedding(60, int(rng.integers(1, 40)), dtype=kinds[int(rng.integers(0, 3))])
        self.words = nn.Embedding(30, 12)

    def forward(self, bags: Any, half: Any, weighted: Any, rows: Tensor, words: Tensor) -> Any:
        """All of them."""
        found = [bag(*given) for bag, given in zip(self.bags, bags, strict=True)]
        found.append(self.weighted(weighted[0], weighted[1], weighted[2]))
        pooled = self.words(words).sum(1)
        edges = functional.embedding(words.reshape(-1), self.words.weight)
        target = torch.zeros(5, 12).index_add(0, words.reshape(-1) % 5, edges)
        rest = [self.narrow(*half), self.rows(rows), pooled, target]
        return [torch.cat(found, 1), *rest] if self.joined else [*found, *rest]


def inputs_of(model: Mixed, rng: np.random.Generator, bags: int) -> Any:
    """Inputs with so many bags."""
    types = (torch.int64, torch.int64)
    given = [random_bags(bag.num_embeddings, bags, rng, types=types) for bag in model.bags]
    half = random_bags(40, bags, rng, types=(torch.int32, torch.int32))
    weighted = random_bags(50, bags, rng, types=types)
    weights = torch.from_numpy(rng.standard_normal(len(weighted[0])).astype(np.float32))
    rows = torch.from_numpy(rng.integers(0, 60, (bags, 2)))
    words = torch.from_numpy(rng.integers(0, 30, (bags, 3)))
    return given, half, (*weighted, weights), rows, words


def random_plan(plan: Plan, steps: dict[str, int], rng: np.random.Generator) -> Plan:
    """Another plan for the same: tables in random rectangles, on random tiles. ``steps``: columns of a slice are a
    multiple of these.
    """
    pieces = []
    for table in plan.tables:
        step = steps[table.name] or table.dim
        columns = _ends(table.dim, step, rng)
        for first, end in pairwise(columns):
            bags = _ends(table.bags, 1, rng)
            for pair in pairwise(bags):
                pieces.append(Piece(table.name, (first, end), pair, int(rng.integers(0, plan.tiles))))
    return replace(plan, pieces=tuple(pieces))


def _ends(size: int, step: int, rng: np.random.Generator) -> list[int]:
    """0, up to two places between, and ``size``."""
    inner = range(step, size, step)
    return [0, *sorted(rng.choice(inner, min(len(inner), int(rng.integers(0, 3))), replace=False).tolist()), size]


def same(found: Any, expected: Any) -> bool:
    """Whether two lists of results have the same types, shapes and bits."""
    pairs = list(zip(found, expected, strict=True))
    return all((a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(_bytes(a), _bytes(b)) for a, b in pairs)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
