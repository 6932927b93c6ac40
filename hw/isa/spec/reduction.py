"""The reductions of mode REDUCE: sixteen partial results, then a tree of them (docs/machine/numerics.md)."""

import numpy as np

from daedal.hw.isa.instructions import PARTIAL_SUMS, VectorOp
from daedal.hw.isa.operations import OPERATIONS, Reduction
from daedal.hw.isa.spec.binary32 import Floats


def reduction_of(op: VectorOp) -> Reduction:
    """How ``op`` reduces; ValueError if it does not."""
    found = OPERATIONS[op].reduction
    if found is None:
        reducible = ", ".join(each.name for each, row in OPERATIONS.items() if row.reduction)
        raise ValueError(f"op must be one of {reducible}, not {op.name}: others do not reduce")
    return found


def combine(how: Reduction, partial: Floats) -> Floats:
    """Partial results, along the last axis, into one: the upper half of them with the lower, until one is left."""
    while partial.shape[-1] > 1:
        half = partial.shape[-1] // 2
        upper, lower = partial[..., half:], partial[..., :half]
        partial = how.combine(upper, upper, lower)
    return partial[..., 0]


def reduce(op: VectorOp, a: Floats, b: Floats | None = None) -> Floats:
    """The reduction of ``a``, or of ``a`` and ``b``, along the last axis, as an array without it."""
    how, b = reduction_of(op), a if b is None else b
    partial = np.full((*a.shape[:-1], PARTIAL_SUMS), how.neutral, np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, a.shape[-1], PARTIAL_SUMS):
            part = slice(first, min(first + PARTIAL_SUMS, a.shape[-1]))
            used = (..., slice(0, part.stop - first))
            partial[used] = how.accumulate(a[..., part], b[..., part], partial[used])
        return combine(how, partial)
