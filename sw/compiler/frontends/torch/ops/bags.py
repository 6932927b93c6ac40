"""Pooling operations with indices, offsets and weights, several of which may be one launch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from daedal.compiler.frontends.requests.bags import bag_request
from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.ops.tensors import integers_of, table_of, weights_of
from daedal.runtime.request import Request


@dataclass(frozen=True)
class Bags(Operation):
    """A pooling of bags; ``mode``, ``padding`` and ``include_last_offset`` are as ``bag_request`` has them.

    Sources are table, indices, offsets and weights, of which the last two may be None.
    """

    can_share = True
    is_pooling = True

    indices: object
    offsets: object
    weights: object
    mode: str
    padding: int | None = None
    include_last_offset: bool = False

    @property
    def sources(self) -> tuple[object, ...]:
        """Table, indices, offsets and weights."""
        return self.table, self.indices, self.offsets, self.weights

    @property
    def is_direct(self) -> bool:
        """They are."""
        return True

    def request(self, table: Tensor, indices: Tensor, offsets: Tensor | None, weights: Tensor | None) -> Request:
        """See ``bag_request``, which raises what is wrong."""
        return bag_request(
            self.name,
            table_of(self.name, table, ROW_TYPES),
            integers_of(self.name, "indices", indices),
            None if offsets is None else integers_of(self.name, "offsets", offsets),
            None if weights is None else weights_of(self.name, weights, table.dtype),
            mode=self.mode,
            padding=self.padding,
            include_last_offset=self.include_last_offset,
            is_fused=weights is not None and _is_fused(table.resolve_neg(), weights.resolve_neg()),
            is_away=table.dtype is torch.bfloat16 and self.padding is None and table.stride(1) == 1,
        )


def _is_fused(table: Tensor, weights: Tensor) -> bool:
    """Whether PyTorch's CPU kernel multiplies and adds in one step: it does where elements are neighbours."""
    return table.stride(1) == 1 and weights.reshape(-1).stride(0) == 1
