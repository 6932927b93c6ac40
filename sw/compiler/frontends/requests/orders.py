"""Requests for sums and means whose order of additions is another framework's."""

import enum
from dataclasses import replace

import numpy as np

from daedal.compiler.frontends.requests.checks import element_of
from daedal.compiler.frontends.requests.reductions import destination_request
from daedal.driver.tables.table_sources import Source
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import LANE
from daedal.runtime.operations import BLOCKS, CHAIN, DIVIDED, FIRST, LANES, RECIPROCAL_BELOW_10, SINGLE, ZERO, Bag
from daedal.runtime.request import Array, Request
from daedal.runtime.tensors import array_of

MODES = ("sum", "mean", "sqrtn")
"""What is made of a sum of n rows: itself, a mean, or a quotient by √n."""

_NEGATIVE_ZERO = -(1 << 31)


class Order(enum.Enum):
    """The order in which rows of a bag are added up, and what its mean is; docs/tensorflow.md has the rules.

    CHAIN: one row after the other, from +0; means are divided. BLOCKS: chains of 8 rows, of which the first has what is
    left over (2 to 9 rows), added to each other, from the first row; sums of fewer than 10 rows are multiplied with
    1/n or 1/√n, others divided. LANES: as CHAIN below 16 rows; otherwise four sums by the row's number modulo 4, but in
    the last columns, modulo 8; a single row is taken as it is; means are divided. SEGMENT: as CHAIN, but a single row
    is taken as it is.
    """

    CHAIN = "chain"
    BLOCKS = "blocks"
    LANES = "lanes"
    SEGMENT = "segment"


_ADDITIONS = {Order.CHAIN: CHAIN, Order.BLOCKS: BLOCKS, Order.LANES: LANES, Order.SEGMENT: CHAIN}
"""In which order an operation has them."""

_STARTS = {Order.CHAIN: ZERO, Order.BLOCKS: FIRST, Order.LANES: SINGLE, Order.SEGMENT: SINGLE}
"""What an operation begins with."""


def ordered_request(
    name: str,
    table: Source,
    indices: Array | None,
    weights: Array | None,
    keys: Array,
    rows: int,
    mode: str,
    order: Order,
) -> Request:
    """The request for a reduction in this order into ``rows`` rows, as ``destination_request`` has it; ``mode`` is one
    of ``MODES``. Products of weights and rows are rounded before they are added.

    An operation that is not a chain from +0.0 (``Bag.in_list``) has to be one of a group, if the only one.
    UnsupportedOperation for other rows than those of float32, and for another mode.
    """
    if mode not in MODES:
        raise UnsupportedOperation(f"{name}: mode must be one of {', '.join(MODES)}, not {mode!r}")
    if order is Order.CHAIN and mode != "sqrtn":
        return destination_request(name, table, indices, weights, keys, rows, mode)
    if element_of(name, table) != LANE:
        raise UnsupportedOperation(f"{name}: the table must be of {LANE.dtype} for sums in this order: convert it")
    is_plain = order is Order.SEGMENT and mode != "sqrtn" and weights is None
    if is_plain and not _has_negative_zeros(table, indices):
        return destination_request(name, table, indices, weights, keys, rows, mode)
    request = destination_request(name, table, indices, weights, keys, rows, "sum")
    assert isinstance(request.operation, Bag)
    operation = replace(
        request.operation,
        mode=mode,
        order=_ADDITIONS[order],
        start=_STARTS[order],
        mean=RECIPROCAL_BELOW_10 if order is Order.BLOCKS else DIVIDED,
    )
    return replace(request, operation=operation)


def looked_up(table: Source, indices: Array | None) -> Array:
    """The rows of a table that these indices name, or all of them if these are fewer."""
    rows: Array = array_of(table)
    if indices is not None and len(rows) and len(indices) < len(rows):
        rows = rows.take(indices, axis=0, mode="clip")
    return rows


def _has_negative_zeros(table: Source, indices: Array | None) -> bool:
    """Whether a sum may be another one if it begins with its first row: there are rows with -0.0."""
    rows = looked_up(table, indices)
    return bool((rows.view(np.int32) == _NEGATIVE_ZERO).any()) if rows.size else False
