"""Checks what a run gives to an operation, as far as the machine does not, and brings it into the form it
takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from daedal.compiler.frontends.calls import BagCall, Call, LookupCall
from daedal.compiler.frontends.emb_builder import Bag, Lookup
from daedal.errors import InvalidOffsets, UnsupportedOperation

INDEX_BITS = {torch.int32: 32, torch.int64: 64}


LONGEST_BAG = 1 << 24
"""Bags are shorter: counts and lengths are 24 bits wide (see VectorOp.DIVIDE_COUNT and AluOp.MUL)."""


@dataclass(frozen=True)
class Request:
    """One operation of a run.

    Attributes
    ----------
    operation
        What has to be compiled.
    table
        The table.
    buffers
        The other inputs by buffer name, contiguous.
    values
        Numbers by name.
    rows
        Rows of the result.
    shape
        Shape of the result.
    """

    operation: Bag | Lookup
    table: Tensor
    buffers: dict[str, Tensor]
    values: dict[str, int]
    rows: int
    shape: tuple[int, ...]


def request_of(call: Call, sources: Sequence[Any]) -> Request:
    """The request for a call with these values of its sources."""
    return lookup_request(call, *sources) if isinstance(call, LookupCall) else bag_request(call, *sources)


def lookup_request(call: LookupCall, table: Any, indices: Any) -> Request:
    """The request for a gather; UnsupportedOperation for inputs that it cannot take."""
    width = _check_table(call.name, table)
    bits = _check_integers(call.name, "indices", indices)
    flat = indices.detach().reshape(-1).contiguous()
    shape = (*indices.shape, width)
    return Request(Lookup(width, bits), table, {"indices": flat}, {}, flat.numel(), shape)


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
    if indices.numel() >= LONGEST_BAG:
        _check_lengths(call, buffers, values)
    padding = _padding(call, table)
    operation = Bag(
        call.mode,
        width,
        index_bits,
        offset_bits,
        is_weighted=weights is not None,
        is_fused=weights is not None and padding is None and _is_fused(table, weights),
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
        raise UnsupportedOperation(f"{name}: rows of the table must have at least one element, not 0")
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
    if value.layout is not torch.strided:
        raise UnsupportedOperation(f"{name}: {what} must be dense, not {value.layout}: use to_dense()")


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


def _check_lengths(call: BagCall, buffers: dict[str, Tensor], values: dict[str, int]) -> None:
    """Raise UnsupportedOperation for bags that the machine cannot count."""
    longest = values["length"] if "length" in values else int(buffers["offsets"].diff().max())
    if longest >= LONGEST_BAG:
        raise UnsupportedOperation(f"{call.name}: a bag must have fewer than {LONGEST_BAG} rows, not {longest}")


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
