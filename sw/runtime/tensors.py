"""The few things that the runtime does with tensors; PyTorch is imported when there is one."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daedal.driver.tables.table_sources import array_type, dtype_name, is_tensor, name_of, stand_in, with_bits

if TYPE_CHECKING:
    from torch import Tensor


def is_parameter(value: object) -> bool:
    """Whether it is a parameter of a module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Parameter)


def array_of(value: Any) -> NDArray[Any]:
    """The array over a tensor's memory, with its signs as they count; an array is that itself."""
    array: NDArray[Any] = with_bits(value.detach().resolve_neg()).numpy() if is_tensor(value) else value
    return array


def tensor_of(array: NDArray[Any], shape: Sequence[int], dtype: str) -> "Tensor":
    """The tensor of this shape and type over the bytes of an array, whose last dimension it divides otherwise.

    It is contiguous, as PyTorch's are: NumPy's empty arrays have strides of 0.
    """
    import torch

    if not array.size:
        return empty(shape, dtype)
    found = torch.from_numpy(array)
    if name_of(array.dtype) != dtype:
        found = found.view(getattr(torch, dtype))
    return found if found.shape == tuple(shape) else found.reshape(shape)


def result_of(array: NDArray[Any], shape: Sequence[int], dtype: str, table: Any) -> Any:
    """What ``tensor_of`` gives of a result of a tensor; of one of an array, the array of this shape and type."""
    if is_tensor(table):
        return tensor_of(array, shape, dtype)
    plain = array.view(array_type(dtype)).reshape(shape) if array.size else np.empty(shape, array_type(dtype))
    return stand_in(plain, dtype)


def number_of(value: float, result: Any) -> Any:
    """What makes elements of a result this number: of an array that stands in for bfloat16, its bits."""
    if is_tensor(result) or dtype_name(result) != "bfloat16":
        return value
    return (np.float32(value).view(np.uint32) >> 16).astype(np.uint16)


def empty_like(shape: Sequence[int], dtype: str, table: Any) -> Any:
    """A tensor, or an array if the table is one, whose content is undefined."""
    return empty(shape, dtype) if is_tensor(table) else stand_in(np.empty(shape, array_type(dtype)), dtype)


def empty(shape: Sequence[int], dtype: str) -> "Tensor":
    """A tensor whose content is undefined."""
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")


def zeros(shape: Sequence[int], dtype: str) -> "Tensor":
    """A tensor of zeros."""
    import torch

    return torch.zeros(shape, dtype=getattr(torch, dtype), device="cpu")


def zeros_like(shape: Sequence[int], dtype: str, table: Any) -> Any:
    """A tensor of zeros, or an array of them if the table is one."""
    return zeros(shape, dtype) if is_tensor(table) else stand_in(np.zeros(shape, array_type(dtype)), dtype)


def fill(target: Any, result: NDArray[Any]) -> None:
    """Write ``result`` into an array or a tensor."""
    if is_tensor(target):
        import torch

        with torch.no_grad():
            with_bits(target).copy_(torch.from_numpy(result))
    else:
        target[...] = result


def needs_gradients() -> bool:
    """Whether PyTorch records what is done, for gradients."""
    import torch

    return torch.is_grad_enabled()


def copy_of_columns(whole: Any, column: int, width: int) -> Any:
    """A contiguous copy of ``width`` elements of the last dimension, from this one on."""
    if not is_tensor(whole):
        return whole[..., column : column + width].copy()
    import torch

    return whole[..., column : column + width].clone(memory_format=torch.contiguous_format)


def is_dense(tensor: "Tensor") -> bool:
    """Whether it has its elements in memory one by one."""
    import torch

    return tensor.layout is torch.strided and not tensor.is_nested


def is_of_inference(tensor: "Tensor") -> bool:
    """Whether it is from inference mode, and this is outside of that: nobody may write it."""
    import torch

    return tensor.is_inference() and not torch.is_inference_mode_enabled()
