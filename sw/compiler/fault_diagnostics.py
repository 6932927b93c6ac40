"""Says which of several operations in a launch had the bad index or offset."""

from collections.abc import Sequence

import numpy as np

from daedal.compiler.batch_plan import Member
from daedal.errors import DaedalError, IndexOutOfRange, InvalidOffsets


def named(error: DaedalError, members: Sequence[Member]) -> DaedalError:
    """An error that names the operation and the value as the user gave it, with the machine's record of ``error``.

    Bad offsets come first: with them the machine may have taken another table's indices.
    """
    found = next((bad for member in members if (bad := _bad_offset(member)) is not None), None)
    found = found or next((bad for member in members if (bad := _bad_index(member)) is not None), None)
    if found is None:
        return error
    found.record = error.record
    return found


def _bad_offset(member: Member) -> DaedalError | None:
    if "offsets" not in member.request.buffers:
        return None
    offsets, entries = member.offsets, member.request.buffers["indices"].numel()
    outside = np.flatnonzero((offsets < 0) | (offsets > entries))
    falling = np.flatnonzero(np.diff(offsets) < 0) + 1
    if len(outside):
        position = int(outside[0])
        text = f"offset {offsets[position]} points outside the indices"
    elif len(falling):
        position = int(falling[0])
        text = f"offsets must not decrease, but {offsets[position]} is below the one before it"
    else:
        return None
    return InvalidOffsets(
        f"{member.call.name}: {text}: correct the offsets and run again; it is number {position} of the offsets, "
        "counted from 0"
    )


def _bad_index(member: Member) -> DaedalError | None:
    indices, rows = member.entries("indices"), len(member.request.table)
    bad = np.flatnonzero((indices < 0) | (indices >= rows))
    if not len(bad):
        return None
    return IndexOutOfRange(
        f"{member.call.name}: index {indices[bad[0]]} is out of range for its table: correct the indices and run "
        f"again (the table has {rows} rows); it is number {bad[0]} of the indices, counted from 0"
    )
