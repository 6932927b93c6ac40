"""``embedding_bag``, whatever PyTorch calls it in a graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, fx
from torch.nn import functional

from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.bags import Bags
from daedal.compiler.frontends.torch.ops.max_norm import why_renormalised
from daedal.compiler.frontends.torch.ops.operation import Line, Operation, Target

_aten = torch.ops.aten

_OPTIONS = ("mode", "padding_idx", "include_last_offset", "sparse", "scale_grad_by_freq")

MODES = {0: "sum", 1: "mean", 2: "max"}
"""Modes of ``aten.embedding_bag``."""


@dataclass(frozen=True)
class EmbeddingBag(Bags):
    """``nn.EmbeddingBag``, with options of which only gradients depend (``is_sparse``, ``is_scaled``)."""

    targets: ClassVar[tuple[Target, ...]] = (
        _aten.embedding_bag.padding_idx,
        _aten.embedding_bag.default,
        functional.embedding_bag,
    )
    line = Line("`F.embedding_bag`, `nn.EmbeddingBag`", "a bag; several of a module are one launch", "no `max_norm`")
    is_embedding = True
    is_optional = False

    is_sparse: bool = False
    is_scaled: bool = False
    is_pair: bool = False

    @property
    def gives_tuple(self) -> bool:
        """ATen's do, the function in Python does not."""
        return self.is_pair

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, _aten.embedding_bag.padding_idx)
        computed = [name for name in _OPTIONS if isinstance(values.get(name), fx.Node)]
        if computed:
            return f"{computed[0]} must be a constant, not what {values[computed[0]].name} gives"
        mode = values.get("mode", 0)
        bag = cls(
            node.name,
            values["weight"],
            values["input"] if "input" in values else values["indices"],
            values.get("offsets"),
            values.get("per_sample_weights"),
            MODES.get(mode, mode),
            cls._padding(values.get("padding_idx")),
            bool(values.get("include_last_offset", False)),
            is_sparse=bool(values.get("sparse")),
            is_scaled=bool(values.get("scale_grad_by_freq")),
            is_pair=node.target is not functional.embedding_bag,
        )
        return bag._reason(node) or why_renormalised(values) or bag

    @classmethod
    def _padding(cls, padding: int | None) -> int | None:
        return padding

    def _reason(self, node: fx.Node) -> str | None:
        if self.mode not in MODES.values():
            return f"mode must be one of {', '.join(MODES.values())}, not {self.mode!r}"
        if self.mode == "max" and (self.is_sparse or self.is_scaled):
            return f"mode 'max' must go without {'sparse' if self.is_sparse else 'scale_grad_by_freq'}"
        if self.gives_tuple:
            for user in node.users:
                if user.users and (user.op != "call_function" or user.args[1:] != (0,)):
                    return f"a result other than the pooled rows is used, by {user.name}"
        return None

    def in_torch(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Tensor:
        """The pooled rows alone."""
        return functional.embedding_bag(
            indices,
            table,
            offsets,
            mode=self.mode,
            per_sample_weights=weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding,
            sparse=self.is_sparse,
            scale_grad_by_freq=self.is_scaled,
        )


@dataclass(frozen=True)
class EmbeddingBagKernel(EmbeddingBag):
    """What ``embedding_bag`` is in a graph of ATen's core operators: of these −1 means that there is no padding."""

    targets = (_aten._embedding_bag.default, _aten._embedding_bag_forward_only.default)
    line = Line("`aten._embedding_bag`, `aten._embedding_bag_forward_only`", "as `F.embedding_bag`", "as there")

    @classmethod
    def _padding(cls, padding: int | None) -> int | None:
        return None if padding == -1 else padding
