"""Checks what a run gives to an operation, as far as the machine does not, and brings it into the form it
takes.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from daedal.compiler.frontends.torch.device_suitability import LeftToPyTorch
from daedal.compiler.frontends.torch.match import BagCall, Call, LookupCall
from daedal.compiler.frontends.torch.ops import csr_order
from daedal.compiler.frontends.torch.ops.pooled_lookups import BLOCK, ORDER, PooledCall, adds_in_blocks
from daedal.compiler.frontends.torch.segments import SegmentCall, SparseCall
from daedal.errors import IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.words import PITCH_BITS
from daedal.runtime.operations import Bag, Lookup
from daedal.runtime.request import LONGEST_BAG, Request

INDEX_BITS = {torch.int32: 32, torch.int64: 64}

LONGEST_ROW = ((1 << PITCH_BITS) - 64) // BINARY32.bytes
"""Elements of the longest row of a table, which takes whole lines of memory, of up to 64 bytes."""


def request_of(call: Call, sources: Sequence[Any]) -> Request:
    """The request for a call with these values of its sources."""
    match call:
        case LookupCall():
            return lookup_request(call, *sources)
        case BagCall():
            return bag_request(call, *sources)
        case PooledCall():
            return pooled_request(call, *sources)
        case SegmentCall():
            return segment_request(call, *sources)
        case SparseCall():
            return sparse_request(call, *sources)


def lookup_request(call: LookupCall, table: Any, indices: Any) -> Request:
    """The request for a gather; UnsupportedOperation for inputs that it cannot take."""
    width = _check_table(call.name, table)
    bits = _check_integers(call.name, "indices", indices)
    if call.is_gather:
        indices = column_of(call.name, indices, width)
    _check_order(call, indices)
    flat = indices.detach().reshape(-1).contiguous()
    if call.wraps:
        flat = _wrapped(flat, len(table))
    shape = (*indices.shape, width)
    return Request(Lookup(width, bits), table, {"indices": flat}, {}, flat.numel(), shape)


def pooled_request(call: PooledCall, table: Any, indices: Any) -> Request:
    """The request for a pooling of looked-up rows, where PyTorch's order of additions is one that bags have."""
    width = _check_table(call.name, table)
    bits = _check_integers(call.name, "indices", indices)
    bags, length = indices.shape
    _check_order(call, indices)
    if not adds_in_blocks(length, width):
        raise UnsupportedOperation(f"{call.name}: PyTorch adds {length} rows of {width} elements {ORDER}")
    operation = Bag(call.mode, width, bits, None, block=BLOCK if length > BLOCK else None)
    flat = indices.detach().reshape(-1).contiguous()
    if call.wraps:
        flat = _wrapped(flat, len(table))
    shape = (bags, 1, width) if call.keeps_dim else (bags, width)
    return Request(operation, table, {"indices": flat}, {"length": length}, bags, shape)


def _check_order(call: LookupCall | PooledCall, indices: Tensor) -> None:
    """Raise UnsupportedOperation for ``table[indices]`` whose rows PyTorch lays out in another order than theirs."""
    if call.wraps and not indices.is_contiguous() and indices.dim() > 1:
        raise UnsupportedOperation(
            f"{call.name}: PyTorch lays rows out as their indices lie in memory, which must be contiguous: "
            "use indices.contiguous()"
        )


def _wrapped(indices: Tensor, rows: int) -> Tensor:
    """Indices of which negative ones count from the end; those out of range stay so."""
    if not indices.numel() or int(indices.min()) >= 0:
        return indices
    return torch.where((indices < 0) & (indices >= -rows), indices + rows, indices)


def column_of(name: str, keys: Tensor, width: int) -> Tensor:
    """The rows that a 2-D index names, if it names whole rows: a column that was expanded."""
    if keys.shape[1] != width or (width > 1 and keys.stride(1) != 0):
        raise UnsupportedOperation(f"{name}: the index must be one column, expanded to the {width} of the rows")
    return keys[:, 0]


def segment_request(call: SegmentCall, base: Any, table: Any, indices: Any, weights: Any, keys: Any) -> Request:
    """The request for a reduction by destination; see :mod:`daedal.compiler.frontends.torch.segments`."""
    width = _check_table(call.name, table)
    count = len(table) if indices is None else len(indices)
    if base is None:
        offsets, order = _segments(call, keys, count), None
    else:
        if call.is_column:
            keys = keys[:, 0]
        elif keys.dim() == 2:
            keys = column_of(call.name, keys, width)
        if tuple(base.shape[1:]) != (width,) or len(keys) != count:
            raise UnsupportedOperation(f"{call.name}: there must be a destination for each row, and columns as in rows")
        if not base.is_contiguous():
            raise UnsupportedOperation(f"{call.name}: what rows are added to must be contiguous, as the result is")
        offsets, order = _row_order(call.name, keys, len(base))
    if weights is not None and len(weights) != count:
        raise UnsupportedOperation(f"{call.name}: there must be a weight for each of the {count} rows")
    if call.mode == "max":
        _check_maximum(call, table)
    if call.wraps and indices is not None:
        indices = _wrapped(indices, len(table))
    if indices is None:
        indices = torch.arange(count, device="cpu") if order is None else order
    elif order is not None:
        indices = indices[order]
    buffers = {"indices": indices.detach().contiguous(), "offsets": offsets}
    if weights is not None:
        flat = weights.detach().resolve_neg().reshape(-1)
        buffers["weights"] = (flat if order is None else flat[order]).contiguous()
    _check_lengths(call.name, count, offsets)
    rows = len(offsets) - 1
    bits = INDEX_BITS[indices.dtype]
    operation = Bag(call.mode, width, bits, 64, is_weighted=weights is not None)
    return Request(operation, table, buffers, {}, rows, (rows, width), call.empty)


def _segments(call: SegmentCall, keys: Tensor, count: int) -> Tensor:
    """Where segments begin and the last one ends, of their lengths or of just that."""
    if not call.has_offsets:
        offsets = torch.cat([keys.new_zeros(1), keys.cumsum(0)]).to(torch.int64)
        if len(keys) and (int(keys.min()) < 0 or int(offsets[-1]) != count):
            raise UnsupportedOperation(f"{call.name}: lengths must add up to the number of rows, {count}")
        return offsets
    offsets = keys.to(torch.int64).contiguous()
    if not len(offsets) or int(offsets[0]) != 0 or int(offsets[-1]) > count or bool((offsets.diff() < 0).any()):
        raise UnsupportedOperation(
            f"{call.name}: offsets must start from 0, not decrease, and end at the number of rows, {count}, or before"
        )
    return offsets


def _check_maximum(call: SegmentCall, table: Tensor) -> None:
    """Raise UnsupportedOperation for rows whose maximum PyTorch takes in another way than bags."""
    if bool(table.isnan().any()):
        raise UnsupportedOperation(f"{call.name}: rows must be free of NaN for a maximum, which PyTorch hands on")
    if call.base is not None:
        signs = table.signbit()[table == 0]
        if bool(signs.any()) and not bool(signs.all()):
            raise UnsupportedOperation(
                f"{call.name}: rows must not have +0.0 and -0.0 for a maximum: which of them PyTorch takes depends "
                "on the width"
            )


def sparse_request(call: SparseCall, matrix: Any, table: Any) -> Request:
    """The request for a sparse times a dense matrix: of rows in COO, PyTorch adds with fused products, in CSR not."""
    width = _check_table(call.name, table)
    if matrix.dim() != 2 or matrix.dense_dim() or matrix.shape[1] != len(table):
        raise UnsupportedOperation(
            f"{call.name}: the matrix must have 2 dimensions, the second of {len(table)}, "
            f"not shape {tuple(matrix.shape)}"
        )
    if matrix.layout is torch.sparse_csr:
        if not csr_order.adds_in_order():
            raise UnsupportedOperation(
                f"{call.name}: PyTorch adds the products of a CSR matrix in an order of its own on this processor: use "
                "to_sparse_coo()"
            )
        offsets, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    else:
        places, values = matrix._indices(), matrix._values()
        offsets, order = _row_order(call.name, places[0], len(matrix))
        columns = places[1]
        if order is not None:
            columns, values = columns[order], values[order]
    _check_lengths(call.name, len(columns), offsets)
    operation = Bag(
        "sum", width, INDEX_BITS[columns.dtype], INDEX_BITS[offsets.dtype], is_weighted=True,
        is_fused=matrix.layout is torch.sparse_coo,
    )  # fmt: skip
    buffers = {
        "indices": columns.contiguous(),
        "offsets": offsets,
        "weights": values.detach().resolve_neg().contiguous(),
    }
    return Request(operation, table, buffers, {}, len(matrix), (len(matrix), width))


def _row_order(name: str, keys: Tensor, rows: int) -> tuple[Tensor, Tensor | None]:
    """Offsets of the entries of each of the rows that ``keys`` name, and a stable order if they are not in one."""
    if keys.numel() and not 0 <= int(keys.min()) <= int(keys.max()) < rows:
        bad = int(keys.min()) if int(keys.min()) < 0 else int(keys.max())
        raise IndexOutOfRange(f"{name}: destination {bad} is out of range for a result of {rows} rows: correct it")
    counts = torch.bincount(keys, minlength=rows)
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    if bool((keys[1:] >= keys[:-1]).all()):
        return offsets, None
    return offsets, torch.argsort(keys, stable=True)


def bag_request(call: BagCall, table: Any, indices: Any, offsets: Any, weights: Any) -> Request:
    """The request for a pooling of bags.

    Raises UnsupportedOperation for types and shapes that it cannot take, InvalidOffsets for offsets that do
    not go with the indices. The order of offsets and the values of indices are checked by the machine.
    """
    width = _check_table(call.name, table)
    index_bits = _check_integers(call.name, "indices", indices)
    buffers = {"indices": indices.detach().reshape(-1).contiguous()}
    values: dict[str, int] = {}
    offset_bits = None
    if indices.dim() == 2:
        if offsets is not None:
            raise InvalidOffsets(f"{call.name}: offsets must be None for indices with 2 dimensions: leave them out")
        bags, values["length"] = indices.shape
    elif indices.dim() == 1:
        offset_bits = _check_offsets(call, indices, offsets)
        buffers["offsets"] = _closed(call, indices, offsets)
        bags = buffers["offsets"].numel() - 1
    else:
        raise UnsupportedOperation(f"{call.name}: indices must have 1 or 2 dimensions, not {indices.dim()}")
    if weights is not None:
        buffers["weights"] = _check_weights(call, indices, weights)
    _check_lengths(call.name, indices.numel(), buffers.get("offsets", values.get("length", 0)))
    padding = _padding(call, table)
    operation = Bag(
        call.mode,
        width,
        index_bits,
        offset_bits,
        is_weighted=weights is not None,
        is_fused=weights is not None and padding is None and _is_fused(table.resolve_neg(), weights.resolve_neg()),
        padding=padding,
    )
    return Request(operation, table, buffers, values, bags, (bags, width))


def _check_table(name: str, table: Any) -> int:
    if not isinstance(table, Tensor) or table.dim() != 2:
        shape = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise UnsupportedOperation(f"{name}: the table must be a tensor with 2 dimensions, not {shape}")
    if table.dtype is not torch.float32:
        raise UnsupportedOperation(f"{name}: the table must be of torch.float32, not {table.dtype}: convert it")
    if table.device.type != "cpu":
        raise UnsupportedOperation(f"{name}: the table must be on the CPU, not on {table.device}: move it there")
    _check_layout(name, "the table", table)
    if table.shape[1] < 1:
        raise LeftToPyTorch(f"{name}: rows of the table must have at least one element, not 0")
    if table.shape[1] > LONGEST_ROW:
        raise UnsupportedOperation(
            f"{name}: rows of the table must have at most {LONGEST_ROW} elements, not {table.shape[1]}: take some "
            "columns at a time"
        )
    return table.shape[1]


def _check_integers(name: str, what: str, value: Any) -> int:
    if not isinstance(value, Tensor):
        raise UnsupportedOperation(f"{name}: {what} must be a tensor, not {type(value).__name__}")
    if value.dtype not in INDEX_BITS:
        raise UnsupportedOperation(f"{name}: {what} must be of torch.int32 or torch.int64, not {value.dtype}")
    if value.device.type != "cpu":
        raise UnsupportedOperation(f"{name}: {what} must be on the CPU, not on {value.device}: move them there")
    _check_layout(name, what, value)
    return INDEX_BITS[value.dtype]


def _check_layout(name: str, what: str, value: Tensor) -> None:
    if value.layout is not torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else value.layout
        raise UnsupportedOperation(f"{name}: {what} must be dense, not {kind}: use to_dense()")


def _check_offsets(call: BagCall, indices: Tensor, offsets: Any) -> int:
    if offsets is None:
        raise InvalidOffsets(f"{call.name}: offsets must be given for indices with 1 dimension")
    bits = _check_integers(call.name, "offsets", offsets)
    if offsets.dim() != 1:
        raise InvalidOffsets(f"{call.name}: offsets must have 1 dimension, not {offsets.dim()}")
    if call.include_last_offset and not offsets.numel():
        raise InvalidOffsets(f"{call.name}: with include_last_offset there must be at least one offset, not 0")
    if offsets.numel():
        first, last = int(offsets[0]), int(offsets[-1])
        if first != 0:
            raise InvalidOffsets(f"{call.name}: the first offset must be 0, not {first}")
        if last > indices.numel():
            raise InvalidOffsets(
                f"{call.name}: the last offset must be at most the number of indices, {indices.numel()}, not {last}"
            )
    return bits


def _check_lengths(name: str, count: int, ends: Tensor | int) -> None:
    """Raise UnsupportedOperation for bags, of ``count`` rows in all, that the machine cannot count; ``ends`` is where
    they begin and the last one ends, or the length of all.
    """
    if count < LONGEST_BAG:
        return
    longest = ends if isinstance(ends, int) else int(ends.diff().max()) if len(ends) > 1 else 0
    if longest >= LONGEST_BAG:
        raise UnsupportedOperation(f"{name}: a bag must have fewer than {LONGEST_BAG} rows, not {longest}")


def _closed(call: BagCall, indices: Tensor, offsets: Tensor) -> Tensor:
    """Offsets with an end for the last bag."""
    offsets = offsets.detach()
    if not call.include_last_offset:
        offsets = torch.cat([offsets, offsets.new_tensor([indices.numel()])])
    return offsets.contiguous()


def _check_weights(call: BagCall, indices: Tensor, weights: Any) -> Tensor:
    if call.mode != "sum":
        raise UnsupportedOperation(f"{call.name}: per_sample_weights must go with mode 'sum', not {call.mode!r}")
    if not isinstance(weights, Tensor) or weights.dtype is not torch.float32:
        kind = weights.dtype if isinstance(weights, Tensor) else type(weights).__name__
        raise UnsupportedOperation(
            f"{call.name}: per_sample_weights must be of torch.float32, as the table, not {kind}"
        )
    if weights.shape != indices.shape:
        raise UnsupportedOperation(
            f"{call.name}: per_sample_weights must have the shape of the indices, {tuple(indices.shape)}, "
            f"not {tuple(weights.shape)}"
        )
    _check_layout(call.name, "per_sample_weights", weights)
    if weights.device.type != "cpu":
        raise UnsupportedOperation(f"{call.name}: per_sample_weights must be on the CPU, not on {weights.device}")
    return weights.detach().resolve_neg().reshape(-1).contiguous()


def _padding(call: BagCall, table: Tensor) -> int | None:
    """The padding index, from the end if it is negative."""
    if call.padding is None:
        return None
    rows = table.shape[0]
    if not -rows <= call.padding < rows:
        raise UnsupportedOperation(
            f"{call.name}: padding_idx must lie within the table's {rows} rows, not {call.padding}"
        )
    return call.padding % rows


def _is_fused(table: Tensor, weights: Tensor) -> bool:
    """Whether PyTorch's CPU kernel multiplies and adds in one step: it does where elements are neighbours."""
    return table.stride(1) == 1 and weights.reshape(-1).stride(0) == 1
