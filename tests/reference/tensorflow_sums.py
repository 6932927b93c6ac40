"""TensorFlow's sums and means of rows on the CPU, in NumPy: the rules of docs/tensorflow.md, bag by bag.

``tests/frameworks/tensorflow`` holds them against TensorFlow.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
f32 = np.float32


def chain(rows: Array, start: Array | None = None) -> Array:
    """One row after the other, from ``start`` or from the first row."""
    total = rows[0].copy() if start is None else start.copy()
    for row in rows[1:] if start is None else rows:
        total = total + row
    return total


def by_blocks(rows: Array, mode: str) -> Array:
    """``SparseSegmentSum``, ``…Mean`` and ``…SqrtN``."""
    count = len(rows)
    if count == 0:
        return np.zeros(rows.shape[1], f32)
    first = count % 8 + (8 if count % 8 < 2 else 0)
    total = chain(rows[:first])
    for start in range(first, count, 8):
        total = total + chain(rows[start : start + 8])
    if mode == "sum":
        return total
    divisor = f32(count) if mode == "mean" else np.sqrt(f32(count))
    result: Array = total * (f32(1) / divisor) if count < 10 else total / divisor
    return result


def by_lanes(rows: Array, mode: str = "sum") -> Array:
    """``SegmentSum``, and sums and means along an axis, on processors whose vectors have 8 elements."""
    count, width = rows.shape
    nothing = np.zeros(width, f32)
    if count == 1:
        return rows[0].copy()
    total = chain(rows, nothing)
    if count >= 16:
        whole, cut = count // 4 * 4, width // 8 * 8
        lanes = [chain(rows[lane:whole:4], nothing) for lane in range(4)]
        sums = chain(rows[whole:], ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3])
        total = np.concatenate([sums[:cut], total[cut:]])
    return total if mode == "sum" or not count else total / f32(count)


def mean_of_segment(rows: Array) -> Array:
    """``SegmentMean``: as ``divided``, but one row is taken as it is."""
    return rows[0].copy() if len(rows) == 1 else divided(rows, "mean")


def divided(rows: Array, mode: str) -> Array:
    """The unsorted reductions and those of ragged tensors: a chain from +0.0, and a true division."""
    total = chain(rows, np.zeros(rows.shape[1], f32))
    return total if mode == "sum" or not len(rows) else total / f32(len(rows))


def bags(values: Array, offsets: Array) -> Iterator[Array]:
    """The rows of each bag."""
    return (values[start:end] for start, end in pairwise(offsets))
