"""What the programs compute, in NumPy, bit for bit."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.hw.isa.instructions import PARTIAL_SUMS

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]


def fused(a: Floats, b: Floats, c: Floats) -> Floats:
    """``a * b + c``, rounded once: the sum in binary64 is rounded to odd, so that the second rounding is right."""
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits: NDArray[np.int64] = total.view(np.int64)
    inexact_even = (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    return np.where(inexact_even, bits + np.where(away, 1, -1), bits).view(np.float64).astype(np.float32)


def sums(offsets: Integers, rows: Floats) -> Floats:
    """The sums of the rows of each bag, in order."""
    out = np.zeros((len(offsets) - 1, rows.shape[1]), np.float32)
    for bag, (first, end) in enumerate(pairwise(offsets)):
        for p in range(first, end):
            out[bag] = rows[p] + out[bag]
    return out


def fused_sums(offsets: Integers, rows: Floats, weights: Floats) -> Floats:
    """The sums of the weighted rows of each bag, in order, each step rounded once."""
    out = np.zeros((len(offsets) - 1, rows.shape[1]), np.float32)
    for bag, (first, end) in enumerate(pairwise(offsets)):
        for p in range(first, end):
            out[bag] = fused(rows[p], np.full(rows.shape[1], weights[p]), out[bag])
    return out


def tree(values: Floats) -> Floats:
    """The sum of each row in the order of a reduction of the machine."""
    partial: Any = np.full((len(values), PARTIAL_SUMS), -0.0, np.float32)
    for first in range(0, values.shape[1], PARTIAL_SUMS):
        partial = values[:, first : first + PARTIAL_SUMS] + partial
    while partial.shape[1] > 1:
        half = partial.shape[1] // 2
        partial = partial[:, half:] + partial[:, :half]
    result: Floats = partial[:, 0]
    return result
