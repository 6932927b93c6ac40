"""FBGEMM's modules of batched tables as calls of an operator that a device takes, a call for each feature.

``SplitTableBatchedEmbeddingBagsCodegen``, ``Dense…`` and ``IntNBit…`` have their tables in one tensor; views of it, or
of its bytes, are the tables here. What FBGEMM does by rules that a device does not follow stays FBGEMM's.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from daedal.compiler.frontends.torch.ops.whole_modules import number_of
from daedal.compiler.frontends.torch.trace.fbgemm_tables import (
    INFERENCE,
    MEAN,
    NONE,
    FbgemmTable,
    StaysFbgemms,
    dtype_of,
    features_of,
    remapping_of,
    tables_of,
)
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config


class FbgemmWhole(nn.Module):
    """A module of FBGEMM that stays as it is."""

    def __init__(self, module: Any, reason: str) -> None:
        super().__init__()
        self._module = (module,)  # no part of this one, since traces must not look into it
        self.reason, self._number = reason, number_of(self)
        self._features, self._columns = len(features_of(module)), int(module.total_D)
        self._is_rows, self._dtype = int(module.pooling_mode) == NONE, dtype_of(module)
        self.train(module.training)

    def forward(
        self, indices: Tensor, offsets: Tensor, per_sample_weights: Tensor | None = None, *others: Any
    ) -> Tensor:
        """As FBGEMM's, for batches of as many bags for every feature."""
        if any(each is not None for each in others[1:]):
            raise UnsupportedOperation("batch_size_per_feature_per_rank must be left out within daedal.compile")
        result: Tensor = torch.ops.daedal.whole_module.default(self._number, indices, offsets, per_sample_weights)
        return result

    def run(self, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
        """What the module gives."""
        result: Tensor = self._module[0](indices, offsets, weights)
        return result

    def form(self, indices: Tensor, offsets: Tensor) -> Tensor:
        """A tensor of that shape and type."""
        if self._is_rows:
            return indices.new_empty((indices.shape[0], self._columns // self._features), dtype=self._dtype)
        return indices.new_empty(((offsets.shape[0] - 1) // self._features, self._columns), dtype=self._dtype)


_ROUNDED = "weighted means of FP16 are added up in an order of FBGEMM's own: use output_dtype FP32"


class FbgemmTables(nn.Module):
    """The tables of a module of FBGEMM, each a buffer, looked up as that does."""

    def __init__(self, module: Any, tables: Sequence[FbgemmTable]) -> None:
        super().__init__()
        for number, table in enumerate(tables):
            self.register_buffer(f"table_{number}", table.rows, persistent=False)
        self._features = [(f"table_{t}", tables[t].bits, tables[t].dim) for t in features_of(module)]
        self._pooling, self._dtype = int(module.pooling_mode), dtype_of(module)
        self._remapped = remapping_of(module)
        self._of_32_bits = getattr(module, "embedding_table_index_type", None) is torch.int32
        self._trains = type(module).__name__ != INFERENCE and module.training
        self._is_away = type(module).__name__ == INFERENCE
        self._divides = self._pooling == MEAN and self._dtype is torch.float16 and not self._is_away
        self._weighted = FbgemmWhole(module, _ROUNDED) if self._divides else None
        self.train(module.training)

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor,
        per_sample_weights: Tensor | None = None,
        feature_requires_grad: Tensor | None = None,
        batch_size_per_feature_per_rank: list[list[int]] | None = None,
    ) -> Tensor:
        """As FBGEMM's; batches that differ by feature are refused."""
        if batch_size_per_feature_per_rank is not None:
            raise UnsupportedOperation(
                "batch_size_per_feature_per_rank must be left out: give every feature as many bags"
            )
        if per_sample_weights is not None and self._weighted is not None:
            rows: Tensor = self._weighted(indices, offsets, per_sample_weights)
            return rows
        if self._remapped is not None:
            indices = torch.ops.fbgemm.pruned_array_lookup(indices, offsets, *self._remapped)
        indices = indices.int() if self._of_32_bits else indices
        weights = None if per_sample_weights is None else per_sample_weights.float()
        result = self._rows(indices, offsets) if self._pooling == NONE else self._pooled(indices, offsets, weights)
        if self._dtype is torch.bfloat16 and self._is_away:  # ties away from zero, as FBGEMM rounds
            return ((result.view(torch.int32) + 0x8000) >> 16).to(torch.int16).view(torch.bfloat16)
        return result if self._dtype is torch.float32 else result.to(self._dtype)

    def _pooled(self, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
        count = len(self._features)
        parts = [
            torch.ops.daedal.row_bags.default(
                getattr(self, name), indices, offsets, weights, feature, count, bits, dim, self._trains
            )
            for feature, (name, bits, dim) in enumerate(self._features)
        ]
        if self._pooling == MEAN:
            lengths = (offsets[1:] - offsets[:-1]).view(count, -1, 1).clamp(min=1).float()
            if self._divides:
                parts = [part / lengths[feature] for feature, part in enumerate(parts)]
            else:
                shares = 1.0 / lengths
                parts = [part * shares[feature] for feature, part in enumerate(parts)]
        return torch.cat(parts, 1)

    def _rows(self, indices: Tensor, offsets: Tensor) -> Tensor:
        """A row for each index, whatever bags these are in."""
        count = len(self._features)
        if count == 1:
            parts: Sequence[Tensor] = [indices]
        else:
            ends = offsets[:: (offsets.shape[0] - 1) // count]
            parts = torch.split(indices, (ends[1:] - ends[:-1]).tolist())
        found = [
            torch.ops.daedal.row_bags.default(
                getattr(self, name), part.unsqueeze(1), None, None, 0, 1, bits, dim, self._trains
            )
            for part, (name, bits, dim) in zip(parts, self._features, strict=True)
        ]
        return found[0] if count == 1 else torch.cat(found, 0)


def swapped(module: Any, config: Config) -> nn.Module:
    """What stands for a module of FBGEMM on a machine."""
    try:
        return FbgemmTables(module, tables_of(module, config))
    except StaysFbgemms as why:
        return FbgemmWhole(module, str(why))
