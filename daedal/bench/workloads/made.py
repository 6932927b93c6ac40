"""The data of a workload of bags or gathers, and its layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from daedal.bench.workloads.measured import Model, Program, bind_parameters, run_of
from daedal.compiler.api import compile
from daedal.driver.device import Device
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.isa.elements import BINARY32

INDEX_BYTES = 8
"""Bytes of an index and of an offset: int64, which is PyTorch's own."""

LIST_LEVELS = 3
"""Loop levels of several tables in one launch: tables, bags, rows."""


@dataclass(frozen=True)
class Made:
    """A workload with its data.

    Attributes
    ----------
    workload
        What it is of.
    module, inputs
        The layer, on the CPU, and what to call it with.
    lookups, bags
        Indices and results over all tables. No index is padding: each must read its row.
    origin
        Where the indices come from.
    """

    workload: Model
    module: nn.Module
    inputs: tuple[Any, ...]
    lookups: int
    bags: int
    origin: str

    @property
    def flops(self) -> int:
        """Additions and multiplications that the operation needs."""
        each = {"gather": 0, "sum": 1, "mean": 1, "weighted": 2}[self.workload.mode]
        return each * self.lookups * self.workload.dim

    @property
    def row_bytes(self) -> int:
        """Bytes of all rows that are looked up."""
        return self.lookups * self.workload.row_bytes

    @property
    def arrays(self) -> tuple[int, int, int, int]:
        """Bytes of indices, offsets, weights and results."""
        return (
            self.lookups * INDEX_BYTES,
            0 if self.workload.mode == "gather" else self.bags * INDEX_BYTES,
            self.lookups * BINARY32.bytes if self.workload.mode == "weighted" else 0,
            self.bags * self.workload.row_bytes,
        )

    @property
    def useful_bytes(self) -> int:
        """Bytes that the operation reads or writes once: rows, indices, offsets, weights, results."""
        return self.row_bytes + sum(self.arrays)

    def row_lines(self, bus_bytes: int) -> int:
        """Lines of a row."""
        return -(-self.workload.row_bytes // bus_bytes)

    def lines(self, bus_bytes: int) -> int:
        """Lines that the operation has to move, each part of an array once and each row for itself."""
        rows = self.lookups * self.row_lines(bus_bytes)
        return rows + sum(-(-size // bus_bytes) for size in self.arrays)

    def lane_cycles(self, config: Config) -> int | None:
        """Not counted: memory decides."""
        return None

    def row_parts(self, config: Config) -> list[int]:
        """Elements of the parts in which a row is read: of bags, as many as a vector register holds."""
        dim = self.workload.dim
        most = dim if self.workload.mode == "gather" else config.vl_max
        return [min(most, dim - first) for first in range(0, dim, most)]

    def fetched(self, config: Config) -> tuple[int, int]:
        """Every index reads its row, at once or in parts."""
        parts = self.row_parts(config)
        lines = sum(-(-part * BINARY32.bytes // config.bus_bytes) for part in parts)
        return self.lookups * len(parts), self.lookups * lines

    def launches(self, config: Config) -> int:
        """One on a preset for lists of tables; other machines may need one for each table."""
        walks_lists = config == PRESETS.get(config.name) and config.levels >= LIST_LEVELS
        return 1 if walks_lists else len(self.workload.tables)

    @property
    def reference(self) -> str:
        """What the result is compared with."""
        return "PyTorch"

    def compile(self, device: Device) -> tuple[Program, Callable[[], Any]]:
        """The layer on a device."""
        executable = compile(self.module, self.inputs, device=device)
        executable.prepare(self.inputs)
        bind_parameters(device, self.module)
        return executable, run_of(executable, self.inputs)

    def expected(self) -> Any:
        """PyTorch's result."""
        return self.module(*self.inputs)

    def in_torch(self) -> Callable[[], Any]:
        """The layer, called."""
        return lambda: self.module(*self.inputs)


class Bags(nn.Module):
    """Bags over several tables, side by side: one launch."""

    def __init__(self, bags: Sequence[nn.EmbeddingBag]) -> None:
        super().__init__()
        self.bags = nn.ModuleList(bags)

    def forward(self, inputs: list[tuple[Tensor, ...]]) -> Tensor:
        """Pooled rows of all tables; inputs are indices and offsets (and weights) for each."""
        found = [
            bag(*tensors[:2], per_sample_weights=tensors[2] if len(tensors) > 2 else None)
            for bag, tensors in zip(self.bags, inputs, strict=True)
        ]
        return torch.cat(found, dim=1) if len(found) > 1 else found[0]
