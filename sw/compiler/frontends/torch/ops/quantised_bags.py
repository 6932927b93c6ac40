"""``torch.ops.quantized.embedding_bag_…_rowwise_offsets``: sums of rows of integers with a scale and a bias."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.quantised_bags import quantised_request
from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation, Target
from daedal.compiler.frontends.torch.ops.tensors import integers_of, table_of, weights_of
from daedal.driver.tables.quantised import QuantisedRows
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Request

_quantized = torch.ops.quantized

NUMBERS = {8: "float32", 4: "float16", 2: "float16"}
"""Bits of the integers -> the type of scale and bias, which stand behind them."""


def columns_of(row_bytes: int, bits: int) -> int:
    """Integers of a row of so many bytes."""
    form = QuantisedRows(bits, 0, NUMBERS[bits])
    return (row_bytes - form.row_bytes) * (8 // bits)


def _pooled(bits: int, weight: Tensor, indices: Tensor, offsets: Tensor | None, include_last_offset: bool) -> Tensor:
    """A tensor of the result's shape."""
    bags = indices.shape[0] if offsets is None else offsets.shape[0] - include_last_offset
    return weight.new_empty((bags, columns_of(weight.shape[1], bits)), dtype=torch.float32)


def _meta(bits: int) -> Any:
    def kernel(
        weight: Tensor, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, mode: int = 0,
        pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None, include_last_offset: bool = False,
    ) -> Tensor:  # fmt: skip
        return _pooled(bits, weight, indices, offsets, include_last_offset)

    return kernel


LIBRARY = torch.library.Library("quantized", "IMPL", "Meta")
"""What tracing needs to know of operators, and PyTorch does not say."""

for _bits in (4, 2):
    _name = f"quantized::embedding_bag_{_bits}bit_rowwise_offsets"
    if not torch._C._dispatch_has_kernel_for_dispatch_key(_name, "Meta"):
        LIBRARY.impl(_name.removeprefix("quantized::"), _meta(_bits))


@dataclass(frozen=True)
class QuantisedBag(Operation):
    """A weighted or plain sum, whatever ``mode`` says, as PyTorch's operators compute it."""

    targets: ClassVar[tuple[Target, ...]] = (_quantized.embedding_bag_byte_rowwise_offsets.default,)
    line = Line(
        "`torch.ops.quantized.embedding_bag_byte_rowwise_offsets`",
        "a bag of rows of 8-bit integers (`Config.quantised`)",
        "no `pruned_weights`",
    )
    is_embedding = True
    is_optional = False
    can_share = True
    bits: ClassVar[int] = 8

    indices: object
    offsets: object
    weights: object
    mode: int = 0
    include_last_offset: bool = False

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        (target,) = cls.targets
        assert isinstance(target, torch._ops.OpOverload)
        values = arguments_of(node, target)
        if values["pruned_weights"] or values["compressed_indices_mapping"] is not None:
            return "pruned_weights must be False, without compressed_indices_mapping: look the rows up by their index"
        return cls(
            node.name,
            values["weight"],
            values["indices"],
            values["offsets"],
            values["per_sample_weights"],
            values["mode"],
            bool(values["include_last_offset"]),
        )

    @property
    def sources(self) -> tuple[object, ...]:
        """Table, indices, offsets and weights."""
        return self.table, self.indices, self.offsets, self.weights

    def request(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Request:
        """See ``quantised_request``, which raises what is wrong."""
        rows = table_of(self.name, table, ("uint8",))
        columns = columns_of(rows.shape[1], self.bits)
        if columns < 1:
            raise UnsupportedOperation(
                f"{self.name}: rows must have a scale, a bias and at least one element, not {rows.shape[1]} bytes"
            )
        return quantised_request(
            self.name,
            rows,
            QuantisedRows(self.bits, columns, NUMBERS[self.bits]),
            integers_of(self.name, "indices", indices),
            None if offsets is None else integers_of(self.name, "offsets", offsets),
            None if weights is None else weights_of(self.name, weights, torch.float32),
            include_last_offset=self.include_last_offset,
        )

    def in_torch(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Tensor:
        """What the operator gives."""
        (target,) = self.targets
        operator: Any = target
        result: Tensor = operator(
            table, indices, offsets, False, self.mode, per_sample_weights=weights,
            include_last_offset=self.include_last_offset,
        )  # fmt: skip
        return result


@dataclass(frozen=True)
class QuantisedBag4(QuantisedBag):
    """The same of 4-bit integers, whose scale and bias are of float16."""

    targets = (_quantized.embedding_bag_4bit_rowwise_offsets.default,)
    line = Line("`torch.ops.quantized.embedding_bag_4bit_rowwise_offsets`", "the same of 4-bit integers", "as there")
    bits = 4


@dataclass(frozen=True)
class QuantisedBag2(QuantisedBag):
    """The same of 2-bit integers."""

    targets = (_quantized.embedding_bag_2bit_rowwise_offsets.default,)
    line = Line("`torch.ops.quantized.embedding_bag_2bit_rowwise_offsets`", "the same of 2-bit integers", "as there")
    bits = 2
