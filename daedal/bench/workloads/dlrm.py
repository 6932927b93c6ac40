"""The embedding layers of a DLRM-style recommender: tables of different shape, few of whose rows are hot."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from daedal.bench.workloads.case import Case

TABLES = (
    (40_000, 64, 8.0), (20_000, 32, 20.0), (10_000, 64, 4.0), (5_000, 16, 12.0),
    (3_000, 48, 6.0), (1_000, 24, 2.0), (120, 8, 1.0), (7, 4, 1.0),
)  # fmt: skip
"""Rows, width and mean number of lookups in a bag of each table."""

BATCH = 128
EXPONENT = 1.1
"""Row r is looked up with a probability that falls with ``(r + 1) ** -EXPONENT``."""


class Embeddings(nn.Module):
    """One EmbeddingBag for each table, applied to its own indices and offsets, with weights or without.

    It is one launch, which writes the result of every table where it belongs.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        tables = [torch.randn(rows, dim, generator=generator) for rows, dim, _ in TABLES]
        self.bags = nn.ModuleList(nn.EmbeddingBag.from_pretrained(table, mode="sum") for table in tables)

    def forward(self, inputs: list[tuple[Tensor, ...]]) -> Tensor:
        """Pooled rows of all tables, side by side; inputs are indices and offsets (and weights) for each."""
        return torch.cat([bag(*tensors) for bag, tensors in zip(self.bags, inputs, strict=True)], dim=1)


def _bags(rows: int, mean: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    lengths = torch.poisson(torch.full((BATCH,), mean), generator=generator).long()
    chance = torch.arange(1, rows + 1, dtype=torch.float64) ** -EXPONENT
    indices = torch.multinomial(chance, int(lengths.sum()), replacement=True, generator=generator)
    offsets = lengths.cumsum(0) - lengths
    return indices.int(), offsets.int()


def cases() -> Iterator[Case]:
    """All tables in one call, plain and with a weight for each lookup."""
    generator = torch.Generator().manual_seed(2)
    module = Embeddings(generator)
    plain = [_bags(rows, mean, generator) for rows, _, mean in TABLES]
    weighted = [(*bag, torch.rand(len(bag[0]), generator=generator)) for bag in plain]
    lookups = sum(len(indices) for indices, _ in plain)
    shape = f"{len(TABLES)} tables, {BATCH} bags each, {lookups} lookups"
    for operation, inputs in (("EmbeddingBag sum", plain), ("EmbeddingBag weighted sum", weighted)):
        yield Case("dlrm", operation, shape, module, (inputs,))
