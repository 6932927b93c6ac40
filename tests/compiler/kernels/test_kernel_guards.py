"""What stands under a condition of integers is not loaded where it does not hold, even with nothing checked."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import check
from tests.compiler.layers.compiler_support import device

__all__ = ["device"]

D, M, N, P = daedal.dims("D M N P")

FAR = (1 << 33) + 5, -(1 << 33) - 5, 1 << 30
"""Indices whose elements are at addresses where no memory is."""


@daedal.kernel
def element(out: f32[N], a: f32[M], idx: i64[N], n: i64):
    for i in range(N):
        if i < n:
            out[i] = a[idx[i]]


@daedal.kernel
def local(out: f32[N], a: f32[M], idx: i64[N], n: i64):
    for i in range(N):
        x = 0.5
        if i < n:
            x = a[idx[i]]
        out[i] = x


@daedal.kernel
def computed(out: f32[N], a: f32[M], idx: i64[N], n: i64):
    for i in range(N):
        if n > i:
            out[i] += a[idx[i] + 1]


@daedal.kernel
def index(out: f32[N], a: f32[M], idx: i64[N], n: i64):
    """What is loaded tells itself whether it is an index."""
    for i in range(N):
        if idx[i] >= 0:
            out[i] = a[idx[i]]


@daedal.kernel
def scaled(out: f32[N, D], a: f32[M], idx: i64[N], t: f32[M, D], n: i64):
    for i in range(N):
        if i < n:
            for d in range(D):
                out[i, d] += a[idx[i]] * t[idx[i], d]


@daedal.kernel
def both(out: f32[N], a: f32[M], idx: i64[N], n: i64):
    for i in range(N):
        if i < n and idx[i] >= 0:
            out[i] = a[idx[i]]


@daedal.kernel
def otherwise(out: f32[N, D], t: f32[M, D], idx: i64[N]):
    for i in range(N):
        if idx[i] < 0:
            for d in range(D):
                out[i, d] = 1.5
        else:
            for d in range(D):
                out[i, d] = t[idx[i], d]


def arguments(kernel: KernelFunction, far: int, rng: np.random.Generator) -> tuple[Any, ...]:
    a, idx = rng.standard_normal(9).astype(np.float32), np.array([1, 2, 3, 0, far, far, far])
    if kernel is index:
        idx = np.array([1, -1, -abs(far), 3, -5, 0, 0])
    if kernel is scaled:
        t = rng.standard_normal((9, 6)).astype(np.float32)
        return np.zeros((7, 6), np.float32), a, idx, t, 4
    return np.zeros(7, np.float32), a, idx, 4


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("kernel", [element, local, computed, index, scaled], ids=lambda kernel: kernel.name)
def test_nothing_is_loaded_where_it_does_not_hold(
    device: daedal.Device, kernel: KernelFunction, far: int, rng: np.random.Generator
) -> None:
    check(device, kernel, *arguments(kernel, far, rng), bounds="none")


def test_where_a_condition_cannot_be_a_loop(device: daedal.Device, rng: np.random.Generator) -> None:
    """Two comparisons take more arithmetic than there is: the loads are done in any case, and explain() says so."""
    executable = check(device, both, *arguments(both, 8, rng), bounds="none")
    assert (
        "`if i < n and idx[i] >= 0:`: loads of single numbers under this condition are done whether or not"
        in executable.explain()
    )
    with pytest.raises(daedal.MemoryFault):
        executable(*arguments(both, FAR[0], rng))
    guarded = daedal.compile(element, arguments(element, 3, rng), device=device, bounds="none")
    assert "whether or not" not in guarded.explain()
    assert "so that nothing is read early" in guarded.explain()


def test_else_beside_what_is_checked(device: daedal.Device, rng: np.random.Generator) -> None:
    """It is a loop of its own, of no iteration or one."""
    t, idx = rng.standard_normal((9, 8)).astype(np.float32), np.array([1, -1, 3, -(1 << 33), 0, 8, 2])
    executable = check(device, otherwise, np.zeros((7, 8), np.float32), t, idx)
    assert "so that nothing is read early" in executable.explain()
    with pytest.raises(daedal.IndexOutOfRange, match=r"element 2 of idx, and must be below 9"):
        executable(np.zeros((7, 8), np.float32), t, np.array([1, -1, 9, 0, 0, 8, 2]))


@pytest.mark.rtl
@pytest.mark.slow
def test_on_the_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        for kernel in (element, computed, scaled):
            assert check(rtl, kernel, *arguments(kernel, FAR[2], rng), bounds="none").stats.cycles > 0
