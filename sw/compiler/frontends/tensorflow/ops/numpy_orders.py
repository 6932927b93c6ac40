"""TensorFlow's reductions of rows on a CPU with AVX, in NumPy: for calls that the device cannot take."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from daedal.runtime.batch.strands import MOST_IN_ORDER, VECTOR
from daedal.runtime.request import Array

Step: TypeAlias = Callable[[Array, Array], Array]
"""Gives the total of a total and a row."""

Reduce: TypeAlias = Callable[[Array], Array]
"""Reduces bags of one length, ``[bags, rows, columns]``, to ``[bags, columns]``."""


def _chain(rows: Array, step: Step, start: float | Array) -> Array:
    total = np.broadcast_to(np.asarray(start, rows.dtype), (len(rows), rows.shape[2]))
    for place in range(rows.shape[1]):
        total = step(total, rows[:, place])
    return total


def _by_lanes(rows: Array, step: Step, start: float) -> Array:
    """A chain; in whole vectors of long bags four, of rows i mod 4, and then the rows that are left over."""
    count, cut = rows.shape[1], rows.shape[2] // VECTOR * VECTOR
    if count == 1:
        return rows[:, 0]
    if count <= MOST_IN_ORDER or not cut:
        return _chain(rows, step, start)
    whole, front = count // 4 * 4, rows[..., :cut]
    first, second, third, last = (_chain(front[:, lane:whole:4], step, start) for lane in range(4))
    total = step(step(step(first, second), third), last)
    return np.concatenate([_chain(front[:, whole:], step, total), _chain(rows[..., cut:], step, start)], 1)


def sums(rows: Array) -> Array:
    """``Sum`` along an axis."""
    return _by_lanes(rows, np.add, 0.0)


def products(rows: Array) -> Array:
    """``SegmentProd``, and ``Prod`` along an axis."""
    return _by_lanes(rows, np.multiply, 1.0)


def unsorted_products(rows: Array) -> Array:
    """``UnsortedSegmentProd``."""
    return _chain(rows, np.multiply, 1.0)


def _replaced(is_before: Step) -> Step:
    """A row replaces what it is before: a NaN replaces nothing, and the first of equal ones stays."""
    return lambda total, row: np.where(is_before(row, total), row, total)


def _kept(is_before: Step) -> Step:
    """The total stays if it is before a row, else the row takes its place, be it a NaN or equal."""
    return lambda total, row: np.where(is_before(total, row), total, row)


def _first(mode: str) -> tuple[Step, float]:
    return (np.less, np.inf) if mode == "min" else (np.greater, -np.inf)


def extremes(mode: str) -> Reduce:
    """``SegmentMax`` and ``SegmentMin``: of NaN and zeros of both signs whole vectors make something else."""
    is_before, start = _first(mode)

    def reduce(rows: Array) -> Array:
        cut = rows.shape[2] // VECTOR * VECTOR
        front = _by_lanes(rows[..., :cut], _replaced(is_before), start)
        rest = rows[:, 0, cut:] if rows.shape[1] == 1 else _chain(rows[..., cut:], _kept(is_before), start)
        return np.concatenate([front, rest], 1)

    return reduce


def extremes_along_axis(mode: str) -> Reduce:
    """``Max`` and ``Min``: of rows with a NaN it is one; no rows are an infinity."""
    is_before, start = _first(mode)
    kept = _kept(is_before)
    return lambda rows: _by_lanes(rows, lambda a, b: np.where(np.isnan(a), a, kept(a, b)), start)


def unsorted_extremes(mode: str) -> Reduce:
    """``UnsortedSegmentMax`` and ``UnsortedSegmentMin``: from the lowest or the largest finite number."""
    is_before, sign = (np.less, 1) if mode == "min" else (np.greater, -1)
    return lambda rows: _chain(rows, _kept(is_before), sign * float(np.finfo(rows.dtype).max))


def by_segment(rows: Array, segments: Array, count: int, reduce: Reduce, empty: float) -> Array:
    """Each segment's rows reduced in their order, those of one length together; ``empty`` where there are none."""
    flat = rows.reshape(len(rows), -1)
    result = np.full((count, flat.shape[1]), empty, rows.dtype)
    order, lengths = np.argsort(segments, kind="stable"), np.bincount(segments, minlength=count)
    first = lengths.cumsum() - lengths
    with np.errstate(all="ignore"):
        for length in np.unique(lengths[lengths > 0]).tolist():
            here = np.flatnonzero(lengths == length)
            result[here] = reduce(flat[order[first[here, None] + np.arange(length)]])
    return result.reshape(count, *rows.shape[1:])
