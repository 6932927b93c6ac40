"""``daedal.quantized.Table``: every layout, by the rules of PyTorch and FBGEMM as NumPy has them here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import daedal
from daedal.hw.isa.spec.binary32 import fused
from tests.compiler.layers.test_quantised_bags import EDGE

Array = NDArray[Any]
INTEGERS = [f"{library}-int{bits}" for library in ("torch", "fbgemm") for bits in (8, 4, 2)]


@pytest.fixture(scope="module")
def quantised() -> Iterator[daedal.Device]:
    """The golden model of a machine that has such rows."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def taken_apart(format: str, row: Array, dim: int) -> tuple[Array, np.float32, np.float32]:
    """Integers, scale and bias of a row, bit by bit."""
    bits = int(format[-1])
    number: Any = np.float32 if format == "torch-int8" else np.float16
    head, size = 2 * np.dtype(number).itemsize, -(-dim * bits // 8)
    behind = not format.startswith("fbgemm")
    numbers = row[size : size + head] if behind else row[:head]
    scale, bias = np.frombuffer(numbers.tobytes(), number).astype(np.float32)
    integers = row[:size] if behind else row[head : head + size]
    found = [int(integers[j * bits // 8]) >> j * bits % 8 & (1 << bits) - 1 for j in range(dim)]
    return np.array(found, np.float32), scale, bias


def pooled(rows: list[tuple[Array, np.float32, np.float32]], indices: Array, ends: Array, weights: Array | None,
           mode: str, dim: int) -> Array:  # fmt: skip
    """``acc = fma(q, s, acc + b)``, both weighted and rounded before; a mean times the reciprocal of all entries."""
    out = np.zeros((len(ends) - 1, dim), np.float32)
    for b, acc in enumerate(out):
        for p in range(ends[b], ends[b + 1]):
            if indices[p] == -1:
                continue
            q, scale, bias = rows[indices[p]]
            if weights is not None:
                scale, bias = scale * weights[p], bias * weights[p]
            acc[:] = fused(q, np.full(dim, scale, np.float32), acc + bias)
        if mode == "mean" and ends[b + 1] > ends[b]:
            acc *= np.float32(1) / np.float32(ends[b + 1] - ends[b])
    return out


def random_rows(format: str, rows: int, dim: int, rng: np.random.Generator) -> Array:
    bits, number = int(format[-1]), np.dtype(np.float32 if format == "torch-int8" else np.float16)
    size = -(-dim * bits // 8)
    integers = rng.integers(0, 256, (rows, size), dtype=np.uint8)
    head = (rng.standard_normal((rows, 2)) * np.exp2(rng.integers(-6, 6, (rows, 2)))).astype(number).view(np.uint8)
    return np.concatenate([integers, head] if format.startswith("torch") else [head, integers], 1)


@pytest.mark.parametrize("format", INTEGERS)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_every_layout(format: str, mode: str, quantised: daedal.Device) -> None:
    rng = np.random.default_rng([49, len(format), mode == "mean", int(format[-1])])
    for dim, is_weighted, is_pruned in ((16, False, False), (12, True, True), (64, True, False), (20, False, True)):
        raw = random_rows(format, 25, dim, rng)
        table = daedal.quantized.Table.from_rows(raw.tobytes(), format=format, rows=25, dim=dim)
        lengths = rng.choice([0, 1, 2, 7, 30], 8)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        indices = rng.integers(0, 25, ends[-1])
        if is_pruned:
            indices[rng.random(len(indices)) < 0.3] = -1
        weights = rng.standard_normal(len(indices)).astype(np.float32) if is_weighted else None
        apart = [taken_apart(format, row, dim) for row in raw]
        found = table.bags(quantised, indices, ends[:-1], weights, mode=mode)
        expected = pooled(apart, indices, ends, weights, mode, dim)
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_results_of_16_bits(quantised: daedal.Device) -> None:
    """float16 to even, bfloat16 away from zero; ties of both."""
    integers = np.array([[1, 2, 3, 4]], np.uint8)
    head = np.array([[2.0**-8, 1.0]], np.float32).view(np.uint8)  # 1 + k / 256
    raw = np.concatenate([integers, head], 1)
    for dtype, patterns in (
        ("bfloat16", [0x3F81, 0x3F81, 0x3F82, 0x3F82]),
        ("float16", [0x3C04, 0x3C08, 0x3C0C, 0x3C10]),
    ):
        table = daedal.quantized.Table.from_rows(raw, format="torch-int8", rows=1, dim=4, output_dtype=dtype)
        assert table.bags(quantised, [[0]]).view(np.uint16).tolist() == [patterns]
        tensor = table.rows(quantised, torch.tensor([0, 0]))
        assert tensor.dtype is getattr(torch, dtype) and tensor.shape == (2, 4)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_plain_rows(is_weighted: bool, quantised: daedal.Device) -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((9, 8)).astype(np.float32)
    table = daedal.quantized.Table.from_rows(rows.view(np.uint8), format="fbgemm-fp32", rows=9, dim=8)
    indices, weights = rng.integers(0, 9, (3, 7)), rng.standard_normal((3, 7)).astype(np.float32)
    expected = np.zeros((3, 8), np.float32)
    for bag in range(3):
        for index, weight in zip(indices[bag], weights[bag], strict=True):
            factor = np.full(8, weight if is_weighted else 1, np.float32)
            expected[bag] = fused(rows[index], factor, expected[bag])
    found = table.bags(quantised, indices, weights=weights if is_weighted else None)
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_alignment_and_pruned_rows_of_bags_of_one_length(quantised: daedal.Device) -> None:
    rng = np.random.default_rng(5)
    raw = random_rows("fbgemm-int4", 6, 12, rng)
    padded = np.pad(raw, ((0, 0), (0, 6)), constant_values=255)
    table = daedal.quantized.Table.from_rows(padded, format="fbgemm-int4", rows=6, dim=12, row_alignment=16)
    indices = np.array([[0, -1, 5], [-1, -1, -1]], np.int32)
    apart = [taken_apart("fbgemm-int4", row, 12) for row in raw]
    expected = pooled(apart, indices.reshape(-1), np.array([0, 3, 6]), None, "mean", 12)
    assert np.array_equal(table.bags(quantised, indices, mode="mean"), expected)


def test_torch_rows_are_those_of_the_operator(quantised: daedal.Device) -> None:
    torch.manual_seed(1)
    raw = torch.ops.quantized.embedding_bag_byte_prepack(torch.randn(12, 20))
    table = daedal.quantized.Table.from_rows(raw, format="torch-int8", rows=12, dim=20)
    indices, offsets, weights = torch.randint(0, 12, (30,)), torch.tensor([0, 4, 4, 20]), torch.randn(30)
    expected = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(raw, indices, offsets, per_sample_weights=weights)
    assert torch.equal(table.bags(quantised, indices, offsets, weights), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "fbgemm-fp8"}, r"format must be one of torch-int8, .*, not 'fbgemm-fp8'"),
        ({"rows": 3}, "data must have 60 bytes, 20 for each of 3 rows of 16 elements of fbgemm-int8, not 40"),
        ({"dim": 15}, "data must have 38 bytes"),
        ({"dim": 0}, "dim must be at least 1, not 0"),
        ({"output_dtype": "int8"}, "output_dtype must be one of float32, float16, bfloat16, not 'int8'"),
        ({"format": "fbgemm-fp16", "dim": 10}, "output_dtype of fbgemm-fp16 must be float16, not 'float32'"),
        ({"data": np.zeros(40, np.int8)}, "data must be bytes, an array or tensor of uint8, not of int8"),
    ],
)
def test_rows_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"data": bytes(40), "format": "fbgemm-int8", "rows": 2, "dim": 16} | options
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.quantized.Table.from_rows(given.pop("data"), **given)


def test_wrong_arguments(quantised: daedal.Device) -> None:
    table = daedal.quantized.Table.from_rows(bytes(40), format="fbgemm-int8", rows=2, dim=16, name="users")
    with pytest.raises(daedal.UnsupportedOperation, match="mode must be sum or mean, not 'max'"):
        table.bags(quantised, [[0]], mode="max")
    with pytest.raises(daedal.UnsupportedOperation, match="indices must be integers, not float64"):
        table.bags(quantised, [[0.5]])
    with pytest.raises(daedal.IndexOutOfRange, match=r"users: .*2"):
        table.bags(quantised, [[0, 2]])
    with pytest.raises(daedal.InvalidOffsets, match="users: the first offset must be 0"):
        table.bags(quantised, [0, 1], [1])
    with (
        daedal.Device.open("emulator", config="edge") as plain,
        pytest.raises(daedal.UnsupportedOperation, match="set quantised = 1 in its configuration"),
    ):
        table.bags(plain, [[0]])
