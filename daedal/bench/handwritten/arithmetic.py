"""What the programs compute, in NumPy, bit for bit."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from daedal.hw.isa.spec.binary32 import Floats, fused

Integers = NDArray[np.int32]


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
