"""The modules of operations on rows of one element type, and what runs them on a device."""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from daedal.compiler.frontends.row_tables import Table
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats


class Runs(Protocol):
    """An operation on a device; ``stats`` are the figures of its last call."""

    @property
    def stats(self) -> Stats:
        """See ``Executable.stats``."""
        ...

    def __call__(self, *inputs: Tensor) -> Any:
        """Run it."""
        ...


class RowsOfBytes:
    """Bags of numbers of 8 bits by ``daedal.quantized.Table``: PyTorch has no operator for them."""

    def __init__(self, device: Device, table: Tensor) -> None:
        rows, dim = table.shape
        self._device = device
        self._table = Table.from_rows(table.view(torch.uint8), format="fbgemm-fp8", rows=rows, dim=dim)

    @property
    def stats(self) -> Stats:
        """The figures of the last call."""
        return self._table.stats

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Pooled rows, (bags, dim) of float32."""
        result: Tensor = self._table.bags(self._device, *inputs)
        return result


class Decoded(nn.Module):
    """Bags of numbers of 8 bits as PyTorch computes those of the same numbers in binary32."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = table

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Pooled rows, (bags, dim) of float32."""
        return functional.embedding_bag(indices, self.table.float(), offsets, mode="sum", per_sample_weights=weights)


class Bag(nn.Module):
    """Bags of plain numbers, with weights if there are any."""

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        super().__init__()
        self.bag = bag

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Pooled rows, (bags, dim)."""
        result: Tensor = self.bag(indices, offsets, per_sample_weights=weights)
        return result


class Quantised(nn.Module):
    """Bags of rows of integers with a scale and a bias, with weights if there are any."""

    def __init__(self, table: Tensor, name: str) -> None:
        super().__init__()
        self.operator = getattr(torch.ops.quantized, f"embedding_bag_{name}_rowwise_offsets")
        self.register_buffer("table", table)

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Pooled rows, (bags, dim) of float32."""
        result: Tensor = self.operator(self.table, indices, offsets, per_sample_weights=weights)
        return result


class Gather(nn.Module):
    """Rows as they are."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, indices: Tensor) -> Tensor:
        """The rows, one behind the other."""
        table = self.get_buffer("table")
        return table.index_select(0, indices)
