"""Kernels whose indices are looked up with loaded indices, arrays without elements, and where refusals point to."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.opt_levels import OPT_LEVELS
from tests.compiler.kernels.kernel_support import HEAD, check, floats, load_kernel, offsets
from tests.compiler.layers.compiler_support import ddr3, device

__all__ = ["ddr3", "device"]

B, D, N, M, P = daedal.dims("B D N M P")


@daedal.kernel
def remapped(out: f32[B, D], table: f32[N, D], remap: i64[M], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[remap[idx[b]], d]


@daedal.kernel
def remapped_beside(out: f32[B, D], table: f32[N, D], remap: i64[M], idx: i32[B], other: i32[B]):
    """One index by way of another array, one as it is."""
    for b in range(B):
        for d in range(D):
            out[b, d] = table[remap[idx[b]], d] + table[other[b], d]


@daedal.kernel
def chosen(out: f32[B, D], table: f32[N, D], bags: i64[B], off: i64[M + 1], idx: i64[P]):
    """Bags by number."""
    for b in range(B):
        for p in range(off[bags[b]], off[bags[b] + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


KERNELS: tuple[KernelFunction, ...] = (remapped, remapped_beside, chosen)


def arguments(kernel: KernelFunction, rng: np.random.Generator) -> tuple[Any, ...]:
    out, table, chosen_ones = floats(rng, 6, 20), floats(rng, 9, 20), rng.integers(0, 5, 6)
    if kernel is chosen:
        return out, table, chosen_ones, offsets(rng, 5, 14), rng.integers(0, 9, 14)
    if kernel is remapped:
        return out, table, rng.integers(0, 9, 5), chosen_ones
    other = rng.integers(0, 9, 6).astype(np.int32)
    return out, table, rng.integers(0, 9, 5), chosen_ones.astype(np.int32), other


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_indices_of_indices(ddr3: daedal.Device, kernel: KernelFunction, opt: int, rng: np.random.Generator) -> None:
    check(ddr3, kernel, *arguments(kernel, rng), opt=opt)
    check(ddr3, kernel, *arguments(kernel, rng), bounds="none", opt=opt)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_on_the_rtl(kernel: KernelFunction, rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        check(rtl, kernel, *arguments(kernel, rng))


def test_each_of_them_is_checked(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = arguments(remapped, rng)
    executable = daedal.compile(remapped, given, device=ddr3)
    assert "remap is checked in a loop of one iteration" in executable.explain()
    for position, limit in ((2, 9), (3, 5)):
        wrong = [each.copy() for each in given]
        wrong[position][:] = 77
        with pytest.raises(daedal.IndexOutOfRange, match=f"index 77 .* must be below {limit}"):
            executable(*wrong)


def test_row_0_takes_the_place_of_each(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    out, table, remap, idx = arguments(remapped, rng)
    remap[3], idx[:3] = 99, (3, -1, 88)
    executable = daedal.compile(remapped, (out, table, remap, idx), device=ddr3, bounds="ignore")
    executable(out, table, remap, idx)
    good = np.where(idx >= 0, idx, 0) % 88
    rows = np.where(remap[good] == 99, 0, remap[good])
    assert np.array_equal(out, table[rows])


def test_arrays_without_columns(device: daedal.Device, tmp_path: Path) -> None:
    """The last dimension bounds no loop along rows: it may be anything."""
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[D, B], table: f32[N, D], idx: i64[B]):\n    for b in range(B):\n"
        "        for d in range(D):\n            out[d, b] = table[idx[b], d]\n",
    )
    rng = np.random.default_rng(1)
    executable = check(device, kernel, floats(rng, 3, 4), floats(rng, 5, 3), rng.integers(0, 5, 4))
    executable(np.zeros((3, 0), np.float32), floats(rng, 5, 3), np.zeros(0, np.int64))


def test_a_division_of_rows_is_refused_with_its_loop(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[N, D], w: f32[N]):\n    k = 2.0\n    for i in range(N):\n"
        "        for d in range(D):\n            out[i, d] = k * x[i, d] / w[i]\n",
    )
    line = HEAD.count("\n") + 4
    with pytest.raises(
        daedal.UnsupportedOperation, match=rf"kernel.py:{line}: `for i in range\(N\):`: loop %i: arith.divf must be by"
    ):
        daedal.compile(
            kernel, (np.ones((3, 8), np.float32), np.ones((3, 8), np.float32), np.ones(3, np.float32)), device=ddr3
        )
