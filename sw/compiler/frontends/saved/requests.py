"""Requests of the operations of a saved executable, on NumPy arrays; ``frontends/torch/ops`` has them on tensors."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.compiler.frontends.requests.bags import bag_request
from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.lookups import lookup_request, pooled_request
from daedal.compiler.frontends.requests.quantised_bags import quantised_request
from daedal.compiler.frontends.requests.reductions import (
    destination_request,
    ends_of_lengths,
    ends_of_offsets,
    heads_apart,
    segment_request,
)
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import dtype_name
from daedal.errors import UnsupportedOperation
from daedal.runtime.operations import EXTREMES
from daedal.runtime.request import Request
from daedal.runtime.saved.operations import (
    SavedBags,
    SavedDestinations,
    SavedLookup,
    SavedOperation,
    SavedPooledLookup,
    SavedQuantisedBags,
    SavedSegments,
)

Array = NDArray[Any]


def request_of(name: str, operation: SavedOperation, sources: Sequence[Any]) -> Request:
    """The request for an operation with these values of its sources; UnsupportedOperation if it cannot take them."""
    make: Callable[..., Request] = _REQUESTS[type(operation)]
    return make(name, operation, *sources)


def _bags(name: str, saved: SavedBags, table: Any, indices: Any, offsets: Any, weights: Any) -> Request:
    rows = _rows(name, table, ROW_TYPES)
    return bag_request(
        name,
        rows,
        _integers(name, "indices", indices),
        None if offsets is None else _integers(name, "offsets", offsets),
        None if weights is None else _weights(name, weights, rows),
        mode=saved.mode,
        padding=saved.padding,
        include_last_offset=saved.include_last_offset,
        is_fused=weights is not None and _step(rows) == 1,
        is_away=dtype_name(rows) == "bfloat16" and saved.padding is None and _step(rows) == 1,
    )


def _lookup(name: str, saved: SavedLookup, table: Any, indices: Any) -> Request:
    inner = table.shape[1:]
    rows = _flat(table)
    if saved.is_column:
        indices = _column(name, indices, rows.shape[1])
    request = lookup_request(name, rows, _integers(name, "indices", indices), wraps=saved.wraps)
    return request if len(inner) == 1 else replace(request, shape=(*indices.shape, *inner))


def _pooled(name: str, saved: SavedPooledLookup, table: Any, indices: Any, weights: Any = None) -> Request:
    rows, integers = _rows(name, table, ("float32",)), _integers(name, "indices", indices)
    if integers.ndim != 2 or integers.shape[1] not in saved.lengths:
        raise UnsupportedOperation(
            f"{name}: the indices must have 2 dimensions, the second of a size in whose order of additions the module "
            f"was saved, not shape {integers.shape}"
        )
    factors = None
    if weights is not None:
        if weights.shape != (*integers.shape, 1):
            raise UnsupportedOperation(f"{name}: weights must have shape {(*integers.shape, 1)}, not {weights.shape}")
        factors = np.ascontiguousarray(weights[..., 0], np.float32)
    return pooled_request(
        name, rows, integers, saved.mode,
        block=saved.block, weights=factors, keeps_dim=saved.keeps_dim, wraps=saved.wraps,
    )  # fmt: skip


def _destinations(
    name: str, saved: SavedDestinations, base: Any, table: Any, indices: Any, weights: Any, keys: Any
) -> Request:
    inner, rows = table.shape[1:], _rows(name, _flat(table), ROW_TYPES)
    keys = _integers(name, "destinations", keys)
    if saved.is_column:
        keys = keys.reshape(len(keys))
    elif keys.ndim > 1:
        keys = np.ascontiguousarray(_column(name, keys, rows.shape[1]))
    if saved.keys_wrap:
        keys = np.where((keys < 0) & (keys >= -len(base)), keys + keys.dtype.type(len(base)), keys)
    given = None if indices is None else _integers(name, "indices", indices)
    count = len(rows) if given is None else len(given)
    if base.shape[1:] != inner or len(keys) != count:
        raise UnsupportedOperation(f"{name}: there must be a destination for each row, and columns as in rows")
    if saved.mode in EXTREMES:
        _check_extreme(name, saved.mode, rows)
        signs = np.signbit(rows)[rows == 0]
        if signs.any() and not signs.all():
            raise UnsupportedOperation(f"{name}: rows must not have +0.0 and -0.0 for a {saved.mode}imum")
    factors = None if weights is None else _weights(name, weights, rows)
    result, wraps = len(base), saved.wraps
    if factors is not None and factors.size != len(factors):
        heads = math.prod(inner[:-1])
        parts = heads_apart(name, len(base), len(rows), heads, given, keys, wraps=wraps)
        rows = rows.reshape(-1, inner[-1])
        (given, keys), result, wraps, factors = parts, result * heads, False, factors.reshape(-1)
    request = destination_request(
        name, rows, given, factors, keys, result, saved.mode, wraps=wraps, rounds_sums=saved.rounds_sums
    )
    return request if len(inner) == 1 else replace(request, shape=tuple(base.shape))


def _segments(name: str, saved: SavedSegments, table: Any, indices: Any, weights: Any, keys: Any) -> Request:
    rows = _rows(name, table, ROW_TYPES)
    given = None if indices is None else _integers(name, "indices", indices)
    ends = ends_of_offsets if saved.has_offsets else ends_of_lengths
    offsets = ends(name, _integers(name, "segments", keys), len(rows) if given is None else len(given))
    if saved.mode in EXTREMES:
        _check_extreme(name, saved.mode, rows)
    factors = None if weights is None else _weights(name, weights, rows)
    return segment_request(name, rows, given, factors, offsets, saved.mode, empty=float(saved.empty), wraps=saved.wraps)


def _quantised(name: str, saved: SavedQuantisedBags, table: Any, indices: Any, offsets: Any, weights: Any) -> Request:
    rows = _rows(name, table, ("uint8",))
    head = QuantisedRows(saved.bits, 0, saved.number)
    columns = (rows.shape[1] - head.row_bytes) * (8 // saved.bits)
    if columns < 1:
        raise UnsupportedOperation(
            f"{name}: rows must have a scale, a bias and at least one element, not {rows.shape[1]} bytes"
        )
    return quantised_request(
        name,
        rows,
        replace(head, dim=columns),
        _integers(name, "indices", indices),
        None if offsets is None else _integers(name, "offsets", offsets),
        None if weights is None else _weights(name, weights, np.zeros(0, np.float32)),
        include_last_offset=saved.include_last_offset,
    )


_REQUESTS: Mapping[type, Callable[..., Request]] = {
    SavedBags: _bags,
    SavedLookup: _lookup,
    SavedPooledLookup: _pooled,
    SavedDestinations: _destinations,
    SavedSegments: _segments,
    SavedQuantisedBags: _quantised,
}


def _integers(name: str, what: str, value: Any) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype not in (np.int32, np.int64):
        kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise UnsupportedOperation(f"{name}: {what} must be an array of int32 or int64, not {kind}")
    return np.ascontiguousarray(value)


def _rows(name: str, table: Any, dtypes: Any) -> Array:
    if not isinstance(table, np.ndarray) or table.ndim != 2 or dtype_name(table) not in dtypes:
        kind = f"{table.ndim} of {dtype_name(table)}" if isinstance(table, np.ndarray) else type(table).__name__
        raise UnsupportedOperation(f"{name}: the table must have 2 dimensions, of {' or '.join(dtypes)}, not {kind}")
    return table


def _weights(name: str, weights: Any, rows: Array) -> Array:
    """Weights of the rows' type, as binary32."""
    if not isinstance(weights, np.ndarray) or weights.dtype != rows.dtype:
        kind = weights.dtype if isinstance(weights, np.ndarray) else type(weights).__name__
        raise UnsupportedOperation(f"{name}: weights must be of {dtype_name(rows)}, as the table, not {kind}")
    if dtype_name(rows) == "bfloat16":
        return (np.ascontiguousarray(weights).astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(weights, np.float32)


def _flat(table: Array) -> Array:
    """A table whose rows have dimensions of their own with rows that have none."""
    return table if table.ndim < 3 else table.reshape(len(table), math.prod(table.shape[1:]))


def _column(name: str, keys: Array, width: int) -> Array:
    """The rows that a 2-D index names, if it names whole rows."""
    flat = keys.reshape(len(keys), -1) if len(keys) else keys.reshape(0, width)
    if flat.shape[1] != width or (flat != flat[:, :1]).any():
        raise UnsupportedOperation(f"{name}: the index must be one column, expanded to the {width} of the rows")
    return flat[:, 0]


def _step(rows: Array) -> int:
    return rows.strides[1] // rows.itemsize


def _check_extreme(name: str, mode: str, rows: Array) -> None:
    if np.isnan(rows).any():
        raise UnsupportedOperation(f"{name}: rows must be free of NaN for a {mode}imum, which PyTorch hands on")
