"""What a saved executable does on the host between launches, on NumPy arrays: moves of data, and integers.

Results have the elements that PyTorch's have; floats are moved and never computed with.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.driver.tables.table_sources import array_type, stand_in
from daedal.errors import FileError, UnsupportedOperation

Array = NDArray[Any]


class OtherSizes(UnsupportedOperation):
    """A trace is not for inputs of these sizes."""


def check(found: object, wanted: object) -> None:
    """A trace is for sizes of which this holds."""
    if found != wanted:
        raise OtherSizes(f"what the module asks of sizes must be {wanted}, not {found}")


def _view(array: Array, size: Sequence[int]) -> Array:
    return array.reshape(tuple(size))


def _expand(array: Array, size: Sequence[int]) -> Array:
    behind = len(size) - array.ndim
    shape = [array.shape[n - behind] if each == -1 else each for n, each in enumerate(size)]
    return np.broadcast_to(array, shape)


def _squeeze(array: Array, dims: Sequence[int] | int | None) -> Array:
    if array.ndim == 0:
        return array
    asked = range(array.ndim) if dims is None else (dims,) if isinstance(dims, int) else dims
    found = {dim % array.ndim for dim in asked}
    return array.reshape([size for dim, size in enumerate(array.shape) if dim not in found or size != 1])


def _flatten(array: Array, start: int, end: int) -> Array:
    if array.ndim == 0:
        return array.reshape(1)
    first, last = start % array.ndim, end % array.ndim
    middle = int(np.prod(array.shape[first : last + 1], dtype=np.int64))
    return array.reshape((*array.shape[:first], middle, *array.shape[last + 1 :]))


def _select(array: Array, dim: int, index: int) -> Array:
    size = array.shape[dim]
    if not -size <= index < size:
        raise UnsupportedOperation(f"select: index must be from {-size} to {size - 1}, not {index}")
    found: Array = np.take(array, index, axis=dim)
    return found


def _slice(array: Array, dim: int, start: int | None, stop: int | None, step: int) -> Array:
    found: Array = array[(slice(None),) * (dim % array.ndim) + (slice(start, stop, step),)]
    return found


def _permute(array: Array, dims: Sequence[int]) -> Array:
    return array.transpose(tuple(dims))


def _cat(arrays: Sequence[Array], dim: int) -> Array:
    whole = [each for each in arrays if each.shape != (0,)]  # PyTorch leaves these out, whatever the others are
    joined: Array = np.concatenate(whole or list(arrays), axis=dim)
    return joined


def _split(array: Array, sizes: Sequence[int] | int, dim: int) -> tuple[Array, ...]:
    if isinstance(sizes, int):
        ends = range(sizes, array.shape[dim], sizes)
    elif sum(sizes) != array.shape[dim]:
        raise UnsupportedOperation(f"split: sizes must add up to {array.shape[dim]}, not {sum(sizes)}")
    else:
        ends = np.cumsum(sizes)[:-1].tolist()
    return tuple(np.split(array, list(ends), axis=dim))


def _chunk(array: Array, chunks: int, dim: int) -> tuple[Array, ...]:
    return _split(array, max(-(-array.shape[dim] // chunks), 1), dim)


def _unbind(array: Array, dim: int) -> tuple[Array, ...]:
    return tuple(np.moveaxis(array, dim, 0))


def _getitem(values: Any, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if isinstance(values, np.ndarray) and any(isinstance(part, np.ndarray | list) for part in parts):
        raise UnsupportedOperation("indices of an array must be numbers and slices")
    return values[index]


def _to(array: Array, dtype: str) -> Array:
    """Integers and booleans as another type; floats stay as they are."""
    wanted = array_type(dtype)
    if array.dtype.kind not in "iub" and array.dtype != wanted:
        raise UnsupportedOperation(f"to: what is converted must be integers, not {array.dtype}")
    return array.astype(wanted, copy=False)


def _zeros(size: Sequence[int], dtype: str) -> Array:
    return np.zeros(tuple(size), array_type(dtype))


def _arange(start: int, stop: int, step: int, dtype: str) -> Array:
    counted: Array = np.arange(start, stop, step).astype(array_type(dtype))
    return counted


def _integers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function, which is not done to floats."""

    def apply(a: Any, b: Any) -> Any:
        for each in (a, b):
            if isinstance(each, float) or (isinstance(each, np.ndarray) and each.dtype.kind not in "iub"):
                raise UnsupportedOperation(f"{function.__name__}: operands must be integers")
        return function(a, b)

    return apply


def _not(value: object) -> bool:
    return not value


def _all(*values: object) -> bool:
    return all(values)


def _any(*values: object) -> bool:
    return any(values)


def _size(array: Array, dim: int | None) -> Any:
    return array.shape if dim is None else array.shape[dim]


MOVES: Mapping[str, Callable[..., Any]] = {
    "all": _all,
    "any": _any,
    "arange": _arange,
    "cat": _cat,
    "check": check,
    "chunk": _chunk,
    "expand": _expand,
    "expand_as": lambda array, other: _expand(array, other.shape),
    "flatten": _flatten,
    "getitem": _getitem,
    "neg": operator.neg,
    "numel": lambda array: array.size,
    "not": _not,
    "permute": _permute,
    "same": lambda array: array,
    "select": _select,
    "size": _size,
    "slice": _slice,
    "split": _split,
    "squeeze": _squeeze,
    "stack": lambda arrays, dim: np.stack(arrays, axis=dim),
    "t": lambda array: array.T,
    "to": _to,
    "transpose": lambda array, a, b: array.swapaxes(a, b),
    "unbind": _unbind,
    "unsqueeze": lambda array, dim: np.expand_dims(array, dim),
    "view": _view,
    "zeros": _zeros,
    "zeros_like": lambda array: np.zeros(array.shape, array.dtype),
    **{
        name: _integers(getattr(operator, name))
        for name in ("add", "sub", "mul", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge")
    },
}
"""By name, as steps have it."""


_WRAPPING = ("add", "sub", "mul")
"""Arithmetic whose low bits are those of its operands' low bits."""


def move(name: str, arguments: Sequence[Any], dtype: str) -> Any:
    """The result of a step; UnsupportedOperation if it cannot be had, or is not of the type that the step says.
    FileError for a step that there is not.
    """
    if name not in MOVES:
        raise FileError(f"a step of a file must be one of {', '.join(MOVES)}, not {name!r}: save it again")
    function = MOVES[name]
    try:
        found = function(*arguments)
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError, ZeroDivisionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedOperation(f"{name}: the inputs must have sizes that it can be done with: {reason}") from error
    is_integer = isinstance(found, np.ndarray) and dtype and {found.dtype.kind, array_type(dtype).kind} == {"i"}
    if name in _WRAPPING and is_integer:
        found = found.astype(array_type(dtype))  # a tensor of no dimension does not widen another one, as NumPy's do
    if dtype and isinstance(found, np.ndarray | np.generic) and found.dtype != array_type(dtype):
        raise UnsupportedOperation(f"{name}: its result must be of {dtype}, not {found.dtype}: give inputs as saved")
    return stand_in(found, dtype) if isinstance(found, np.ndarray) else found
