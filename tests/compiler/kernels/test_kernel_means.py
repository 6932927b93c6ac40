"""Means whose dividend has company: what a bag has in registers for itself does not reach the bags behind it."""

import numpy as np
import pytest

import daedal
from daedal import f32, i64

B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def mean_square(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        acc = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                x = table[idx[p], d]
                acc[d] += x * x
        n = max(off[b + 1] - off[b], 1)
        for d in range(D):
            out[b, d] = acc[d] / n


@pytest.mark.parametrize("config", ["edge", "ddr3", "wide"])
def test_squares(config: str, rng: np.random.Generator) -> None:
    """Each row is in a register of its own before it is multiplied; registers rotate with each quotient."""
    table = rng.standard_normal((50, 16), np.float32)
    lengths = rng.integers(0, 6, 80)
    off = np.concatenate([[0], lengths.cumsum()])
    idx, out = rng.integers(0, 50, off[-1]), np.zeros((80, 16), np.float32)
    expected = np.zeros_like(out)
    for b, length in enumerate(lengths):
        for x in table[idx[off[b] : off[b + 1]]]:
            expected[b] += x * x
        expected[b] /= np.float32(max(length, 1))
    with daedal.Device.open("emulator", config=config) as device:
        executable = daedal.compile(mean_square, (out, table, idx, off), device=device)
        executable(out, table, idx, off)
    assert "store_quotient" in executable.asm() and np.array_equal(out, expected)
