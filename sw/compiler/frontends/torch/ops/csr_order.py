"""How this PyTorch multiplies a CSR matrix by a dense one: that depends on the processor."""

import warnings
from functools import cache

import numpy as np
import torch

_SHAPES = ((7, 1), (7, 5), (9, 16), (20, 33), (40, 64))
"""Entries of a matrix of one row, and columns of the dense one, that are tried."""


@cache
def adds_in_order() -> bool:
    """Whether it multiplies, then adds, one entry after the other.

    MKL does on processors for which it has no code of its own. On others it has code that rounds once, or adds in
    another order, depending on the width.
    """
    generator = torch.Generator().manual_seed(1)
    return all(_is_in_order(entries, columns, generator) for entries, columns in _SHAPES)


def _is_in_order(entries: int, columns: int, generator: torch.Generator) -> bool:
    weights = torch.randn(entries, generator=generator, device="cpu")
    rows = torch.randn(entries, columns, generator=generator, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its CSR support new
        matrix = torch.sparse_csr_tensor(
            torch.tensor([0, entries], device="cpu"), torch.arange(entries, device="cpu"), weights, (1, entries)
        )
        found = torch.sparse.mm(matrix, rows)[0].numpy()
    total = np.zeros(columns, np.float32)
    for weight, row in zip(weights.numpy(), rows.numpy(), strict=True):
        total = total + row * weight
    return bool((total == found).all())
