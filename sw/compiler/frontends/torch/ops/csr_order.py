"""How this PyTorch multiplies a CSR matrix by a dense one: that depends on the processor and the width."""

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from daedal.runtime.request import Array

FUSED, ROUNDED = "fused", "rounded"
"""It adds the products of a row one after the other: product and sum rounded once, or each."""

_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 70, 300)
"""Entries of the rows that are tried."""

_ROWS = 400
"""Rows of the dense matrix."""


@cache
def order_of(width: int, reduce: str = "") -> str | None:
    """How it adds the products with rows of this width, ``FUSED`` or ``ROUNDED``; None for an order of its own.
    ``reduce`` is that of ``torch.sparse.mm``, if it is given one.

    MKL does the product on its own, and has code for some processors that adds up rows of 4 to 24 elements in another
    order than others. A reduction is PyTorch's, fused if the processor can do that.
    """
    generator = torch.Generator().manual_seed(width)
    lengths = torch.tensor(_LENGTHS, device="cpu")
    places = [torch.randperm(_ROWS, generator=generator, device="cpu")[:length].sort().values for length in _LENGTHS]
    columns, ends = torch.cat(places), torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    weights = torch.randn(len(columns), generator=generator, dtype=torch.float32, device="cpu")
    rows = torch.randn(_ROWS, width, generator=generator, dtype=torch.float32, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its CSR support new
        matrix = torch.sparse_csr_tensor(ends, columns, weights, (len(lengths), _ROWS))
        found = _product(matrix, rows, reduce).numpy()
    for order in (FUSED, ROUNDED):
        if (_added(columns.numpy(), ends.tolist(), weights.numpy(), rows.numpy(), order, reduce) == found).all():
            return order
    return None


def _product(matrix: Tensor, rows: Tensor, reduce: str) -> Tensor:
    product: Tensor = torch.sparse.mm(matrix, rows, reduce) if reduce else torch.sparse.mm(matrix, rows)
    return product


def _added(columns: Array, ends: list[int], weights: Array, rows: Array, order: str, reduce: str) -> Array:
    """The product, in this order."""
    found = np.zeros((len(ends) - 1, rows.shape[1]), np.float32)
    for row, (start, end) in enumerate(pairwise(ends)):
        for place in range(start, end):
            row_of, weight = rows[columns[place]], weights[place]
            if order == ROUNDED:
                found[row] += row_of * weight
            else:  # a product of two binary32 numbers is a binary64 number
                exact = row_of.astype(np.float64) * np.float64(weight)
                found[row] = (exact.astype(np.longdouble) + found[row]).astype(np.float32)
        if reduce == "mean" and end > start:
            found[row] /= np.float32(end - start)
    return found
