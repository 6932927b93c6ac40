"""Rows of one table, looked up and handed on as they are."""

from collections.abc import Iterator

import torch
from torch import nn

from daedal.bench.workloads.case import Case

ROWS, DIM, LOOKUPS = 65_536, 64, 16_384


def cases() -> Iterator[Case]:
    """One ``nn.Embedding`` with uniform indices."""
    generator = torch.Generator().manual_seed(3)
    module = nn.Embedding(ROWS, DIM, _weight=torch.randn(ROWS, DIM, generator=generator))
    indices = torch.randint(ROWS, (LOOKUPS,), generator=generator)
    yield Case("gather", "Embedding", f"{LOOKUPS} rows of {ROWS} x {DIM}", module, (indices,))
