"""What is in a module of FBGEMM's batched tables, and why it may have to stay FBGEMM's."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from daedal.compiler.dialects.narrow_packed import packed_elements
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.row_formats import Float8Rows
from daedal.driver.tables.quantised import QuantisedRows
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BFLOAT16, BINARY16, LANE

_OPS = "fbgemm_gpu.split_table_batched_embeddings_ops"
_SPLIT, _DENSE = "SplitTableBatchedEmbeddingBagsCodegen", "DenseTableBatchedEmbeddingBagsCodegen"
_PLACES = {
    f"{_OPS}_training": (_SPLIT, _DENSE),
    f"{_OPS}_inference": ("IntNBitTableBatchedEmbeddingBagsCodegen",),
}
INFERENCE = _PLACES[f"{_OPS}_inference"][0]
SUM, MEAN, NONE = range(3)
"""FBGEMM's ``PoolingMode``."""

TYPES = {0: torch.float32, 1: torch.float16, 5: torch.bfloat16}
"""FBGEMM's numbers of types that results can have here."""

_BITS = {"int8": 8, "int4": 4, "int2": 2}
_HOST = 3
"""FBGEMM's ``EmbeddingLocation.HOST``."""


def fbgemm_kinds() -> tuple[type[nn.Module], ...]:
    """FBGEMM's classes, as far as they have been imported: else there can be no module of them."""
    loaded = [(sys.modules.get(place), names) for place, names in _PLACES.items()]
    return tuple(getattr(place, name) for place, names in loaded if place is not None for name in names)


class StaysFbgemms(Exception):
    """Why a module stays FBGEMM's."""


@dataclass(frozen=True)
class FbgemmTable:
    """Rows, elements or bytes, and what these are (see ``daedal::row_bags``)."""

    rows: Tensor
    bits: int
    dim: int


def features_of(module: Any) -> Sequence[int]:
    """The number of the table of each feature."""
    found = getattr(module, "feature_table_map", None)
    if found is None:  # Dense… keeps the first row of each feature's table alone
        starts = [0]
        for rows, _ in module.embedding_specs:
            starts.append(starts[-1] + rows)
        return [starts.index(int(first)) for first in module.hash_size_cumsum[:-1]]
    return [int(table) for table in found]


def dtype_of(module: Any) -> torch.dtype:
    """The type of its results; Dense… has float32 on the CPU, whatever it is told."""
    return torch.float32 if type(module).__name__ == _DENSE else TYPES.get(int(module.output_dtype), torch.uint8)


def remapping_of(module: Any) -> tuple[Tensor, Tensor] | None:
    """Where the rows are of which some were pruned, and where those of each table begin; None if none were."""
    array = getattr(module, "index_remappings_array", None)
    if array is None or not array.numel():
        return None
    return array, module.index_remappings_array_offsets


def tables_of(module: Any, config: Config) -> list[FbgemmTable]:
    """The tables; ``StaysFbgemms`` for what only FBGEMM does."""
    name = type(module).__name__
    plain = next(kind for kind in fbgemm_kinds() if isinstance(module, kind))
    if type(module).forward is not plain.forward or module._forward_hooks or module._forward_pre_hooks:
        raise StaysFbgemms(f"{name} has a forward or hooks of its own, which a device does not run")
    if module.current_device.type != "cpu":
        raise StaysFbgemms(f"tables must be on the CPU, not on {module.current_device}: use FBGEMM's ComputeDevice.CPU")
    if int(module.output_dtype) not in TYPES:
        raise StaysFbgemms("output_dtype must be SparseType.FP32, FP16 or BF16")
    return _integer_tables(module, config) if name == INFERENCE else _float_tables(module, config)


def _float_tables(module: Any, config: Config) -> list[FbgemmTable]:
    is_dense = type(module).__name__ == _DENSE
    if is_dense and int(module.pooling_mode) == NONE:
        raise StaysFbgemms("PoolingMode.NONE gives sums in this module of FBGEMM's: use SUM")
    if not is_dense and any(int(spec[2].value) != _HOST for spec in module.embedding_specs):
        raise StaysFbgemms("tables must be at EmbeddingLocation.HOST, without a cache")
    found = module.split_embedding_weights()
    if any(rows.dtype not in (torch.float32, torch.float16) for rows in found):
        raise StaysFbgemms(f"weights_precision must be SparseType.FP32 or FP16, not {module.weights_precision}")
    for rows in found:
        _check_type(config, str(rows.dtype).removeprefix("torch."))
    return [FbgemmTable(rows, 0, rows.shape[1]) for rows in found]


def _integer_tables(module: Any, config: Config) -> list[FbgemmTable]:
    if not module.weight_initialized:
        raise UnsupportedOperation(
            f"{type(module).__name__}: tables must have their rows before it is compiled: assign_embedding_weights, "
            "initialize_weights or fill_random_weights"
        )
    if module.index_remapping_hash_table_cpu is not None or module.index_remapping_hash_table.numel():
        raise StaysFbgemms("index_remapping must be an array, with use_array_for_index_remapping=True")
    if module.reverse_qparam or module.scale_bias_size_in_bytes != QuantisedRows(8, 0, "float16").row_bytes:
        raise StaysFbgemms("scale and bias must be 4 bytes in front of a row, without reverse_qparam")
    found = []
    for spec, (rows, _) in zip(module.embedding_specs, module.split_embedding_weights(False), strict=True):
        dim, kind = int(spec[2]), str(spec[3].value)
        if kind in _BITS:
            form = QuantisedRows(_BITS[kind], dim, "float16", is_first=True)
            if not config.quantised:
                raise StaysFbgemms(f"machines with Config.quantised have rows of {kind}, and {config.name} is none")
            if packed_elements(form.words, form.bits) > config.vl_max:
                raise StaysFbgemms(
                    f"rows of {dim} {kind} must be at most a vector register, {config.vl_max}: split the table"
                )
            found.append(FbgemmTable(rows[:, : form.row_bytes], form.bits, dim))
        elif kind == "fp8":
            found.append(FbgemmTable(_float8(module, rows[:, :dim], config), 0, dim))
        elif kind in ("fp32", "fp16"):
            element = LANE if kind == "fp32" else BINARY16
            _check_type(config, element.dtype)
            found.append(FbgemmTable(_viewed(rows[:, : dim * element.bytes], getattr(torch, element.dtype)), 0, dim))
        else:
            raise StaysFbgemms(f"rows must be of INT8, INT4, INT2, FP8, FP16 or FP32, not {kind.upper()}")
    return found


def _viewed(rows: Tensor, dtype: torch.dtype) -> Tensor:
    try:
        return rows.view(dtype)
    except RuntimeError as error:
        raise StaysFbgemms(f"rows must begin at a multiple of {dtype.itemsize} bytes: set row_alignment") from error


def _float8(module: Any, rows: Tensor, config: Config) -> Tensor:
    """The same numbers as bfloat16, a copy."""
    _check_type(config, BFLOAT16.dtype)
    if remapping_of(module) is not None:
        raise StaysFbgemms("FBGEMM does not leave pruned rows of FP8 out")
    form = Float8Rows(int(module.fp8_exponent_bits), int(module.fp8_exponent_bias))
    try:
        form.check()
    except UnsupportedOperation as error:
        raise StaysFbgemms(str(error)) from error
    numbers = torch.from_numpy(np.ascontiguousarray(form.decoded()))
    return numbers[rows.long()].to(torch.bfloat16)


def _check_type(config: Config, dtype: str) -> None:
    if dtype not in computed_types(config):
        raise StaysFbgemms(f"machine {config.name} does not compute with rows of torch.{dtype}")
