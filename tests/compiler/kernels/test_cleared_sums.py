"""Sums that begin anew for each row, and that products take: once, twice, or beside others that need them."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def once(out: f32[B, D], x: f32[N, D], off: i64[B + 1], idx: i64[P], rate: f32):
    """A product that is added to a row."""
    for b in range(B):
        total = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                total[d] += x[idx[p], d]
        for d in range(D):
            out[b, d] = daedal.fma(total[d], rate, out[b, d])


@daedal.kernel
def squared(out: f32[B, D], x: f32[N, D], off: i64[B + 1], idx: i64[P], rate: f32):
    """Both factors are the sum."""
    for b in range(B):
        total = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                total[d] += x[idx[p], d]
        for d in range(D):
            out[b, d] = total[d] * total[d] + out[b, d]


@daedal.kernel
def again(out: f32[B, D], x: f32[N, D], off: i64[B + 1], idx: i64[P], rate: f32):
    """It is added to its product."""
    for b in range(B):
        total = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                total[d] += x[idx[p], d]
        for d in range(D):
            out[b, d] = daedal.fma(total[d], rate, total[d])


@daedal.kernel
def later(out: f32[B, D], x: f32[N, D], off: i64[B + 1], idx: i64[P], rate: f32):
    """It is a factor of two products, one behind the other."""
    for b in range(B):
        total = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                total[d] += x[idx[p], d]
        for d in range(D):
            out[b, d] = daedal.fma(total[d], daedal.fma(rate, total[d], out[b, d]), out[b, d])


@pytest.mark.parametrize("kernel", [once, squared, again, later], ids=lambda kernel: kernel.name)
def test_as_python(ddr3: daedal.Device, kernel: Any, rng: np.random.Generator) -> None:
    made = check(
        ddr3, kernel, floats(rng, 9, 12), floats(rng, 20, 12), offsets(rng, 9, 40), rng.integers(0, 20, 40), 0.3
    )
    moves = sum(line.count("op=move") and "kind=queue" not in line for line in made.asm().splitlines())
    assert moves <= (kernel is not once) * 2, made.asm()
