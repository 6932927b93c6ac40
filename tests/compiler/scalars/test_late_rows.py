"""Sums along rows that the lanes have just made, a row later: what such a sum pops comes a row later too."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.bench.workloads.row_sums import reduced
from daedal.bench.workloads.structured_kernels import distmult, transe
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.runtime.loops.kernel_executable import KernelExecutable
from tests.compiler.kernels.kernel_support import copied, floats, same_bits

D, M, N, T = daedal.dims("D M N T")
ROWS = [0, 1, 2, 3, 4, 17]
LATER = "what a row ends with is done in 3 stages"


@daedal.kernel
def in_order(out: f32[T], x: f32[N, D], y: f32[T, D], heads: i64[T]):
    """The row that comes later is that of the loop's own number, without an index."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += abs(x[heads[t], d]) * y[t, d]
        out[t] = score


@daedal.kernel
def weighed(out: f32[T], x: f32[N, D], weight: f32[T], heads: i64[T], tails: i64[T]):
    """A number goes with the row that comes at once."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += weight[t] * x[heads[t], d] * x[tails[t], d]
        out[t] = score


@daedal.kernel
def same_index(out: f32[T], x: f32[N, D], z: f32[N, D], relations: f32[M, D], heads: i64[T], kinds: i64[T]):
    """One index for a row that comes at once and for one that would come later: nothing is moved."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += x[heads[t], d] * relations[kinds[t], d] * z[heads[t], d]
        out[t] = score


TERMS: dict[KernelFunction, Callable[..., Any]] = {
    distmult: lambda x, r, heads, kinds, tails: x[heads] * r[kinds] * x[tails],
    transe: lambda x, r, heads, kinds, tails: abs(x[heads] + r[kinds] - x[tails]),
    in_order: lambda x, y, heads: abs(x[heads]) * y,
    weighed: lambda x, weight, heads, tails: weight[:, None] * x[heads] * x[tails],
    same_index: lambda x, z, r, heads, kinds: x[heads] * r[kinds] * z[heads],
}
"""What each of them adds up along rows, of its arguments behind the result."""


@pytest.fixture(scope="module", params=["wide", "hbm"])
def machine(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    """Machines whose lanes make a row of 64 elements in less time than an adder takes."""
    with daedal.Device.open("emulator", config=request.param) as opened:
        yield opened


def arguments(kernel: KernelFunction, rng: np.random.Generator, rows: int, width: int) -> tuple[Any, ...]:
    x, relations, out = floats(rng, 30, width), floats(rng, 9, width), np.zeros(rows, np.float32)
    heads, kinds, tails = (rng.integers(0, size, rows) for size in (30, 9, 30))
    return {
        "distmult": (out, x, relations, heads, kinds, tails), "transe": (out, x, relations, heads, kinds, tails),
        "in_order": (out, x, floats(rng, rows, width), heads), "weighed": (out, x, floats(rng, rows), heads, tails),
        "same_index": (out, x, x[::-1].copy(), relations, heads, kinds),
    }[kernel.name]  # fmt: skip


@pytest.mark.parametrize("width", [64, 53])
@pytest.mark.parametrize("kernel", TERMS, ids=lambda kernel: kernel.name)
def test_sums(machine: daedal.Device, kernel: KernelFunction, width: int, rng: np.random.Generator) -> None:
    executable = daedal.compile(kernel, arguments(kernel, rng, 5, width), device=machine)
    for rows in ROWS:
        given = arguments(kernel, rng, rows, width)
        executable(*given)
        terms = TERMS[kernel](*given[1:])
        assert same_bits(given[0], reduced(given[0], lambda part, terms=terms: terms[part]))
        if kernel is distmult:  # each row is fetched once
            assert (executable.stats.rows, executable.stats.lookups) == (3 * rows, 3 * rows)


@pytest.mark.parametrize(
    ("config", "kernel", "width", "is_later"),
    [
        ("wide", distmult, 128, True), ("wide", transe, 64, True), ("wide", in_order, 128, True),
        ("hbm", distmult, 64, True), ("wide", weighed, 128, True),
        ("wide", same_index, 64, False),  # cannot
        ("wide", distmult, 16, False), ("hbm", distmult, 128, False), ("ddr3", distmult, 32, False),  # need not
    ],
)  # fmt: skip
def test_which(config: str, kernel: KernelFunction, width: int, is_later: bool, rng: np.random.Generator) -> None:
    with daedal.Device.open("emulator", config=config) as device:
        given = arguments(kernel, rng, 5, width)
        assert (LATER in daedal.compile(kernel, given, device=device).explain()) is is_later


@pytest.fixture(scope="module", params=["fatal", "warn"])
def scores(request: pytest.FixtureRequest) -> Iterator[tuple[str, KernelExecutable, tuple[Any, ...]]]:
    """DistMult, with arguments of 17 rows, for each way to treat a bad index."""
    with daedal.Device.open("emulator", config="wide") as device:
        given = arguments(distmult, np.random.default_rng(7), 17, 64)
        yield request.param, daedal.compile(distmult, given, device=device, bounds=request.param), given


@pytest.mark.parametrize("place", [0, 1, 2, 15, 16])
@pytest.mark.parametrize("array", ["heads", "kinds", "tails"])
def test_bad_index(scores: tuple[str, KernelExecutable, tuple[Any, ...]], array: str, place: int) -> None:
    bounds, executable, arguments = scores
    bad, replaced = copied(arguments), copied(arguments)
    which = list(distmult.signature.arguments).index(array)
    bad[which][place], replaced[which][place] = 77, 0
    if bounds == "fatal":
        with pytest.raises(daedal.IndexOutOfRange, match=f"index 77 is out of range.*element {place} of {array}"):
            executable(*bad)
        return
    with pytest.warns(UserWarning, match="77"):
        executable(*bad)
    assert executable.stats.bounds_warnings == 1
    executable(*replaced)
    assert bad[0].tobytes() == replaced[0].tobytes()
