"""Modules of ``torch.ao.nn.quantized``, whose tables are packed so that nothing can be traced, as ones that can be."""

import copy
import sys
from typing import Any

import torch
from torch import Tensor, nn

_NAMES = ("Embedding", "EmbeddingBag")


class _Rows(nn.Module):
    """The table of a quantised module as rows of bytes, in the layout of PyTorch's operators."""

    def __init__(self, packed: Any) -> None:
        super().__init__()
        weight = packed.weight()
        scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points().float()
        self.bits = 4 if weight.dtype is torch.quint4x2 else 8
        head = torch.stack([scales, -(zeros * scales)], 1)
        head = head if self.bits == 8 else head.half()
        integers = weight.int_repr().reshape(len(weight), -1)
        self.register_buffer("rows", torch.cat([integers, head.view(torch.uint8)], 1).contiguous())
        self.dim = weight.shape[1]
        self.pruned = bool(getattr(packed, "pruned_weights", False))
        self.include_last_offset = bool(getattr(packed, "include_last_offset", False))
        self.train(packed.training)

    def _pooled(
        self, indices: Tensor, offsets: Tensor | None, weights: Tensor | None, mapping: Tensor | None, last: bool
    ) -> Tensor:
        if offsets is None:  # without them PyTorch cannot tell the shape of a result
            offsets = torch.arange(indices.shape[0], device=indices.device) * indices.shape[1]
            indices, last = indices.reshape(-1), False
            weights = None if weights is None else weights.reshape(-1)
        quantized = torch.ops.quantized
        operator = (
            quantized.embedding_bag_byte_rowwise_offsets
            if self.bits == 8
            else quantized.embedding_bag_4bit_rowwise_offsets
        )
        result: Tensor = operator(self.rows, indices, offsets, False, 0, self.pruned, weights, mapping, last)
        return result


class _Bag(_Rows):
    """``torch.ao.nn.quantized.EmbeddingBag``: a sum, whatever its mode says."""

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:
        return self._pooled(indices, offsets, per_sample_weights, compressed_indices_mapping, self.include_last_offset)


class _Lookup(_Rows):
    """``torch.ao.nn.quantized.Embedding``: bags of one."""

    def forward(self, indices: Tensor) -> Tensor:
        rows = self._pooled(indices.reshape(-1, 1), None, None, None, False)
        return rows.reshape(*indices.shape, self.dim)


def with_operators(module: nn.Module) -> nn.Module:
    """The module, with operators on rows of bytes in the places of its quantised embeddings.

    Without any it is the module itself. Else those that have such parts are copied, all other parts, parameters and
    buffers are the module's own; the quantised tables are as they are now.
    """
    quantised = sys.modules.get("torch.ao.nn.quantized")
    if quantised is None:  # then there can be none
        return module
    kinds = tuple(getattr(quantised, name) for name in _NAMES)
    return _swapped(module, kinds) if any(isinstance(part, kinds) for part in module.modules()) else module


def _swapped(module: nn.Module, kinds: tuple[type, ...]) -> nn.Module:
    if isinstance(module, kinds):
        return _Bag(module) if isinstance(module, kinds[1]) else _Lookup(module)
    if not any(isinstance(part, kinds) for part in module.modules()):
        return module
    swapped = copy.copy(module)
    parts = {name: None if part is None else _swapped(part, kinds) for name, part in module._modules.items()}
    swapped.__dict__["_modules"] = parts
    return swapped
