"""Modules of ``torch.ao.nn.quantized``, whose tables are packed so that nothing can be traced, as ones that can be."""

import copy
import sys
from collections.abc import Callable, Mapping
from operator import is_not
from typing import Any

import torch
from torch import Tensor, nn

from daedal.compiler.frontends.torch.trace.fbgemm_modules import swapped
from daedal.compiler.frontends.torch.trace.fbgemm_tables import fbgemm_kinds
from daedal.hw.config.core import Config

Maker = Callable[[Any], nn.Module]
"""Makes what stands for a module."""


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


def with_operators(module: nn.Module, config: Config | None) -> nn.Module:
    """The module, with operators on rows of bytes in the places of its quantised embeddings, and of FBGEMM's modules as
    far as a machine, if it is given, has their rows.

    Without any it is the module itself. Else those that have such parts are copied, all other parts, parameters and
    buffers are the module's own; the tables of quantised embeddings are as they are now, those of FBGEMM's its own.
    """
    quantised = sys.modules.get("torch.ao.nn.quantized")  # without which there can be none
    makers: dict[type[nn.Module], Maker] = {}
    if quantised is not None:
        makers |= {quantised.EmbeddingBag: _Bag, quantised.Embedding: _Lookup}
    if config is not None:
        makers |= dict.fromkeys(fbgemm_kinds(), lambda part: swapped(part, config))
    return _Swap(makers).of(module) if makers else module


class _Swap:
    """Puts other modules into the places of some, each of which is made once.

    Parts are also those in lists and tuples that a module has as plain attributes, as TorchRec's have FBGEMM's: these
    become parts by name, so that their tables have names.
    """

    def __init__(self, makers: Mapping[type[nn.Module], Maker]) -> None:
        self._makers = makers
        self._made: dict[int, nn.Module] = {}

    def of(self, module: nn.Module) -> nn.Module:
        """The module, or a copy with others as its parts."""
        if id(module) not in self._made:
            self._made[id(module)] = module  # if it has itself as a part
            self._made[id(module)] = self._of(module)
        return self._made[id(module)]

    def _of(self, module: nn.Module) -> nn.Module:
        if isinstance(module, torch.jit.ScriptModule):
            return module
        for kind, make in self._makers.items():
            if isinstance(module, kind):
                return make(module)
        parts = {name: None if part is None else self.of(part) for name, part in module._modules.items()}
        lists: dict[str, Any] = {
            name: type(each)(map(self.of, each)) for name, each in vars(module).items() if _are_parts(each)
        }
        changed: dict[str, Any] = {
            name: each for name, each in lists.items() if any(map(is_not, each, vars(module)[name]))
        }
        if not changed and all(part is module._modules[name] for name, part in parts.items()):
            return module
        copied = copy.copy(module)
        known = {id(part) for each in parts.values() if each is not None for part in each.modules()}
        for name, each in changed.items():
            plain = name.strip("_")
            if not known.issuperset(map(id, each)):
                parts[f"{name}_" if plain in vars(module) | parts else plain] = nn.ModuleList(each)
        copied.__dict__ |= {**changed, "_modules": parts}
        return copied


def _are_parts(value: Any) -> bool:
    """Whether it is a plain list or tuple of modules."""
    return type(value) in (list, tuple) and bool(value) and all(isinstance(each, nn.Module) for each in value)
