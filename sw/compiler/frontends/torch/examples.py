"""What tracing knows of the values of a graph's nodes."""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.checks import COPIED_TYPES, ROW_TYPES

_COPIED = frozenset(getattr(torch, name) for name in COPIED_TYPES)
_ROWS = frozenset(getattr(torch, name) for name in ROW_TYPES)


def example_of(value: Any) -> Any:
    """What tracing knows of a node's value: a tensor without content; None if nothing."""
    if not isinstance(value, fx.Node):
        return value
    return value.meta.get("example_value", value.meta.get("val"))


def is_floats(value: object, dim: int | None = None) -> bool:
    """Whether a value is known to be dense, of f32 and on the CPU, with ``dim`` dimensions."""
    example = example_of(value)
    return _is_dense(example, (torch.float32,)) and dim in (None, example.dim())


def is_integers(value: object, dim: int | None = None) -> bool:
    """Whether a value is known to be dense, of int32 or int64 and on the CPU, with ``dim`` dimensions."""
    example = example_of(value)
    return _is_dense(example, (torch.int32, torch.int64)) and dim in (None, example.dim())


def is_rows(value: object) -> bool:
    """Whether a value is known to be rows on the CPU, of a type that the lanes take, with 2 dimensions."""
    return is_any_rows(value) and example_of(value).dim() == 2


def is_any_rows(value: object) -> bool:
    """Whether a value is known to be rows on the CPU, of a type that the lanes take; they may have dimensions."""
    example = example_of(value)
    return _is_dense(example, _ROWS) and example.dim() >= 2


def is_copied(value: object) -> bool:
    """Whether a value is known to be rows on the CPU, of a type whose rows can be copied; they may have dimensions."""
    example = example_of(value)
    return _is_dense(example, _COPIED) and example.dim() >= 2


def _is_dense(example: object, dtypes: Collection[torch.dtype]) -> bool:
    return (
        isinstance(example, Tensor)
        and example.layout is torch.strided
        and example.dtype in dtypes
        and example.device.type == "cpu"
    )
