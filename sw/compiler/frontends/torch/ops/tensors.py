"""PyTorch's tensors as requests have them: contiguous arrays of NumPy's; and checks of what those no longer tell."""

import math
from collections.abc import Collection

import torch
from torch import Tensor

from daedal.compiler.frontends.requests.checks import COPIED_TYPES, LeftToFramework
from daedal.driver.tables.table_sources import dtype_name
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import LANE
from daedal.runtime.request import Array


def array_of(values: Tensor) -> Array:
    """The elements of a dense tensor on the CPU; in the same memory if they lie there in order."""
    array: Array = values.detach().resolve_neg().contiguous().numpy()
    return array


def table_of(name: str, table: object, dtypes: Collection[str] = (LANE.dtype,)) -> Tensor:
    """The table, if its rows are of a type that the operation is done for; UnsupportedOperation if not."""
    return _table(name, table, dtypes, "of " + " or ".join(f"torch.{dtype}" for dtype in dtypes))


def rows_of(name: str, table: object) -> Tensor:
    """The table, if its rows can be copied; UnsupportedOperation if not."""
    return _table(name, table, COPIED_TYPES, "of a type whose elements are whole bytes of their own")


def _table(name: str, table: object, dtypes: Collection[str], what: str) -> Tensor:
    if not isinstance(table, Tensor) or table.dim() != 2:
        shape = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise UnsupportedOperation(f"{name}: the table must be a tensor with 2 dimensions, not {shape}")
    if dtype_name(table) not in dtypes:
        raise UnsupportedOperation(f"{name}: the table must be {what}, not {table.dtype}: convert it")
    if table.device.type != "cpu":
        raise UnsupportedOperation(f"{name}: the table must be on the CPU, not on {table.device}: move it there")
    _check_layout(name, "the table", table)
    return table


def flat_rows(name: str, table: object) -> object:
    """A table whose rows have dimensions of their own, in the same memory, with rows that have none."""
    if not isinstance(table, Tensor) or table.dim() < 3 or table.layout is not torch.strided or table.is_nested:
        return table
    step = 1
    for size, stride in zip(table.shape[:0:-1], table.stride()[:0:-1], strict=True):
        if size != 1 and stride != step:
            raise LeftToFramework(
                f"{name}: rows of a table of {table.dim()} dimensions must be contiguous: use contiguous()"
            )
        step *= size
    return table.as_strided((len(table), step), (table.stride(0), 1))


def integers_of(name: str, what: str, value: object) -> Array:
    """Indices or offsets; UnsupportedOperation for what is neither."""
    if not isinstance(value, Tensor):
        raise UnsupportedOperation(f"{name}: {what} must be a tensor, not {type(value).__name__}")
    if value.dtype not in (torch.int32, torch.int64):
        raise UnsupportedOperation(f"{name}: {what} must be of torch.int32 or torch.int64, not {value.dtype}")
    if value.device.type != "cpu":
        raise UnsupportedOperation(f"{name}: {what} must be on the CPU, not on {value.device}: move them there")
    _check_layout(name, what, value)
    return array_of(value)


def weights_of(name: str, weights: object, dtype: torch.dtype) -> Array:
    """What rows of this type are multiplied with, as binary32; UnsupportedOperation for no tensor of that type."""
    if not isinstance(weights, Tensor) or weights.dtype is not dtype:
        kind = weights.dtype if isinstance(weights, Tensor) else type(weights).__name__
        raise UnsupportedOperation(f"{name}: per_sample_weights must be of {dtype}, as the table, not {kind}")
    _check_layout(name, "per_sample_weights", weights)
    if weights.device.type != "cpu":
        raise UnsupportedOperation(f"{name}: per_sample_weights must be on the CPU, not on {weights.device}")
    return array_of(weights.detach().to(torch.float32))


def numbers_of(values: Tensor) -> Array:
    """What rows are multiplied with, as binary32."""
    return array_of(values.detach().to(torch.float32))


def column_of(name: str, keys: Tensor, width: int) -> Tensor:
    """The rows that a 2-D index names, if it names whole rows: a column that was expanded."""
    is_one = all(size == 1 or step == 0 for size, step in zip(keys.shape[1:], keys.stride()[1:], strict=True))
    if math.prod(keys.shape[1:]) != width or not is_one:
        raise UnsupportedOperation(f"{name}: the index must be one column, expanded to the {width} of the rows")
    return keys.flatten(1)[:, 0] if keys.numel() else keys.new_zeros(len(keys))


def _check_layout(name: str, what: str, value: Tensor) -> None:
    if value.layout is not torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else value.layout
        raise UnsupportedOperation(f"{name}: {what} must be dense, not {kind}: use to_dense()")
