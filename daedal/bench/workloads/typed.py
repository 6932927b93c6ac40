"""Bags and gathers of rows of one element type: data, module, and the same in PyTorch and FBGEMM on this computer."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from daedal.bench.workloads.typed_modules import Bag, Decoded, Gather, Quantised, RowsOfBytes, Runs
from daedal.compiler.api import compile
from daedal.compiler.frontends.row_formats import EXPONENT_BIAS, EXPONENT_BITS
from daedal.driver.device import Device
from daedal.driver.tables.quantised import QuantisedRows
from daedal.hw.isa.elements import LANE

FLOATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Types of plain numbers of which PyTorch has bags."""

FLOAT8 = "fp8"
"""Numbers of 8 bits with 4 of exponent, as FBGEMM keeps them in tables: sums are of binary32."""

INTEGERS = {"int8": (8, "byte", "float32"), "int4": (4, "4bit", "float16"), "int2": (2, "2bit", "float16")}
"""Types of rows with a scale and a bias: bits, name in PyTorch's operator, type of scale and bias."""

TYPES = (*FLOATS, FLOAT8, *INTEGERS)
MODES = ("sum", "weighted", "mean", "gather")
"""What is done with rows: gathers are of their bytes. The means of those in ``FLOATS`` are divided by the machine."""

_DTYPES = {**FLOATS, FLOAT8: torch.float8_e4m3fn}
_OF_FLOAT8: tuple[dict[str, Any], ...] = ({}, {"fp8_exponent_bits": EXPONENT_BITS, "fp8_exponent_bias": EXPONENT_BIAS})

_NOT_IN_FBGEMM = ("bf16",)
"""Types that FBGEMM's operators on the CPU do not have."""

INDEX_BYTES = 8
"""Bytes of an index and of an offset: int64."""


@dataclass(frozen=True)
class Typed:
    """One operation on a table of one type: ``bags`` bags of ``pooling`` rows each, or as many rows gathered."""

    type: str
    mode: str
    dim: int
    rows: int = 65_536
    bags: int = 128
    pooling: int = 32

    @property
    def name(self) -> str:
        """Type, operation, width."""
        return f"{self.type} {self.mode} {self.dim}"

    @property
    def form(self) -> QuantisedRows | None:
        """How a row lies in PyTorch's table; None of plain numbers."""
        if self.type in _DTYPES:
            return None
        bits, _, number = INTEGERS[self.type]
        return QuantisedRows(bits, self.dim, number)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as PyTorch's table has it, scale and bias included."""
        return self.dim * _DTYPES[self.type].itemsize if self.form is None else self.form.row_bytes

    @property
    def result(self) -> torch.dtype:
        """The type of pooled rows and of weights."""
        return FLOATS.get(self.type, torch.float32)

    @property
    def lookups(self) -> int:
        """Rows that are looked up."""
        return self.bags * self.pooling

    @property
    def useful_bytes(self) -> int:
        """Bytes that are read or written once: rows, indices, offsets, weights, results."""
        rows = self.lookups * (self.row_bytes + INDEX_BYTES)
        if self.mode == "gather":
            return rows + self.lookups * self.row_bytes
        size = self.result.itemsize
        weights = self.lookups * size if self.mode == "weighted" else 0
        return rows + weights + self.bags * (INDEX_BYTES + self.dim * size)

    def device_lines(self, bus_bytes: int) -> int:
        """Lines of a row in device memory, where scale and bias are of binary32."""
        size = self.row_bytes if self.mode == "gather" or self.form is None else self.form.words * LANE.bytes
        return -(-size // bus_bytes)

    def make(self, seed: int, *, is_even: bool = False) -> "MadeTyped":
        """The operation with its data, equal for equal seeds; in tables that are ``even`` all bytes are the same."""
        rng = np.random.default_rng(seed)
        table = self._even() if is_even else self._table(rng)
        indices = torch.from_numpy(rng.integers(0, self.rows, self.lookups))
        if self.mode == "gather":
            return MadeTyped(self, Gather(table), (indices,))
        offsets = torch.arange(0, self.lookups, self.pooling)
        weights = torch.from_numpy(rng.standard_normal(self.lookups, np.float32))
        inputs = (indices, offsets, weights.to(self.result)) if self.mode == "weighted" else (indices, offsets)
        if self.type == FLOAT8:
            return MadeTyped(self, Decoded(table), inputs)
        if self.form is None:
            mode: Any = "mean" if self.mode == "mean" else "sum"
            bag = nn.EmbeddingBag(self.rows, self.dim, mode=mode, _weight=table)
            return MadeTyped(self, Bag(bag), inputs)
        return MadeTyped(self, Quantised(table, INTEGERS[self.type][1]), inputs)

    def _even(self) -> Tensor:
        bytes_ = torch.full((self.rows, self.row_bytes), 1, dtype=torch.uint8)
        return bytes_ if self.form is not None else bytes_.view(_DTYPES[self.type])

    def _table(self, rng: np.random.Generator) -> Tensor:
        if self.form is None:
            return torch.from_numpy(rng.standard_normal((self.rows, self.dim), np.float32)).to(_DTYPES[self.type])
        table = rng.integers(0, 256, (self.rows, self.row_bytes), dtype=np.uint8)
        head = rng.standard_normal((self.rows, 2)).astype(self.form.number)
        table[:, self.form.integer_bytes :] = head.view(np.uint8)
        return torch.from_numpy(table)


@dataclass(frozen=True)
class MadeTyped:
    """An operation, its module on the CPU, and what to call that with."""

    typed: Typed
    module: nn.Module
    inputs: tuple[Tensor, ...]

    @property
    def start(self) -> tuple[Tensor, ...]:
        """Inputs of a launch of one bag, or of so many rows."""
        pooling = self.typed.pooling
        if self.typed.mode == "gather":
            return (self.inputs[0][:pooling],)
        first, offsets, *weights = self.inputs
        return (first[:pooling], offsets[:1], *(each[:pooling] for each in weights))

    def on(self, device: Device) -> Runs:
        """The operation on a device."""
        if isinstance(self.module, Decoded):
            return RowsOfBytes(device, self.module.table)
        return compile(self.module, self.inputs, device=device)

    def in_torch(self) -> Callable[[], Any] | None:
        """PyTorch's operation, or None where it has only one on wider rows."""
        return None if isinstance(self.module, Decoded) else lambda: self.module(*self.inputs)

    def in_fbgemm(self) -> Callable[[], Any] | None:
        """The bags by FBGEMM's operators for inference, or None if it is not installed or has no such operation."""
        if self.typed.mode == "gather" or self.typed.type in _NOT_IN_FBGEMM:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it tells of parts of its own that it lacks
                from fbgemm_gpu.split_embedding_configs import SparseType
                from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
                from fbgemm_gpu.split_table_batched_embeddings_ops_inference import (
                    IntNBitTableBatchedEmbeddingBagsCodegen,
                )
        except (ImportError, OSError):
            return None
        kind = getattr(SparseType, self.typed.type.upper())
        fused = IntNBitTableBatchedEmbeddingBagsCodegen(
            [("table", self.typed.rows, self.typed.dim, kind, EmbeddingLocation.HOST)],
            device="cpu",
            pooling_mode=PoolingMode.MEAN if self.typed.mode == "mean" else PoolingMode.SUM,
            output_dtype=kind if self.typed.type in FLOATS else SparseType.FP32,
            **_OF_FLOAT8[self.typed.type == FLOAT8],
        )
        fused.initialize_weights()
        fused.fill_random_weights()
        indices, offsets, *weights = self.inputs
        ends = torch.cat((offsets, torch.tensor([len(indices)])))
        given = weights[0].float() if weights else None
        fused(indices, ends, per_sample_weights=given)
        return lambda: fused(indices, ends, per_sample_weights=given)
