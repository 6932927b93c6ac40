"""``daedal.quantized.Table`` beside FBGEMM's operators for inference, bit for bit, where those are installed."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal.hw.config.core import Config

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it tells of parts of its own that it lacks
    pytest.importorskip("fbgemm_gpu", reason="fbgemm-gpu-cpu is not installed: pip install -e '.[frameworks]'")
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen

FORMATS = ("int8", "int4", "int2", "fp8", "fp16", "fp32")
OUTPUTS = {"float32": SparseType.FP32, "float16": SparseType.FP16, "bfloat16": SparseType.BF16}
ALL = replace(Config.preset("edge"), name="edge-all-types", binary16=1, bfloat16=1, quantised=1)


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=ALL) as opened:
        yield opened


def bytes_of(format: str, rows: int, row_bytes: int, rng: np.random.Generator) -> Any:
    """Rows of any integers with scales and biases of many magnitudes, or of any finite numbers."""
    if format == "fp32":
        return (rng.standard_normal((rows, row_bytes // 4)) * 8).astype(np.float32).view(np.uint8)
    if format == "fp16":
        return (rng.standard_normal((rows, row_bytes // 2)) * 8).astype(np.float16).view(np.uint8)
    raw = rng.integers(0, 256, (rows, row_bytes), dtype=np.uint8)
    if format != "fp8":
        head = rng.standard_normal((rows, 2)) * np.exp2(rng.integers(-6, 6, (rows, 2)))
        raw[:, :4] = head.astype(np.float16).view(np.uint8)
    return raw


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    size = {2: torch.int16, 4: torch.int32}[expected.element_size()]
    equal = (found.view(size) == expected.view(size)) | (found.isnan() & expected.isnan())
    return found.dtype is expected.dtype and found.shape == expected.shape and bool(equal.all())


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("format", FORMATS)
def test_bags_are_fbgemms(format: str, output: str, device: daedal.Device) -> None:
    rng = np.random.default_rng([50, len(format), *format.encode(), len(output)])
    for trial in range(8):
        dim, rows, alignment = int(rng.choice([4, 8, 12, 16, 32, 64])), 20, int(rng.choice([1, 16]))
        mode, is_weighted = ("sum", "mean")[trial & 1], bool(trial & 2)
        eight = {"fp8_exponent_bits": 5, "fp8_exponent_bias": 15} if trial & 4 else {}
        eight = (eight or {"fp8_exponent_bits": 4, "fp8_exponent_bias": 7}) if format == "fp8" else {}
        theirs = IntNBitTableBatchedEmbeddingBagsCodegen(
            [("table", rows, dim, SparseType[format.upper()], EmbeddingLocation.HOST)],
            device="cpu",
            pooling_mode=PoolingMode[mode.upper()],
            output_dtype=OUTPUTS[output],
            row_alignment=alignment,
            **eight,
        )
        theirs.initialize_weights()
        ((weights, _),) = theirs.split_embedding_weights(split_scale_shifts=False)
        raw = weights.numpy().view(np.uint8)
        raw[:] = bytes_of(format, rows, raw.shape[1], rng)
        lengths = rng.choice([0, 1, 2, 7, 30], 8)
        ends = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
        indices = torch.from_numpy(rng.integers(0, rows, int(ends[-1])))
        if format != "fp8":  # FBGEMM goes wrong behind a pruned row of FP8
            indices[torch.from_numpy(rng.random(len(indices)) < 0.2)] = -1
        factors = torch.from_numpy(rng.standard_normal(len(indices), np.float32)) if is_weighted else None
        table = daedal.quantized.Table.from_rows(
            raw, format=f"fbgemm-{format}", rows=rows, dim=dim, output_dtype=output, row_alignment=alignment,
            **{name.removeprefix("fp8_"): number for name, number in eight.items()},
        )  # fmt: skip
        found = table.bags(device, indices, ends, factors, mode=mode, include_last_offset=True)
        expected = theirs(indices, ends, per_sample_weights=factors)
        assert same_bits(found, expected), (trial, dim, alignment)
