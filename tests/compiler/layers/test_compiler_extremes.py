"""Maxima, minima and products by destination: at every level, on the golden model and on RTL, bit for bit."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.frontends.requests.extremes import extreme_request
from daedal.compiler.frontends.requests.reductions import destination_request
from daedal.compiler.interpreters import interpret
from daedal.compiler.opt_levels import OPT_LEVELS
from daedal.compiler.pipeline import compile_emb
from daedal.runtime.operations import Bag
from tests.compiler.layers.compiler_support import ddr3, device
from tests.compiler.orders.order_support import executable, run
from tests.reference.layers import SPECIAL

__all__ = ["ddr3", "device"]

Array = NDArray[Any]

MODES = ("max", "min", "prod")
LENGTHS = np.array([0, 3, 1, 0, 17, 2, 40, 5])
KEYS = np.repeat(np.arange(len(LENGTHS)), LENGTHS)


def rows(width: int, rng: np.random.Generator) -> Array:
    """Numbers about 1, a third of them zeros, infinities, NaN and subnormals."""
    values = rng.choice([-1, 1], (20, width)) * np.exp2(rng.uniform(-1, 1, (20, width)))
    return np.where(rng.random((20, width)) < 0.3, rng.choice(SPECIAL, (20, width)), values).astype(np.float32)


def expected(table: Array, indices: Array, mode: str) -> Array:
    """The rule, bag by bag."""
    found = np.full((len(LENGTHS), table.shape[1]), 1.0 if mode == "prod" else 0.0, np.float32)
    with np.errstate(all="ignore"):
        for bag, taken in enumerate(np.split(indices, LENGTHS.cumsum()[:-1])):
            for n, row in enumerate(table[taken]):
                total = found[bag]
                is_taken = np.full(len(row), True) if not n else row > total if mode == "max" else row < total
                found[bag] = total * row if mode == "prod" else np.where(is_taken, row, total)
    return found


def same(ours: Array, theirs: Array) -> bool:
    """Whether two results have the same bits, but for those of NaN."""
    alike = (ours.view(np.int32) == theirs.view(np.int32)) | (np.isnan(ours) & np.isnan(theirs))
    return ours.shape == theirs.shape and bool(alike.all())


@pytest.mark.parametrize("width", [1, 7, 64, 300])
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_every_width(device: daedal.Device, rng: np.random.Generator, mode: str, width: int) -> None:
    table, indices = rows(width, rng), rng.integers(0, 20, len(KEYS))
    request = destination_request("op", table, indices, None, KEYS, len(LENGTHS), mode)
    for results in (run(device, request), run(device, request, request)):
        assert all(same(each, expected(table, indices, mode)) for each in results)


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_every_level(ddr3: daedal.Device, rng: np.random.Generator, mode: str, opt: int) -> None:
    kernel = compile_emb(build(Bag(mode, 8, 64, 64)), ddr3.config, opt=opt)
    table, indices = rows(8, rng), rng.integers(0, 20, len(KEYS))
    given = {"table": table, "indices": indices, "offsets": np.concatenate([[0], LENGTHS.cumsum()])}
    for level in kernel.levels:
        if level != "mach":
            out = interpret(kernel.ir(level), {**given, "out": np.zeros((len(LENGTHS), 8), np.float32)})["out"]
            assert same(out, expected(table, indices, mode)), level


@pytest.mark.rtl
def test_on_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        table, indices = rows(20, rng), rng.integers(0, 20, len(KEYS))
        made = [destination_request(mode, table, indices, None, KEYS, len(LENGTHS), mode) for mode in MODES]
        for mode, result in zip(MODES, run(rtl, *made), strict=True):
            assert same(result, expected(table, indices, mode)), mode


def test_what_nothing_goes_to_is_filled_also_in_one_launch(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, indices = np.abs(rng.standard_normal((20, 16))).astype(np.float32), rng.integers(0, 20, len(KEYS))
    fills = {"max": -3e38, "min": 3e38, "prod": 1.0}
    made = [
        extreme_request(mode, table, indices, KEYS, len(LENGTHS), mode, empty=empty) for mode, empty in fills.items()
    ]
    runs = executable(ddr3)
    for (mode, empty), result in zip(fills.items(), runs(*made), strict=True):
        wanted = np.where(LENGTHS[:, None] == 0, np.float32(empty), expected(table, indices, mode))
        assert same(result, wanted), mode
    assert runs.stats.launches == 1


@pytest.mark.parametrize(
    ("values", "mode", "is_bounded", "reason"),
    [
        ([1, np.nan], "max", False, "free of NaN for a maximum"),
        ([0.0, -0.0], "min", False, r"must not have \+0.0 and -0.0 for a minimum"),
        ([1, np.inf], "min", True, "must be finite for a minimum that begins with a finite number"),
    ],
)
def test_rows_that_are_refused(values: list[float], mode: str, reason: str, *, is_bounded: bool) -> None:
    table = np.array([values, values], np.float32)
    keys = np.zeros(2, np.int64)
    with pytest.raises(daedal.UnsupportedOperation, match=f"^op: rows .*{reason}"):
        extreme_request("op", table, None, keys, 1, mode, empty=0.0, is_bounded=is_bounded)
    extreme_request("op", table[:, :1], None, keys, 1, mode, empty=0.0, is_bounded=is_bounded)
    half = table.astype(np.float16)
    with pytest.raises(daedal.UnsupportedOperation, match=r"^op: the table must be of float32 for mode prod: convert"):
        extreme_request("op", half, None, keys, 1, "prod", empty=1.0)
