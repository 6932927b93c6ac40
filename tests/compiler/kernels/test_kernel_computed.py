"""Indices that are computed of what was loaded: a block's number times its size, plus a place in it."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import check, offsets
from tests.compiler.layers.compiler_support import device

__all__ = ["device"]

B, D, N, P, S, V = daedal.dims("B D N P S V")


@daedal.kernel
def blocks(out: f32[P, 4, D], k: f32[N, D], col: i64[P]):
    """The rows of the listed blocks."""
    for p in range(P):
        for j in range(4):
            for d in range(D):
                out[p, j, d] = k[col[p] * 4 + j, d]


@daedal.kernel
def shifted(out: f32[P, 4, D], k: f32[N, D], col: i32[P]):
    for p in range(P):
        for j in range(4):
            for d in range(D):
                out[p, j, d] = k[j + (col[p] << 2), d]


@daedal.kernel
def sized(out: f32[P, S, D], k: f32[N, D], col: i64[P]):
    """The size of a block is the call's."""
    for p in range(P):
        for j in range(S):
            for d in range(D):
                out[p, j, d] = k[col[p] * S + j + 1, d]


@daedal.kernel
def scores(out: f32[P, 4], q: f32[V, D], k: f32[N, D], col: i64[P], off: i64[V + 1]):
    """Block-sparse attention's scores, with the blocks one below the other."""
    for v in range(V):
        for p in range(off[v], off[v + 1]):
            for j in range(4):
                out[p, j] = daedal.dot(q[v, :], k[col[p] * 4 + j, :])


def data(kernel: KernelFunction, rows: int, highest: int, rng: np.random.Generator) -> list[Any]:
    """Arguments with ``rows`` rows; the greatest block in the list, its third, is ``highest``."""
    k = rng.integers(-99, 99, (rows, 8)).astype(np.float32)  # whose products are exact, in whatever order they add up
    col = rng.integers(0, max(highest, 1), 6).astype(np.int32 if kernel is shifted else np.int64)
    col[2] = highest
    if kernel is scores:
        q = rng.integers(-99, 99, (3, 8)).astype(np.float32)
        return [np.zeros((6, 4), np.float32), q, k, col, offsets(rng, 3, 6)]
    return [np.zeros((6, 4, 8), np.float32), k, col]


@pytest.mark.parametrize("kernel", [blocks, shifted, sized, scores], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("more", range(4))
def test_the_machine_checks_the_block(
    device: daedal.Device, kernel: KernelFunction, more: int, rng: np.random.Generator
) -> None:
    """Also where the last block is not whole, and the last element not of one."""
    rows = 20 + more + (kernel is sized)
    executable = check(device, kernel, *data(kernel, rows, 4, rng))
    given = data(kernel, rows, 5, rng)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index 5 is out of range.*element 2 of col, and must be below 5"):
        executable(*given)
    assert not given[0].any()
    given[-2 if kernel is scores else -1][2] = -1
    with pytest.raises(daedal.IndexOutOfRange, match=r"index -1 is out of range.*element 2 of col"):
        executable(*given)
    assert "col[p]: checked by the machine" in executable.explain()


@pytest.mark.parametrize("kernel", [blocks, sized], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("rows", [0, 2, 3])
def test_no_whole_block(device: daedal.Device, kernel: KernelFunction, rows: int, rng: np.random.Generator) -> None:
    executable = daedal.compile(kernel, data(kernel, 24, 3, rng), device=device)
    with pytest.raises(daedal.IndexOutOfRange, match=r"element \d of col, and must be below 0"):
        executable(*data(kernel, rows, 0, rng))


def test_row_0_in_its_place(device: daedal.Device, rng: np.random.Generator) -> None:
    given = data(blocks, 20, 4, rng)
    given[-1][3] = 7
    executable = daedal.compile(blocks, given, device=device, bounds="ignore")
    executable(*given)
    given[-1][3] = 0
    assert np.array_equal(given[0], given[1].reshape(5, 4, 8)[given[-1]])
    assert executable.stats.bounds_warnings == 1


@daedal.kernel
def squared(out: f32[P, D], k: f32[N, D], col: i64[P]):
    for p in range(P):
        for d in range(D):
            out[p, d] = k[col[p] * col[p], d]


@daedal.kernel
def backwards(out: f32[P, D], k: f32[N, D], col: i64[P]):
    for p in range(P):
        for d in range(D):
            out[p, d] = k[7 - col[p], d]


@daedal.kernel
def before(out: f32[P, D], k: f32[N, D], col: i64[P]):
    for p in range(P):
        for d in range(D):
            out[p, d] = k[2 * col[p] - 1, d]


@pytest.mark.parametrize("kernel", [squared, backwards, before], ids=lambda kernel: kernel.name)
def test_what_no_check_of_one_value_says(
    device: daedal.Device, kernel: KernelFunction, rng: np.random.Generator
) -> None:
    def given() -> list[Any]:
        return [np.zeros((3, 8), np.float32), rng.standard_normal((9, 8)).astype(np.float32), np.array([1, 2, 1])]

    with pytest.raises(daedal.IndexOutOfRange, match=r"reaches -\d+, but must be from 0 to 8: .*bounds='none'"):
        daedal.compile(kernel, given(), device=device)(*given())
    check(device, kernel, *given(), bounds="none")


@pytest.mark.rtl
@pytest.mark.slow
def test_on_the_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        for kernel in (blocks, scores):
            assert check(rtl, kernel, *data(kernel, 20, 4, rng)).stats.cycles > 0
            with pytest.raises(daedal.IndexOutOfRange, match="must be below 5"):
                daedal.compile(kernel, data(kernel, 20, 4, rng), device=rtl)(*data(kernel, 20, 5, rng))
