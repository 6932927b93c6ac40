"""What a user is told of bad indices and offsets: which operation had them, where, and what was taken instead."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.errors import BoundsWarning, DaedalError, IndexOutOfRange, InvalidOffsets
from daedal.hw.isa.launch import Cause
from daedal.runtime.batch.members import Member
from daedal.runtime.operations import Score, named_rows
from daedal.runtime.request import Request


def warning_of(operations: Sequence[tuple[str, Request]], counted: int, met: Collection[int]) -> BoundsWarning | None:
    """The warning for operations, each with what it is called in messages, if machines have ``counted`` any look-ups of
    indices that are out of range; ``met`` are the first of them in each launch.

    Each look-up counts once, in however many slices, or parts, of a row a machine takes it.
    """
    if not counted:
        return None
    bad = [(label, *each) for label, request in operations for each in _outside(request)]
    count = sum(len(values) for *_, values in bad) or counted
    others = [each for each in bad if len(each[-1])] or [(operations[0][0], len(operations[0][1].table), list(met))]
    label, rows, values = next((each for each in others if not set(met).isdisjoint(each[-1])), others[0])
    first = next((value for value in values if value in met), values[0])
    what = "lookup of an index that is" if count == 1 else "lookups of indices that are"
    return BoundsWarning(
        f"{label}: {count} {what} out of range, the first one met {first} (the table has {rows} rows): row 0 was taken "
        "instead"
    )


def _outside(request: Request) -> list[tuple[int, list[int]]]:
    """The indices of a request that are outside of its table, or of each of its tables, with the rows of that."""
    if isinstance(request.operation, Score):
        tables, lists = [request.table, *(table for _, table in request.others)], list(request.lists.values())
        pairs = [(tables[table], lists[entries]) for table, entries in named_rows(request.operation)]
    else:
        used = int(request.buffers["offsets"][-1]) if "offsets" in request.buffers else None
        pairs = [(request.table, request.buffers["indices"][:used])]
    return [(len(table), indices[(indices < 0) | (indices >= len(table))].tolist()) for table, indices in pairs]


def check_row_0(name: str, request: Request) -> None:
    """Raise IndexOutOfRange if there are indices but no row that could take the place of a bad one."""
    indices = request.buffers["indices"]
    used = int(request.buffers["offsets"][-1]) if "offsets" in request.buffers else indices.size
    if used > 0 and not all(len(table) for table in (request.table, *(table for _, table in request.others))):
        raise IndexOutOfRange(
            f"{name}: index {int(indices[0])} is out of range for its table, which has no rows, so none to take "
            "instead: give the table rows, or leave out the indices"
        )


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
    return bad_offset(member.call.label, member.offsets, member.request.buffers["indices"].size)


def bad_offset(label: str, offsets: NDArray[Any], entries: int) -> InvalidOffsets | None:
    """The error of the first offset that is outside of so many indices, or below the one before it; None if all are
    right.
    """
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
        f"{label}: {text}: correct the offsets and run again; it is number {position} of the offsets, counted from 0"
    )


def _bad_index(member: Member) -> DaedalError | None:
    indices, rows = member.entries("indices"), len(member.request.table)
    bad = np.flatnonzero((indices < 0) | (indices >= rows))
    if not len(bad):
        return None
    return IndexOutOfRange(
        f"{member.call.label}: index {indices[bad[0]]} is out of range for its table: correct the indices and run "
        f"again (the table has {rows} rows); it is number {bad[0]} of the indices, counted from 0"
    )


def say_which(error: DaedalError, node: str, request: Request) -> None:
    """Say of a score which of its lists of indices the value is in, and of how many rows its tables are."""
    tables = [request.table, *(table for _, table in request.others)]
    assert isinstance(request.operation, Score)
    message = f"{node}: {error}"
    for number, indices in enumerate(request.lists.values()):
        rows = min(len(tables[table]) for table, entries in named_rows(request.operation) if entries == number)
        outside = np.flatnonzero((indices < 0) | (indices >= rows))
        if len(outside) and error.record is not None and indices[outside[0]] == error.record.signed_value:
            message += f" (the table has {rows} rows); it is number {outside[0]} of its indices, counted from 0"
            break
    error.args = (message,)


def say_where(error: IndexOutOfRange | InvalidOffsets, node: str, request: Request, rows: int) -> None:
    """Say in which operation it was and at which position, and how many rows the table has.

    The machine stops at the first bad value, so this is where the value is first; among offsets, where it
    comes after a greater one.
    """
    record = error.record
    message = f"{node}: {error}"
    if isinstance(error, IndexOutOfRange):
        message += f" (the table has {rows} rows)"
    name = "indices" if isinstance(error, IndexOutOfRange) else "offsets"
    if isinstance(request.operation, Score):
        say_which(error, node, request)
        return
    if record is not None and name in request.buffers:
        values = request.buffers[name]
        found = values == record.signed_value
        if record.cause is Cause.BOUNDS_ORDER:
            found[1:] &= values[:-1] > values[1:]
            found[:1] = False
        position = int(found.argmax())
        if found[position]:
            message += f"; it is number {position} of the {name}, counted from 0"
            if position and name == "offsets":
                message += f", after {int(values[position - 1])}"
    error.args = (message,)
