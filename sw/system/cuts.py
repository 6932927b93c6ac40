"""Parts of an operation: some columns of its table, and some of its bags."""

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.driver.tables.table_sources import Source, array_type, is_tensor
from daedal.hw.isa.elements import ELEMENTS, ROW_GRANULE
from daedal.runtime.batch.members import Call, PoolingCall, is_of_model
from daedal.runtime.operations import Lookup, Score
from daedal.runtime.request import Array, Request
from daedal.system.plan import PlannedTable, Range

LEAST_SLICE = 64
"""Bytes of the narrowest slice of a row that a plan makes: narrower ones keep a DRAM busy with opening its rows."""

SHORT_BITS, SHORT_BYTES = 32, 4
"""Of the indices of slices of columns, which all rows of any table need no more than."""

_SLICED = frozenset(element.dtype for element in ELEMENTS)
"""Elements each of which is by itself, so that some columns of a row are a row."""


def table_name(call: Call) -> str:
    """The name of an operation's table in the model; the operation's own for what is no tensor of the model's."""
    return call.table_name


def name_as(name: str, dim: int, dtype: str) -> str:
    """The name of a table where another operation takes its elements as rows of other ones, as of parts of rows."""
    return f"{name} as rows of {dim} {dtype}"


def columns_in(request: Request) -> int:
    """Columns of an operation's result, which are those of its table, or the integers of a row of it."""
    is_lookup = isinstance(request.operation, Lookup)
    return int(request.table.shape[1]) if is_lookup else request.operation.width


def column_step(request: Request) -> int:
    """Columns of a slice are a multiple of this; 0 for a table that is not cut so: what a row is must be known."""
    operation, dim = request.operation, columns_in(request)
    if request.form is not None:
        return 0
    item = array_type(request.dtype).itemsize
    if isinstance(operation, Lookup):
        return max(1, ROW_GRANULE // item)
    if operation.width != dim or request.dtype not in _SLICED:
        return 0
    return max(1, ROW_GRANULE // item)


def share(bags: Range, planned: int, rows: int) -> Range:
    """The part of ``rows`` bags that ``bags`` of ``planned`` stand for."""
    return bags[0] * rows // planned, bags[1] * rows // planned


def planned_table(name: str, call: Call, request: Request) -> PlannedTable:
    """What a plan says of the table of an operation."""
    rows, dim = int(request.table.shape[0]), columns_in(request)
    is_models = is_of_model(call, request.table)
    return PlannedTable(name, rows if is_models else None, dim, request.dtype, max(request.rows, 1), request.lookups)


def with_short_indices(request: Request) -> Request:
    """The same with indices of 32 bits, for slices of columns: each reads all indices, beside less of every row.

    As it is, where indices are short or do not fit: what is wrong with those is said of them as they are.
    """
    operation = request.operation
    if isinstance(operation, Score) or operation.index_bits <= SHORT_BITS:
        return request
    indices = request.buffers["indices"]
    short = indices.astype(np.int32)
    if not np.array_equal(short, indices):
        return request
    return replace(
        request,
        operation=replace(operation, index_bits=SHORT_BITS),
        buffers={**request.buffers, "indices": short},
    )


def cut(request: Request, table: Source, columns: Range, bags: Range) -> Request:
    """The request for some columns, which are those of ``table``, and some bags, out of the whole one."""
    width, (first, end) = columns[1] - columns[0], bags
    operation = request.operation
    is_wide = width == columns_in(request)
    if isinstance(operation, Lookup):
        elements = -(-width * array_type(request.dtype).itemsize // operation.element.bytes)
        indices = request.buffers["indices"][first:end]
        part = replace(operation, width=elements)
        return replace(request, operation=part, table=table, buffers={"indices": indices}, rows=end - first,
                       shape=(end - first, width))  # fmt: skip
    is_all = bags == (0, request.rows)
    buffers = dict(request.buffers) if is_all else _bags_of(request, first, end)
    part_of_bag = operation if is_wide else replace(operation, width=width)
    return replace(request, operation=part_of_bag, table=table, buffers=buffers, rows=end - first,
                   shape=(end - first, width), empty=0.0)  # fmt: skip


def _bags_of(request: Request, first: int, end: int) -> dict[str, Array]:
    offsets = request.buffers.get("offsets")
    if offsets is None:
        length = request.values["length"]
        start, stop = first * length, end * length
        found: dict[str, Array] = {}
    else:
        start, stop = int(offsets[first]), int(offsets[end])
        found = {"offsets": offsets[first : end + 1] - offsets[first]}
    return found | {name: each[start:stop] for name, each in request.buffers.items() if name != "offsets"}


def columns_of(table: Source, columns: Range) -> Source:
    """Some columns of a table, in its memory."""
    if columns == (0, table.shape[1]):
        return table
    if is_tensor(table):
        return table.detach()[:, columns[0] : columns[1]]
    return table[:, columns[0] : columns[1]]


class PieceCall:
    """An operation as a tile has it: its table is a part of the whole's, with a name of its own.

    Parameters
    ----------
    call
        The operation of the model; all else is asked of it.
    columns
        Those of its table; None for all.
    is_models
        Whether the table is the model's own.
    """

    def __init__(self, call: Call | PoolingCall, columns: Range | None, *, is_models: bool) -> None:
        self._call = call
        self.name = call.name
        self.table_name = table_name(call) + ("" if columns is None else f"[:, {columns[0]}:{columns[1]}]")
        self.table = _TableNode(getattr(call.table, "op", "get_attr"), self.table_name)
        if is_models:
            self.table = _TableNode("get_attr", self.table_name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


class _TableNode:
    """What a call's table is, in place of a node of the model's graph."""

    def __init__(self, op: str, target: str) -> None:
        self.op, self.target = op, target
