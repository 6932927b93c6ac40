"""What rows end with, in stages: each row's chain of slow operations beside those of the rows around it."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.library.updates import rowwise_adagrad, rowwise_adagrad_scaled
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3, device

__all__ = ["ddr3", "device"]

B, D, N, P, U = daedal.dims("B D N P U")
ROWS = [0, 1, 2, 3, 4, 17]


@daedal.kernel
def normed(out: f32[U, D], x: f32[U, D], eps: f32):
    """Each row by its norm: a row that waits in the callback itself."""
    for u in range(U):
        scale = 1.0 / (daedal.sqrt(daedal.dot(x[u, :], x[u, :])) + eps)
        for d in range(D):
            out[u, d] = x[u, d] * scale


@daedal.kernel
def centred(out: f32[U, D], x: f32[N, D], idx: i64[U]):
    """Each row without the mean of its squares."""
    for u in range(U):
        mean = daedal.dot(x[idx[u], :], x[idx[u], :]) / 12.0
        for d in range(D):
            out[u, d] = x[idx[u], d] - mean


@daedal.kernel
def normalised(out: f32[B, D], totals: f32[B], x: f32[N, D], weight: f32[P], off: i64[B + 1], idx: i64[P]):
    """The end of a softmax: a sum of rows, divided by that of the weights."""
    for b in range(B):
        row = daedal.zeros(D)
        total = 0.0
        for p in range(off[b], off[b + 1]):
            total += weight[p]
            for d in range(D):
                row[d] += weight[p] * x[idx[p], d]
        share = 1.0 / (total + 1.0)
        totals[b] = total
        for d in range(D):
            out[b, d] = row[d] * share


@daedal.kernel
def distances(out: f32[B], x: f32[N, D], y: f32[B, D], off: i64[B + 1], idx: i64[P]):
    """A number for each sum of rows, which itself is not stored."""
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                row[d] += x[idx[p], d]
        out[b] = daedal.sqrt(daedal.dot(row, y[b, :]) + 1.0) / 3.0


@daedal.kernel
def shares(out: f32[U], x: f32[U, D]):
    """What a loop of single numbers leaves: its callback has scalar registers of its own."""
    for u in range(U):
        greatest = 0.0
        for d in range(D):
            greatest = max(greatest, x[u, d])
        out[u] = 1.0 / (greatest + 1.0)


@daedal.kernel
def roots(out: f32[B, D], weight: f32[P], off: i64[B + 1]):
    """As ``shares``, of bags, with two slow operations, along rows."""
    for b in range(B):
        greatest = 0.0
        for p in range(off[b], off[b + 1]):
            greatest = max(greatest, weight[p])
        for d in range(D):
            out[b, d] = daedal.sqrt(1.0 / (greatest + 1.0))


@daedal.kernel
def running(out: f32[U], x: f32[U, D]):
    """Each row needs what the row before made."""
    greatest = 0.0
    for u in range(U):
        greatest = max(greatest, 1.0 / daedal.dot(x[u, :], x[u, :]))
        out[u] = greatest


def arguments(kernel: KernelFunction, rng: np.random.Generator, rows: int, width: int) -> tuple[Any, ...]:
    table, out, idx = floats(rng, 30, width), np.zeros((rows, width), np.float32), rng.integers(0, 30, 50)
    off = offsets(rng, rows, 50) if rows else np.zeros(1, np.int64)
    idx = idx if rows else idx[:0]
    x, weight = floats(rng, rows, width), abs(floats(rng, len(idx)))
    if kernel in (rowwise_adagrad, rowwise_adagrad_scaled):
        scale = [weight] if kernel is rowwise_adagrad_scaled else []
        rng.shuffle(chosen := np.arange(30))
        return (
            table,
            abs(floats(rng, 30)),
            x,
            *scale,
            chosen[:rows],
            off,
            rng.integers(0, max(rows, 1), len(idx)),
            1e-6,
            -0.1,
        )
    return {
        "normed": (out, x, 1e-6), "centred": (out, table, rng.integers(0, 30, rows)),
        "normalised": (out, out[:, 0].copy(), table, weight, off, idx),
        "distances": (out[:, 0].copy(), table, x, off, idx), "running": (out[:, 0].copy(), x),
        "shares": (out[:, 0].copy(), x), "roots": (out, weight, off),
    }[kernel.name]  # fmt: skip


STAGED = [normed, centred, normalised, distances, shares, roots, rowwise_adagrad, rowwise_adagrad_scaled]


@pytest.mark.parametrize("width", [12, 64, 5])
@pytest.mark.parametrize("kernel", [*STAGED, running], ids=lambda kernel: kernel.name)
def test_as_python(ddr3: daedal.Device, kernel: KernelFunction, width: int, rng: np.random.Generator) -> None:
    for rows in ROWS:
        made = check(ddr3, kernel, *arguments(kernel, rng, rows, width))
        assert (" stages, the last one " in made.explain()) is (kernel in STAGED)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal:stall=0.1,seed=2", "litedram-ddr3-x16"])
@pytest.mark.parametrize("kernel", STAGED, ids=lambda kernel: kernel.name)
def test_on_the_rtl(memory: str, kernel: KernelFunction, rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        for rows, width in ((1, 64), (17, 64), (17, 5)):
            check(rtl, kernel, *arguments(kernel, rng, rows, width))
