"""What a user is told of indices outside their table that row 0 took the place of."""

from collections.abc import Sequence

import numpy as np

from daedal.compiler.batch_plan import Member
from daedal.compiler.frontends.torch.requests import Request
from daedal.driver.record import Record
from daedal.errors import BoundsWarning, IndexOutOfRange
from daedal.hw.isa.launch import Counter


def warning_of(name: str, rows: int, record: Record) -> BoundsWarning | None:
    """The warning for a launch of operation ``name`` on a table with that many rows, if there is one to give."""
    count = record.counters[Counter.BOUNDS_WARNINGS]
    if not count:
        return None
    what = "lookup of an index that is" if count == 1 else "lookups of indices that are"
    return BoundsWarning(
        f"{name}: {count} {what} out of range, the first one met {record.signed_value} (the table has {rows} rows): "
        "row 0 was taken instead"
    )


def warning_of_list(members: Sequence[Member], record: Record) -> BoundsWarning | None:
    """The same for a launch of several operations; it names one whose indices have the value."""
    value = record.signed_value
    found = next((member for member in members if not 0 <= value < _rows(member) and _has(member, value)), members[0])
    return warning_of(found.call.name, _rows(found), record)


def _rows(member: Member) -> int:
    return len(member.request.table)


def _has(member: Member, value: int) -> bool:
    return bool(np.any(member.entries("indices") == value))


def check_row_0(name: str, request: Request) -> None:
    """Raise IndexOutOfRange if there are indices but no row that could take the place of a bad one."""
    indices = request.buffers["indices"]
    used = int(request.buffers["offsets"][-1]) if "offsets" in request.buffers else indices.numel()
    if used > 0 and not len(request.table):
        raise IndexOutOfRange(
            f"{name}: index {int(indices[0])} is out of range for its table, which has no rows, so none to take "
            "instead: give the table rows, or leave out the indices"
        )
