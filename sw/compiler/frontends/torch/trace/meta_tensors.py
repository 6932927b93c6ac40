"""Modules on device ``meta``, which have no memory, as modules on the CPU, for what depends on shapes only."""

import mmap
import sys
from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""Python 3.11 has no name for it. Linux asks for it where memory is larger than the host's."""


def with_memory(module: nn.Module) -> nn.Module:
    """The module, or a copy of it in which zeros stand for parameters and buffers on device ``meta``.

    They may be larger than the host's memory, and take none as long as they are only read.
    """
    found = {id(each): each for each in chain(module.parameters(), module.buffers())}
    if not any(each.is_meta for each in found.values()):
        return module
    memo: dict[int, Any] = {key: _zeros_like(each) if each.is_meta else each for key, each in found.items()}
    return deepcopy(module, memo)


def _zeros_like(tensor: Tensor) -> Tensor:
    size = tensor.numel() * tensor.element_size()
    if size:
        flat = torch.frombuffer(
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE), dtype=torch.uint8
        ).view(tensor.dtype)
    else:
        flat = torch.empty(0, dtype=tensor.dtype)
    zeros = flat.view(tensor.shape)
    return nn.Parameter(zeros, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else zeros
