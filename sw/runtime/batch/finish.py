"""What the host does with sums that a launch gives: means that are products, or that a count does not divide."""

import numpy as np

from daedal.runtime.batch.members import Array, Member
from daedal.runtime.operations import DIVIDED, FIRST, RECIPROCAL, SINGLE
from daedal.runtime.tensors import array_of

_DIVIDED_FROM = 10
"""Rows from which on a mean by reciprocals below this number is a division."""


def finish(member: Member, sums: Array) -> None:
    """Make of the sums of an operation that has strands, f32, what it gives; in place."""
    operation, lengths = member.operation, np.diff(member.offsets)
    if operation.start == FIRST:
        _keep_negative_zeros(member, sums)
    if operation.start == SINGLE:
        _take_single_rows(member, sums)
    if operation.mode == "sum":
        return
    number = np.maximum(lengths, 1).astype(np.float32)
    divisor = (np.sqrt(number) if operation.mode == "sqrtn" else number)[:, None]
    with np.errstate(all="ignore"):
        if operation.mean == DIVIDED:
            sums /= divisor
        elif operation.mean == RECIPROCAL:
            sums *= np.float32(1) / divisor
        else:
            few = lengths < _DIVIDED_FROM
            sums[few] *= np.float32(1) / divisor[few]
            sums[~few] /= divisor[~few]


def _keep_negative_zeros(member: Member, sums: Array) -> None:
    """Where all rows of a bag are -0.0, so is a sum that begins with its first row; the launch began with +0.0."""
    lengths = np.diff(member.offsets)
    found = np.flatnonzero((lengths > 0) & (sums == 0).any(1))
    if not found.size:
        return
    each = lengths[found]
    begin = each.cumsum() - each
    entries = np.arange(each.sum()) + np.repeat(member.offsets[found] - begin, each)
    rows = array_of(member.request.table)[member.entries("indices")[entries]]
    if member.is_weighted:
        rows = rows * member.entries("weights")[entries, None]
    are_negative = np.logical_and.reduceat((rows == 0) & np.signbit(rows), begin)
    sums[found] = np.where(are_negative, np.float32(-0.0), sums[found])


def _take_single_rows(member: Member, sums: Array) -> None:
    """Where a bag has one row, that is its sum: it differs from +0.0 plus the row if that is -0.0."""
    offsets = member.offsets
    single = np.flatnonzero((np.diff(offsets) == 1) & (sums == 0).any(1))
    if not single.size:
        return
    entries = offsets[:-1][single]
    rows = array_of(member.request.table)[member.entries("indices")[entries]]
    if member.is_weighted:
        rows = rows * member.entries("weights")[entries, None]
    sums[single] = np.where(rows == 0, rows, sums[single])
