"""``daedal::row_bags``: sums of rows for one feature of a batch that has all features, as FBGEMM's modules take it.

Modules of FBGEMM become calls of it before they are traced (``trace/fbgemm_modules.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, fx
from torch.nn import functional

from daedal.compiler.frontends.requests.bags import bag_request
from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.quantised_bags import quantised_request
from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation, Target
from daedal.compiler.frontends.torch.ops.tensors import integers_of, table_of, weights_of
from daedal.driver.tables.quantised import QuantisedRows
from daedal.errors import InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.elements import LANE
from daedal.runtime.request import Array, Request

PRUNED = -1
"""The index of a row that is no more: it adds nothing."""

LIBRARY = torch.library.Library("daedal", "FRAGMENT")
LIBRARY.define(
    "row_bags(Tensor rows, Tensor indices, Tensor? offsets, Tensor? weights, int feature, int features, int bits, "
    "int dim, bool trains) -> Tensor"
)
_QUANTIZED = {
    8: torch.ops.quantized.embedding_bag_byte_rowwise_offsets,
    4: torch.ops.quantized.embedding_bag_4bit_rowwise_offsets,
    2: torch.ops.quantized.embedding_bag_2bit_rowwise_offsets,
}


def _meta(
    rows: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None, feature: int, features: int,
    bits: int, dim: int, trains: bool,
) -> Tensor:  # fmt: skip
    """A tensor of the result's shape."""
    bags = indices.shape[0] if offsets is None else (offsets.shape[0] - 1) // features
    return rows.new_empty((bags, dim), dtype=torch.float32)


def _pooled(
    rows: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None, feature: int, features: int,
    bits: int, dim: int, trains: bool,
) -> Tensor:  # fmt: skip
    """What the device gives, by operators of PyTorch's."""
    if offsets is None:
        offsets = torch.arange(len(indices) + 1, device=indices.device) * indices.shape[1]
        indices, feature, features = indices.reshape(-1), 0, 1
    ends = _ends_of("row_bags", offsets.numpy(), len(indices), feature, features)
    first, end = int(ends[0]), int(ends[-1])
    there = indices[first:end] != PRUNED
    before = torch.nn.functional.pad(there.cumsum(0), (1, 0))
    offsets, indices = before[torch.from_numpy(ends) - first], indices[first:end][there].long()
    weights = None if weights is None else weights[first:end][there]
    if not bits:
        return functional.embedding_bag(
            indices, rows.float(), offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
        )
    used, indices = indices.unique(return_inverse=True)
    if not len(used):
        return _meta(rows.cpu(), indices, offsets, None, 0, 1, bits, dim, trains).zero_()
    head = 2 * torch.float16.itemsize
    numbers, integers = rows[used, :head].contiguous().view(torch.float16), rows[used, head:]
    numbers = numbers.float() if bits == LANE.bits // 4 else numbers
    table = torch.cat([integers, numbers.view(torch.uint8)], 1)
    pooled: Tensor = _QUANTIZED[bits](table, indices, offsets, per_sample_weights=weights, include_last_offset=True)
    return pooled


LIBRARY.impl("row_bags", _meta, "Meta")
LIBRARY.impl("row_bags", _pooled, "CPU")


def _ends_of(name: str, offsets: Array, count: int, feature: int, features: int) -> Array:
    """Where the bags of a feature begin, and the last one ends, among the indices of all; InvalidOffsets for others."""
    if offsets.ndim != 1 or not offsets.size or (offsets.size - 1) % features:
        raise InvalidOffsets(
            f"{name}: offsets must be a bag for each sample of {features} features, and an end, not {offsets.shape}"
        )
    bags = (offsets.size - 1) // features
    ends: Array = offsets[feature * bags : (feature + 1) * bags + 1]
    if not 0 <= ends[0] <= ends[-1] <= count or (np.diff(ends) < 0).any():
        raise InvalidOffsets(f"{name}: offsets must not decrease, and lie within the {count} indices")
    return ends


@dataclass(frozen=True)
class RowBags(Operation):
    """Sums of rows as FBGEMM's operators compute them, rounded to nothing less than binary32.

    Rows are elements, or with ``bits`` the bytes of a scale, a bias, both of float16, and ``dim`` integers. With
    ``trains`` FBGEMM would change them when gradients come back, which the results of a device do not have.
    """

    targets: ClassVar[tuple[Target, ...]] = (torch.ops.daedal.row_bags.default,)
    line = Line(
        "`SplitTableBatchedEmbeddingBagsCodegen`, `IntNBit…` of FBGEMM",
        "a bag for each feature, one launch for all ([TorchRec](torchrec.md))",
        "`daedal.compile`, or `daedal.quantized.traceable`",
    )
    is_embedding = True
    is_optional = False
    can_share = True

    indices: object
    offsets: object
    weights: object
    feature: int
    features: int
    bits: int
    dim: int
    trains: bool

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, torch.ops.daedal.row_bags.default)
        names = ("rows", "indices", "offsets", "weights", "feature", "features", "bits", "dim", "trains")
        return cls(node.name, *(values[name] for name in names))

    @property
    def sources(self) -> tuple[object, ...]:
        """Table, indices, offsets and weights."""
        return self.table, self.indices, self.offsets, self.weights

    def request(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Request:
        """See ``bag_request`` and ``quantised_request``; UnsupportedOperation where FBGEMM would train."""
        self._check_gradients()
        rows = table_of(self.name, table, ("uint8",) if self.bits else ROW_TYPES)
        given, ends = self._bags(
            integers_of(self.name, "indices", indices),
            None if offsets is None else integers_of(self.name, "offsets", offsets),
        )
        factors = None if weights is None else weights_of(self.name, weights, torch.float32)
        if factors is not None and len(factors) != len(indices):
            raise UnsupportedOperation(f"{self.name}: weights must be one for each of {len(indices)} indices")
        if ends is not None:
            first = int(ends[0])
            end, ends = int(ends[-1]), ends - first
            given, factors = given[first:end], None if factors is None else factors[first:end]
        there = given != PRUNED
        if not there.all():
            if ends is None:
                ends = np.arange(len(given) + 1, dtype=given.dtype)
            before = np.concatenate([[0], np.cumsum(there.reshape(-1))]).astype(ends.dtype)
            ends, given = before[ends], given[there]
            factors = None if factors is None else factors[there]
        options: dict[str, Any] = {"include_last_offset": ends is not None}
        if self.bits:
            form = QuantisedRows(self.bits, self.dim, "float16", is_first=True)
            return quantised_request(self.name, rows, form, given, ends, factors, **options)
        is_wide = rows.dtype is not torch.float32
        return bag_request(
            self.name, rows, given, ends, factors, is_fused=factors is not None, is_wide=is_wide, **options
        )

    def _check_gradients(self) -> None:
        if self.trains and torch.is_grad_enabled():
            raise UnsupportedOperation(
                f"{self.name}: FBGEMM trains this table when gradients come back, and results have none: call it under "
                "torch.no_grad(), or say eval() before it is compiled"
            )

    def _bags(self, indices: Array, offsets: Array | None) -> tuple[Array, Array | None]:
        """Indices, and where the bags of the feature are among them."""
        if offsets is None:
            return indices, None
        return indices, _ends_of(self.name, offsets, len(indices), self.feature, self.features)

    def in_torch(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Tensor:
        """The same sums."""
        self._check_gradients()
        options = self.feature, self.features, self.bits, self.dim, False
        result: Tensor = torch.ops.daedal.row_bags.default(table, indices, offsets, weights, *options)
        return result
