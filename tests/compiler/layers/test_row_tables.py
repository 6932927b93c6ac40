"""``daedal.quantized.Table``: every layout, by the rules of PyTorch and FBGEMM as NumPy has them here."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import compile_emb
from daedal.hw.isa.elements import BINARY16, FLOATS8, Element
from daedal.hw.isa.spec.binary32 import fused
from daedal.runtime.operations import Bag
from tests.compiler.layers.test_quantised_bags import EDGE
from tests.fuzz.configs import TYPES

Array = NDArray[Any]
NARROW = replace(EDGE, name="edge-all-types", binary16=1, bfloat16=1)
INTEGERS = [f"{library}-int{bits}" for library in ("torch", "fbgemm") for bits in (8, 4, 2)]


@pytest.fixture(scope="module")
def quantised() -> Iterator[daedal.Device]:
    """The golden model of a machine that has such rows."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


@pytest.fixture(scope="module")
def narrow() -> Iterator[daedal.Device]:
    """The golden model of a machine that has rows of all types."""
    with daedal.Device.open("emulator", config=NARROW) as opened:
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


def as_results(numbers: Array, dtype: str) -> Array:
    """binary32 rounded to a type of results; bfloat16 as its bits."""
    if dtype == "bfloat16":
        return ((numbers.view(np.uint32).astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("form", ["fp16", "fp8", "fp8 of 5 bits"])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_narrow_numbers(mode: str, form: str, dtype: str, narrow: daedal.Device) -> None:
    """Sums are of binary32; the factors of a mean are too, and results are rounded once."""
    rng = np.random.default_rng([51, len(form), len(dtype), len(mode)])
    for dim, is_weighted in ((7, False), (16, True), (33, True), (131, True), (129, False)):
        if form == "fp16":
            raw = (rng.standard_normal((20, dim)) * 9).astype(np.float16)
            rows, options = raw.astype(np.float32), {}
        else:
            raw = rng.integers(0, 256, (20, dim), dtype=np.uint8)
            options = {"exponent_bits": 5, "exponent_bias": 15} if "5" in form else {}
            rows = float8(raw, *options.values()) if options else float8(raw, 4, 7)
        table = daedal.quantized.Table.from_rows(
            raw.view(np.uint8), format=f"fbgemm-{form.split()[0]}", rows=20, dim=dim, output_dtype=dtype, **options
        )
        indices = rng.integers(-1 if dim < 100 else 0, 20, (5, 9))  # without pruned rows they stay 2-D
        weights = rng.standard_normal((5, 9), np.float32) if is_weighted else np.ones((5, 9), np.float32)
        expected = np.zeros((5, dim), np.float32)
        for bag in range(5):
            for index, weight in zip(indices[bag], weights[bag], strict=True):
                if index >= 0:
                    expected[bag] = fused(rows[index], np.full(dim, weight), expected[bag])
        if mode == "mean":
            expected *= np.float32(1) / np.float32(9)
        found = table.bags(narrow, indices, weights=weights if is_weighted else None, mode=mode)
        assert found.tobytes() == as_results(expected, dtype).tobytes()


def float8(codes: Array, exponent_bits: int, bias: int) -> Array:
    """Numbers of 8 bits: by sign, exponent and fraction; the smallest exponent has no leading one."""
    fraction_bits = 7 - exponent_bits
    exponents = (codes >> fraction_bits & (1 << exponent_bits) - 1).astype(int)
    fractions = (codes & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    magnitudes = np.ldexp(fractions + (exponents > 0), np.maximum(exponents, 1) - bias)
    return np.where(codes & 0x80, -magnitudes, magnitudes).astype(np.float32)


@pytest.mark.parametrize(("exponent_bits", "bias"), [(4, 7), (5, 15), (4, 20), (3, 1), (6, 31)])
def test_every_code_of_8_bits(exponent_bits: int, bias: int, narrow: daedal.Device) -> None:
    """One row each, so that nothing is added; zeros lose their sign in a sum."""
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    table = daedal.quantized.Table.from_rows(
        codes, format="fbgemm-fp8", rows=16, dim=16, exponent_bits=exponent_bits, exponent_bias=bias
    )
    found = table.rows(narrow, np.arange(16))
    is_kept = (exponent_bits, bias) in ((4, 7), (5, 15))
    assert narrow.tables["table"].row_bytes == (16 if is_kept else 32)
    assert found.tobytes() == (float8(codes, exponent_bits, bias) + np.float32(0)).tobytes()
    assert len(table) == 16


def test_float8_on_machines_that_have_part_of_it(narrow: daedal.Device) -> None:
    """A table goes to several machines, and once to each: as bytes, or as bfloat16 where there is that alone."""
    rng = np.random.default_rng(53)
    codes = rng.integers(0, 256, (9, 31), dtype=np.uint8)
    table = daedal.quantized.Table.from_rows(codes, format="fbgemm-fp8", rows=9, dim=31, name="codes")
    indices = rng.integers(0, 9, (4, 6))
    found = [table.bags(narrow, indices).tobytes()]
    there = narrow.tables["codes"]
    found.append(table.bags(narrow, indices).tobytes())
    assert there.row_bytes == 31 and narrow.tables["codes"] is there
    for config in (replace(EDGE, name="edge-bfloat16", quantised=0, bfloat16=1), replace(NARROW, binary16=0)):
        with daedal.Device.open("emulator", config=config) as opened:
            found.append(table.bags(opened, indices).tobytes())
            assert opened.tables["codes"].row_bytes == 62
    assert len(set(found)) == 1


def test_a_nan_stays_one(narrow: daedal.Device) -> None:
    """Scales and biases that are NaN, and numbers whose rounding would carry into the sign."""
    patterns = np.array([[0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF, 0x7F800000]], np.uint32)
    for dtype in ("float32", "float16", "bfloat16"):
        table = daedal.quantized.Table.from_rows(
            patterns.view(np.uint8), format="fbgemm-fp32", rows=1, dim=4, output_dtype=dtype
        )
        found = table.rows(narrow, torch.tensor([0]))
        assert found.isnan().tolist() == [[True, True, True, False]] and found.isinf().sum() == 1
    for scale, bias in ((np.nan, 1.0), (1.0, np.nan), (np.inf, 0.0)):
        raw = np.concatenate([np.array([scale, bias], np.float16).view(np.uint8), np.zeros(5, np.uint8)])
        table = daedal.quantized.Table.from_rows(raw, format="fbgemm-int8", rows=1, dim=5)
        assert np.isnan(table.rows(narrow, [0])).all()  # also 0 times infinity


@pytest.mark.parametrize(("format", "dims"), [("int4", (1, 3, 15)), ("int2", (1, 2, 3, 5, 6, 7))])
@pytest.mark.parametrize("library", ["torch", "fbgemm"])
def test_integers_that_do_not_fill_a_byte(library: str, format: str, dims: Any, quantised: daedal.Device) -> None:
    """The bits that are left of a row's last byte are no element, whatever they are."""
    for dim in dims:
        rng, name = np.random.default_rng([52, dim]), f"{library}-{format}"
        raw = random_rows(name, 9, dim, rng)
        table = daedal.quantized.Table.from_rows(raw, format=name, rows=9, dim=dim)
        indices = rng.integers(0, 9, (4, 5))
        apart = [taken_apart(name, row, dim) for row in raw]
        expected = pooled(apart, indices.reshape(-1), np.arange(0, 21, 5), None, "sum", dim)
        assert table.bags(quantised, indices).tobytes() == expected.tobytes()


@pytest.mark.rtl
@pytest.mark.slow
def test_rtl() -> None:
    """Every format with weights, on the RTL as on the emulator."""
    rng, found = np.random.default_rng(54), dict[str, list[Array]]()
    indices, weights = rng.integers(-1, 9, (4, 6)), rng.standard_normal((4, 6), np.float32)
    raw = {name: rng.integers(0, 120, (9, 200), dtype=np.uint8) for name in daedal.quantized.FORMATS}
    for target in ("verilator", "emulator"):
        with daedal.Device.open(target, config=TYPES) as device:
            for name, rows in raw.items():
                size = daedal.quantized.rows_of(name, 18, None, None).row_bytes
                table = daedal.quantized.Table.from_rows(rows[:, :size], format=name, rows=9, dim=18, name=name)
                found.setdefault(name, []).append(table.bags(device, indices, weights=weights, mode="mean"))
    assert all(one.tobytes() == other.tobytes() and one.any() for one, other in found.values())


def test_rows_of_16_bits_stay_so(narrow: daedal.Device) -> None:
    table = daedal.quantized.Table.from_rows(bytes(640), format="fbgemm-fp16", rows=10, dim=32, name="halves")
    assert table.bags(narrow, [[0, 1]]).dtype == np.float32
    assert narrow.tables["halves"].row_bytes == 64


@pytest.mark.parametrize("element", [BINARY16, *FLOATS8], ids=lambda element: element.mlir)
def test_every_level_of_wide_sums(element: Element) -> None:
    """Rows of 16 or 8 bits, results of 32, with weights that are not rounded."""
    rng = np.random.default_rng(53)
    bag = Bag("sum", 12, 64, 64, is_weighted=True, is_fused=True, element=element, is_wide=True)
    table, weights = rng.standard_normal((9, 12)).astype(np.float16), rng.standard_normal(30, np.float32)
    numbers = table.astype(np.float32)
    if element in FLOATS8:
        table = rng.integers(0, 256, (9, 12), dtype=np.uint8)
        numbers = float8(table, *((4, 7) if element is FLOATS8[0] else (5, 15)))
    buffers = {
        "table": table, "indices": rng.integers(0, 9, 30), "offsets": np.array([0, 0, 7, 30]), "weights": weights,
        "out": np.zeros((3, 12), np.float32),
    }  # fmt: skip
    kernel = compile_emb(build(bag), NARROW)
    results = [interpret(kernel.ir(level), buffers)["out"] for level in ("emb", "scf", "slc", "slcv", "dlc")]
    expected = np.zeros((3, 12), np.float32)
    for b, (start, end) in enumerate(((0, 0), (0, 7), (7, 30))):
        for p in range(start, end):
            row = numbers[buffers["indices"][p]]
            expected[b] = fused(row, np.full(12, weights[p]), expected[b])
    assert all(result.tobytes() == expected.tobytes() and result.dtype == np.float32 for result in results)


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
        ({"format": "fbgemm-nfp8"}, r"format must be one of torch-int8, .*, fbgemm-fp8, not 'fbgemm-nfp8'"),
        ({"rows": 3}, "data must have 60 bytes, 20 for each of 3 rows of 16 elements of fbgemm-int8, not 40"),
        ({"dim": 15}, "data must have 38 bytes"),
        ({"dim": 0}, "dim must be an integer, at least 1, not 0"),
        ({"rows": True}, "rows must be an integer, at least 1, not True"),
        ({"row_alignment": 1.0}, "row_alignment must be an integer, at least 1, not 1.0"),
        ({"output_dtype": "int8"}, "output_dtype must be one of float32, float16, bfloat16, not 'int8'"),
        ({"exponent_bits": 4}, "exponent_bits and exponent_bias must go with format fbgemm-fp8, not fbgemm-int8"),
        ({"format": "fbgemm-fp8", "dim": 20, "exponent_bits": 7}, "exponent_bits must be from 1 to 6, not 7"),
        ({"format": "fbgemm-fp8", "dim": 20, "exponent_bits": 4.0}, "exponent_bits must be an integer, not 4.0"),
        (
            {"format": "fbgemm-fp8", "dim": 20, "exponent_bias": 200},
            "exponent_bias must leave all numbers of 4 bits of",
        ),
        ({"format": "fbgemm-fp8", "dim": 20, "exponent_bias": -113}, "within bfloat16, not -113"),
        ({"format": []}, r"format must be one of .*, not \[\]"),
        ({"data": [[1], [2, 3]]}, r"data must be an array or a tensor, not \[\[1\], \[2, 3\]\]"),
        ({"data": np.zeros(40, np.int8)}, "data must be bytes, an array or tensor of uint8, not of int8"),
    ],
)
def test_rows_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"data": bytes(40), "format": "fbgemm-int8", "rows": 2, "dim": 16} | options
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.quantized.Table.from_rows(given.pop("data"), **given)


def test_numbers_of_numpy_and_figures_of_a_call(quantised: daedal.Device) -> None:
    made = daedal.quantized.Table.from_rows
    table = made(bytes(40), format="fbgemm-int8", rows=np.int64(2), dim=np.int32(16), row_alignment=np.uint8(4))
    assert table.stats.launches == 0 and type(table.dim) is int
    table.bags(quantised, [[0, 1, 1]])
    assert (table.stats.launches, table.stats.lookups, table.stats.rows) == (1, 3, 3)
    table.rows(quantised, [1])
    assert table.stats.lookups == 1
    made(bytes(16), format="fbgemm-fp8", rows=1, dim=16, exponent_bits=np.int64(4), exponent_bias=np.int8(7))


def test_wrong_arguments(quantised: daedal.Device) -> None:
    table = daedal.quantized.Table.from_rows(bytes(40), format="fbgemm-int8", rows=2, dim=16, name="users")
    with pytest.raises(daedal.UnsupportedOperation, match="mode must be sum or mean, not 'max'"):
        table.bags(quantised, [[0]], mode="max")
    with pytest.raises(daedal.UnsupportedOperation, match="indices must be integers, not float64"):
        table.bags(quantised, [[0.5]])
    for indices, weights, message in (
        (None, None, "indices must be integers, not object"),
        ([[0], [0, 1]], None, "indices must be an array or a tensor, not "),
        ([[0]], "a", "weights must be numbers, not 'a'"),
    ):
        with pytest.raises(daedal.UnsupportedOperation, match=message):
            table.bags(quantised, indices, None, weights)
    with pytest.raises(daedal.IndexOutOfRange, match=r"users: .*2"):
        table.bags(quantised, [[0, 2]])
    with pytest.raises(daedal.InvalidOffsets, match="users: the first offset must be 0"):
        table.bags(quantised, [0, 1], [1])
    with (
        daedal.Device.open("emulator", config="edge") as plain,
        pytest.raises(daedal.UnsupportedOperation, match="set quantised = 1 in its configuration"),
    ):
        table.bags(plain, [[0]])
    with (
        daedal.Device.open("emulator", config="edge") as plain,
        pytest.raises(daedal.UnsupportedOperation, match="set bfloat16 = 1 in its configuration"),
    ):
        daedal.quantized.Table.from_rows(bytes(16), format="fbgemm-fp8", rows=1, dim=16).bags(plain, [[0]])
