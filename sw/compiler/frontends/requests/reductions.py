"""Requests for a reduction of rows by destination or by segment, and for a sparse times a dense matrix.

Each is a pooling of bags: the rows of one destination, in their order. Destinations that are not in order are brought
into it by a stable sort, which keeps the order of what is added.
"""

import numpy as np

from daedal.compiler.frontends.requests.checks import (
    bits_of,
    check_counts,
    check_lengths,
    element_of,
    width_of,
    wrapped,
)
from daedal.driver.tables.table_sources import Source
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.hw.isa.elements import LANE, Element
from daedal.runtime.operations import Bag
from daedal.runtime.request import Array, Request


def destination_request(
    name: str,
    table: Source,
    indices: Array | None,
    weights: Array | None,
    keys: Array,
    rows: int,
    mode: str,
    *,
    wraps: bool = False,
    rounds_sums: bool = False,
) -> Request:
    """The request for a reduction into ``rows`` rows, of which ``keys`` name one for each row that is reduced.

    These are those of ``table`` that ``indices`` name (None: all of them), times ``weights``, one number each. Products
    of 16-bit elements are rounded, and with ``rounds_sums`` what comes of each addition.
    IndexOutOfRange for a destination that there is not, LeftToFramework for rows without elements, whatever names them.
    """
    width_of(name, table)
    offsets, order = _row_order(name, keys, rows)
    return _request(name, table, indices, weights, offsets, order, mode, wraps=wraps, rounds_sums=rounds_sums)


def segment_request(
    name: str,
    table: Source,
    indices: Array | None,
    weights: Array | None,
    offsets: Array,
    mode: str,
    *,
    empty: float = 0.0,
    wraps: bool = False,
) -> Request:
    """The request for a reduction of rows that follow each other, from one of ``offsets`` to the next.

    ``table``, ``indices`` and ``weights`` are as in ``destination_request``; a segment without rows gives ``empty``.
    Products of 16-bit elements are rounded, and what comes of each addition. PyTorch divides their sum by a number that
    is rounded as well.
    """
    return _request(name, table, indices, weights, offsets, None, mode, empty=empty, wraps=wraps, rounds_sums=True)


def _request(
    name: str,
    table: Source,
    indices: Array | None,
    weights: Array | None,
    offsets: Array,
    order: Array | None,
    mode: str,
    *,
    empty: float = 0.0,
    wraps: bool,
    rounds_sums: bool,
) -> Request:
    count = len(table) if indices is None else len(indices)
    if weights is not None and len(weights) != count:
        raise UnsupportedOperation(f"{name}: there must be a weight for each of the {count} rows")
    if indices is None:
        indices = np.arange(count) if order is None else order
    else:
        if wraps:
            indices = wrapped(indices, len(table))
        indices = indices if order is None else indices[order]
    buffers = {"indices": indices, "offsets": offsets}
    if weights is not None:
        flat = weights.reshape(-1)
        buffers["weights"] = flat if order is None else flat[order]
    check_lengths(name, count, offsets)
    width, rows = width_of(name, table), len(offsets) - 1
    is_weighted, element = weights is not None, element_of(name, table)
    if mode == "mean":
        check_counts(name, element, count, offsets)
    rounds = "" if mode not in ("sum", "mean") else _rounds(element, products=is_weighted, sums=rounds_sums)
    operation = Bag(
        mode, width, bits_of(indices), bits_of(offsets), is_weighted=is_weighted, element=element, rounds=rounds
    )
    return Request(operation, table, buffers, {}, rows, (rows, width), empty)


def _rounds(element: Element, *, products: bool, sums: bool) -> str:
    """What is rounded of rows of this type, as ``emb.bag`` has it."""
    return " and ".join(what for what, is_so in (("products", products), ("sums", sums)) if is_so and element != LANE)


def heads_apart(
    name: str, count: int, rows: int, heads: int, indices: Array | None, keys: Array, *, wraps: bool
) -> tuple[Array, Array]:
    """Indices and destinations of rows in ``heads`` parts, each of which has a weight: those of the parts, one by one.

    The table has ``rows`` rows, the result ``count``. IndexOutOfRange for rows that there are not.
    """
    taken = np.arange(len(keys)) if indices is None else wrapped(indices, rows) if wraps else indices
    for what, values, end in (("index", taken, rows), ("destination", keys, count)):
        if values.size and not 0 <= values.min() <= values.max() < end:
            bad = values.min() if values.min() < 0 else values.max()
            raise IndexOutOfRange(f"{name}: {what} {bad} is out of range for {end} rows: correct it")
    part = np.arange(heads)
    apart = [(each.astype(np.int64)[:, None] * heads + part).reshape(-1) for each in (taken, keys)]
    return apart[0], apart[1]


def ends_of_lengths(name: str, lengths: Array, count: int) -> Array:
    """Where segments of these lengths begin and the last one ends, int64; UnsupportedOperation unless they have
    ``count`` rows in all.
    """
    ends = np.concatenate([np.zeros(1, np.int64), lengths.cumsum(dtype=np.int64)])
    if len(lengths) and (lengths.min() < 0 or ends[-1] != count):
        raise UnsupportedOperation(f"{name}: lengths must add up to the number of rows, {count}")
    return ends


def ends_of_offsets(name: str, offsets: Array, count: int) -> Array:
    """Where segments begin and the last one ends, int64; UnsupportedOperation unless that is within ``count`` rows."""
    ends = offsets.astype(np.int64)
    if not len(ends) or ends[0] != 0 or ends[-1] > count or (np.diff(ends) < 0).any():
        raise UnsupportedOperation(
            f"{name}: offsets must start from 0, not decrease, and end at the number of rows, {count}, or before"
        )
    return ends


def coo_request(name: str, table: Source, places: tuple[Array, Array], values: Array, rows: int) -> Request:
    """The request for a sparse matrix of ``rows`` rows times a dense one: ``places`` are row and column of each of its
    values. Product and sum are rounded once; of 16-bit elements each of them.
    """
    width_of(name, table)
    offsets, order = _row_order(name, places[0], rows)
    columns = places[1]
    if order is not None:
        columns, values = columns[order], values[order]
    return _product(name, table, columns, offsets, values, is_fused=element_of(name, table) == LANE)


def csr_request(
    name: str, table: Source, columns: Array, offsets: Array, values: Array, *, is_fused: bool, mode: str = "sum"
) -> Request:
    """The request for a sparse times a dense matrix: its columns and values, and where rows begin and the last ends.
    Product and sum are rounded once, or each.
    """
    if mode == "mean":
        check_counts(name, element_of(name, table), len(columns), offsets)
    return _product(name, table, columns, offsets, values, is_fused=is_fused, mode=mode)


def _product(
    name: str, table: Source, columns: Array, offsets: Array, values: Array, *, is_fused: bool, mode: str = "sum"
) -> Request:
    check_lengths(name, len(columns), offsets)
    width, rows = width_of(name, table), len(offsets) - 1
    bits, element = (bits_of(columns), bits_of(offsets)), element_of(name, table)
    rounds = _rounds(element, products=True, sums=True)
    operation = Bag(mode, width, *bits, is_weighted=True, is_fused=is_fused, element=element, rounds=rounds)
    buffers = {"indices": columns, "offsets": offsets, "weights": values}
    return Request(operation, table, buffers, {}, rows, (rows, width))


def _row_order(name: str, keys: Array, rows: int) -> tuple[Array, Array | None]:
    """Offsets of the entries of each of the rows that ``keys`` name, and a stable order if they are not in one."""
    if keys.size and not 0 <= keys.min() <= keys.max() < rows:
        bad = keys.min() if keys.min() < 0 else keys.max()
        raise IndexOutOfRange(f"{name}: destination {bad} is out of range for a result of {rows} rows: correct it")
    offsets = np.concatenate([np.zeros(1, np.int64), np.bincount(keys, minlength=rows).cumsum()])
    if (keys[1:] >= keys[:-1]).all():
        return offsets, None
    return offsets, _stable_order(keys)


def _stable_order(keys: Array) -> Array:
    """Places of the keys, none of them negative, by key and then by place.

    Keys and places are sorted as one number each, of which no two are equal: that takes NumPy an eighth of the time of
    its stable sort.
    """
    count = len(keys)
    return np.sort(keys.astype(np.int64) * count + np.arange(count)) % count
