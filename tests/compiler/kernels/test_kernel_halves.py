"""Kernels on arrays of f16 and bf16: elements are f32 where they are read, and rounded where they are stored."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal import bf16, f16, f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.hw.isa.spec.binary32 import fused
from tests.compiler.kernels.kernel_support import offsets
from tests.compiler.layers.compiler_support import ddr3
from tests.fuzz.configs import HALVES

__all__ = ["ddr3"]

B, D, N, P = daedal.dims("B D N P")


@pytest.fixture(scope="module")
def halves() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=HALVES) as opened:
        yield opened


def run(device: daedal.Device, kernel: KernelFunction, *arguments: Any) -> None:
    daedal.compile(kernel, arguments, device=device)(*arguments)


def rows(rng: np.random.Generator, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return (torch.from_numpy(rng.standard_normal(shape, np.float32)) * 4).to(dtype)


@daedal.kernel
def bags(out: bf16[B, D], table: bf16[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        acc = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                acc[d] += table[idx[p], d]
        for d in range(D):
            out[b, d] = acc[d]


@pytest.mark.parametrize("width", [16, 5])
def test_sums_are_of_f32(width: int, halves: daedal.Device, rng: np.random.Generator) -> None:
    table, out = rows(rng, torch.bfloat16, 30, width), torch.zeros(9, width, dtype=torch.bfloat16)
    idx, off = rng.integers(0, 30, 60), offsets(rng, 9, 60)
    run(halves, bags, out, table, idx, off)
    expected = torch.zeros(9, width)
    for b in range(9):
        for i in idx[off[b] : off[b + 1]]:
            expected[b] += table[i].float()
    assert torch.equal(out, expected.bfloat16())


@daedal.kernel
def squares(out: f16[B, D], table: f16[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for d in range(D):
            out[b, d] = 0.1
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                x = table[idx[p], d]
                out[b, d] += x * x
        n = max(off[b + 1] - off[b], 1)
        for d in range(D):
            out[b, d] = out[b, d] / n


@pytest.mark.parametrize("opt", [0, 1, 3])
@pytest.mark.parametrize("width", [16, 1, 5, 9, 19])
def test_what_is_stored_again_is_rounded_each_time(
    width: int, opt: int, halves: daedal.Device, rng: np.random.Generator
) -> None:
    """Also where it stays in a register meanwhile, and of a constant."""
    table, out = rows(rng, torch.float16, 30, width).numpy(), np.zeros((20, width), np.float16)
    idx, off = rng.integers(0, 30, 60), offsets(rng, 20, 60)
    expected = np.full((20, width), 0.1, np.float16)
    for b in range(20):
        for i in idx[off[b] : off[b + 1]]:
            x = table[i].astype(np.float32)
            expected[b] = expected[b].astype(np.float32) + x * x
        expected[b] = expected[b].astype(np.float32) / np.float32(max(off[b + 1] - off[b], 1))
    executable = daedal.compile(squares, (out, table, idx, off), device=halves, opt=opt)
    executable(out, table, idx, off)
    assert np.array_equal(out, expected) and "code op=round" in executable.asm()


@daedal.kernel
def mixed(out: f32[B, D], wide: bf16[B, D], a: f16[N, D], b: bf16[N, D], c: f32[N, D], idx: i64[B], w: f32[B]):
    for i in range(B):
        for d in range(D):
            x = daedal.fma(a[idx[i], d], b[idx[i], d], c[idx[i], d] * w[i])
            out[i, d] = x
            wide[i, d] = x


def test_types_that_meet(halves: daedal.Device, rng: np.random.Generator) -> None:
    a, b = rows(rng, torch.float16, 30, 16), rows(rng, torch.bfloat16, 30, 16)
    c, w, idx = rng.standard_normal((30, 16), np.float32), rng.standard_normal(9, np.float32), rng.integers(0, 30, 9)
    out, wide = np.zeros((9, 16), np.float32), torch.zeros(9, 16, dtype=torch.bfloat16)
    run(halves, mixed, out, wide, a, b, c, idx, w)
    expected = fused(a.float().numpy()[idx], b.float().numpy()[idx], c[idx] * w[:, None])
    assert np.array_equal(out, expected) and torch.equal(wide, torch.from_numpy(expected).bfloat16())


@daedal.kernel
def dots(out: f32[B], a: f16[N, D], b: f16[N, D], idx: i64[B]):
    for i in range(B):
        out[i] = daedal.dot(a[idx[i], :], b[i, :])


def test_dots(halves: daedal.Device, rng: np.random.Generator) -> None:
    """Of small integers, which any order of additions gives exactly."""
    a, b = (torch.from_numpy(rng.integers(-9, 9, (30, 16))).half() for _ in range(2))
    out, idx = np.zeros(9, np.float32), rng.integers(0, 30, 9)
    run(halves, dots, out, a, b, idx)
    assert np.array_equal(out, (a[torch.from_numpy(idx)].float() * b[:9].float()).sum(1).numpy())


@daedal.kernel
def chain(out: f32[B], a: f32[B], b: f32[B]):
    for i in range(B):
        x = daedal.fma(a[i], a[i], b[i])
        out[i] = daedal.fma(x, -1.0, 0.5)


def test_fma_of_single_numbers(halves: daedal.Device, rng: np.random.Generator) -> None:
    """As Python computes it: products are not rounded."""
    a, b = (1 + rng.random(40, np.float32) / 4096 for _ in range(2))
    out, expected = np.zeros(40, np.float32), np.zeros(40, np.float32)
    run(halves, chain, out, a, -a * a)
    chain(expected, a, -a * a)
    assert np.array_equal(out, expected) and (expected != 0.5).any() and b.dtype == np.float32


@daedal.kernel
def single(out: f16[B], a: f16[N, D], idx: i64[B]):
    for i in range(B):
        out[i] = daedal.dot(a[idx[i], :], a[i, :])


@daedal.kernel
def weighed(out: f32[B, D], w: f16[B]):
    for i in range(B):
        for d in range(D):
            out[i, d] = w[i]


def test_what_is_refused(halves: daedal.Device, ddr3: daedal.Device) -> None:
    half, idx = torch.zeros(4, 4).half(), np.zeros(4, np.int64)
    for kernel, arguments, what in ((single, (half[0].clone(), half, idx), "out"), (weighed, (idx, half[0]), "w")):
        given = (np.zeros((4, 4), np.float32), half[0]) if kernel is weighed else arguments
        message = rf"'{what}\[i\]' is a single f16: use elements of {what} in loops along its rows, or an array of f32"
        with pytest.raises(daedal.UnsupportedOperation, match=message):
            daedal.compile(kernel, given, device=halves)
    table, off = torch.zeros(4, 4).bfloat16(), np.array([0, 4])
    with pytest.raises(daedal.UnsupportedOperation, match=r"configuration ddr3: rows of bfloat16 need a converter"):
        daedal.compile(bags, (table[:1].clone(), table, idx, off), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match=r"must be of bfloat16 \(bf16\[N, D\]\), not of float16"):
        daedal.compile(bags, (table[:1].clone(), half, idx, off), device=halves)


def test_single_numbers_are_f32() -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="argument 'alpha' is a single number: it must be f32"):

        @daedal.kernel
        def scaled(out: f32[B], alpha: f16):
            for i in range(B):
                out[i] = alpha
