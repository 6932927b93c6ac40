"""A single number that is kept in a row of one element, and is spread along longer rows as it is."""

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.compiler.opt_levels import OPT_LEVELS
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

N, D, P = daedal.dims("N D P")


@daedal.kernel
def by_a_sum(out: f32[N, D], w: f32[N, D], x: f32[P], off: i64[N + 1]):
    for n in range(N):
        total = 0.0
        for p in range(off[n], off[n + 1]):
            total += x[p]
        for d in range(D):
            out[n, d] = w[n, d] * total


@daedal.kernel
def by_what_was_changed(out: f32[N, D], w: f32[N, D], x: f32[N], h: f32[N]):
    for n in range(N):
        h[n] += x[n]
        step = h[n]
        for d in range(D):
            out[n, d] = (w[n, d] - 1.0) * step + step


@daedal.kernel
def with_many_numbers(
    w: f32[N, D], h: f32[N], y: f32[P, D], rows: i64[N], seg: i64[N + 1], alpha: f32
):  # fmt: skip
    """Stages with more single numbers, two of them the same for all rows, than registers that do not rotate."""
    for j in range(N):
        s = daedal.zeros(D)
        for p in range(seg[j], seg[j + 1]):
            for d in range(D):
                s[d] = s[d] + y[p, d]
        h[rows[j]] = daedal.fma(daedal.dot(s, s, partial_sums=8) / D, 0.5, h[rows[j]])
        step = alpha / (daedal.sqrt(abs(h[rows[j]])) + 0.5)
        for d in range(D):
            w[rows[j], d] = daedal.fma(s[d], step, w[rows[j], d])


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_numbers_that_are_the_same_for_all_rows(ddr3: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    w, y = floats(rng, 9, 8), floats(rng, 30, 8)
    check(ddr3, with_many_numbers, w, floats(rng, 9), y, rng.permutation(9), offsets(rng, 9, 30), 0.7, opt=opt)


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("width", [1, 3, 4, 33])
def test_as_python(ddr3: daedal.Device, width: int, opt: int, rng: np.random.Generator) -> None:
    out, w, h = floats(rng, 7, width), floats(rng, 7, width), floats(rng, 7)
    check(ddr3, by_a_sum, out, w, floats(rng, 20), offsets(rng, 7, 20), opt=opt)
    check(ddr3, by_what_was_changed, out, w, floats(rng, 7), h, opt=opt)
