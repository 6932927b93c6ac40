"""Arrays and numbers that a call of a kernel is given."""

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.float_mode import default_float_mode
from daedal.driver.tables.table_sources import is_tensor
from daedal.errors import UnsupportedOperation
from daedal.runtime.loops.signature import Argument
from daedal.runtime.tensors import array_of, is_dense, is_of_inference, needs_gradients

WhyNot = Callable[[Any], str | None]
"""Why a kernel cannot be given an array or a tensor, as far as a framework says; None if it can."""


def span(array: NDArray[Any]) -> tuple[int, int]:
    """Smallest and largest element; of no elements what no number is between."""
    return (int(array.min()), int(array.max())) if array.size else (0, -1)


def check_array(argument: Argument, given: Any, why_not: WhyNot) -> None:
    """UnsupportedOperation for what is no array, or not of the argument's type, or not plain in the CPU's memory."""
    if not (is_tensor(given) or isinstance(given, np.ndarray)):
        raise UnsupportedOperation(
            f"argument {argument.name!r} must be a torch tensor or a NumPy array ({argument.text}), "
            f"not {type(given).__name__}"
        )
    reason = why_not(given)
    if reason is not None:
        raise UnsupportedOperation(f"argument {argument.name!r} must be plain, outside of modes: {reason}")
    if is_tensor(given) and given.device.type != "cpu":
        raise UnsupportedOperation(f"argument {argument.name!r} must be on the CPU, not on {given.device}")
    if is_tensor(given) and not is_dense(given):
        found = "nested" if given.is_nested else str(given.layout)
        raise UnsupportedOperation(f"argument {argument.name!r} must be dense, not {found}: use to_dense()")
    if isinstance(given, np.ma.MaskedArray):
        raise UnsupportedOperation(f"argument {argument.name!r} must not be masked: fill what is masked")
    found = str(given.dtype).removeprefix("torch.")
    if found != argument.dtype:
        raise UnsupportedOperation(
            f"argument {argument.name!r} must be of {argument.dtype} ({argument.text}), not of {found}"
        )


def check_output(name: str, given: Any) -> None:
    """UnsupportedOperation for an array that cannot be written, before anything runs."""
    array = array_of(given)
    if is_tensor(given) and is_of_inference(given):
        raise UnsupportedOperation(
            f"argument {name!r} is written: outside of inference mode it must not be from inside"
        )
    if is_tensor(given) and given.requires_grad and needs_gradients():
        raise UnsupportedOperation(
            f"argument {name!r} is written, and must not need a gradient, which would be wrong: call the executable in "
            f"torch.no_grad(), or give it {name}.detach()"
        )
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        raise UnsupportedOperation(f"argument {name!r} is written, but read-only: give a copy")
    extent = 0
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if array.size and size > 1 and stride <= extent:
            raise UnsupportedOperation(
                f"argument {name!r} is written, but several of its elements share memory: give a copy"
            )
        extent += stride * (size - 1)


def scalar(argument: Argument, given: Any, address_bits: int) -> int:
    """A single number as a launch argument: integers as they are, f32 as their bits."""
    if (is_tensor(given) or isinstance(given, np.ndarray)) and given.ndim == 0:
        given = given.item()
    is_number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
    if argument.is_float and is_number:
        with default_float_mode(), np.errstate(over="ignore"), suppress(OverflowError):
            (bits,) = struct.unpack("<I", np.float32(given).tobytes())
            return int(bits)
    limit = 1 << (address_bits - 1) if argument.element == "i64" else 1 << 31
    if is_number and isinstance(given, int | np.integer) and -limit <= given < limit:
        return int(given)
    raise UnsupportedOperation(f"argument {argument.name!r} must be a single {argument.text}, not {given!r}")
