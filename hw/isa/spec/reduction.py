"""The reductions of mode REDUCE: partial results, sixteen or eight, then a tree of them (docs/machine/numerics.md)."""

import numpy as np

from daedal.hw.isa.instructions import OCTET, PARTIAL_SUMS, VectorOp
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


def combine_neighbours(how: Reduction, partial: Floats) -> Floats:
    """Partial results, along the last axis, into one: each with its neighbour, then pairs, until one is left."""
    while partial.shape[-1] > 1:
        upper, lower = partial[..., 1::2], partial[..., ::2]
        partial = how.combine(upper, upper, lower)
    return partial[..., 0]


def reduce(op: VectorOp, a: Floats, b: Floats | None = None, *, octets: bool = False) -> Floats:
    """The reduction of ``a``, or of ``a`` and ``b``, along the last axis, as an array without it."""
    how, b = reduction_of(op), a if b is None else b
    partials = OCTET if octets else PARTIAL_SUMS
    partial = np.full((*a.shape[:-1], partials), how.neutral, np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, a.shape[-1], partials):
            part = slice(first, min(first + partials, a.shape[-1]))
            used = (..., slice(0, part.stop - first))
            partial[used] = how.accumulate(a[..., part], b[..., part], partial[used])
        return combine_neighbours(how, partial) if octets else combine(how, partial)
