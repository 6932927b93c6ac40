"""Nests behind each other, whose local rows may be in the same registers: what one leaves there is no other one's."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import check, floats
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

D, B, N, P, T = daedal.dims("D B N P T")


@daedal.kernel
def kept(out: f32[B, D], sums: f32[D], t: f32[N, D], ends: i64[B], idx: i64[P]):
    """The first one's row is emptied where ``ends`` says so, and else left full; the second one's begins empty."""
    for _ in range(2):
        row = daedal.zeros(D)
        for b in range(B):
            if ends[b] != 0:
                for d in range(D):
                    out[b, d] = row[d]
                    row[d] = 0.0
            for p in range(P):
                for d in range(D):
                    row[d] = t[idx[p], d]
    for _ in range(2):
        total = daedal.zeros(D)
        for p in range(P):
            for d in range(D):
                total[d] += t[idx[p], d]
        for d in range(D):
            sums[d] = total[d]


@daedal.kernel
def blocks(out: f32[B, D], again: f32[B, D], t: f32[N, D], ends: i64[B], idx: i64[P]):
    """Two nests of two rows, of which one is empty behind each block, and the other one is not."""
    for _ in range(2):
        total = daedal.zeros(D)
        part = daedal.zeros(D)
        for b in range(B):
            if ends[b] != 0:
                for d in range(D):
                    out[b, d] = total[d]
                    total[d] = 0.0
            for p in range(P):
                for d in range(D):
                    part[d] += t[idx[p], d]
            for d in range(D):
                total[d] += part[d]
                part[d] = 0.0
    for _ in range(2):
        total = daedal.zeros(D)
        part = daedal.zeros(D)
        for b in range(B):
            if ends[b] != 0:
                for d in range(D):
                    again[b, d] = total[d]
                    total[d] = 0.0
            for p in range(P):
                for d in range(D):
                    part[d] += t[idx[p], d]
            for d in range(D):
                total[d] += part[d]
                part[d] = 0.0


@daedal.kernel
def without_rows(out: f32[B, D], last: f32[B, D], t: f32[N, D], idx: i64[P], ends: i64[B]):
    """The second one's row is read behind no rows at all in the middle of a loop."""
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(P):
            for d in range(D):
                row[d] += t[idx[p], d]
        for d in range(D):
            out[b, d] = row[d] + row[d]
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(ends[b]):
            for d in range(D):
                row[d] = t[idx[p], d] - row[d]
        for d in range(D):
            last[b, d] = row[d] + row[d]


@daedal.kernel
def shared(out: f32[B, D], t: f32[N, D], idx: i64[P]):
    """All runs of the second one's loop read the first one's row, so none has registers of its own."""
    total = daedal.zeros(D)
    for p in range(P):
        for d in range(D):
            total[d] += t[idx[p], d]
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(P):
            for d in range(D):
                row[d] += t[idx[p], d] * total[d]
        for d in range(D):
            out[b, d] = row[d]


@daedal.kernel
def shared_number(out: f32[B, D], sums: f32[D], t: f32[N, D], idx: i64[P], ends: i64[B]):
    """The same of a single number, and the row that the second one ends with."""
    total = 0.0
    for d in range(D):
        total += sums[d]
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(ends[b]):
            for d in range(D):
                row[d] += t[idx[p], d] * total
        for d in range(D):
            out[b, d] = row[d]


KERNELS = {each.__name__: each for each in (kept, blocks, without_rows, shared, shared_number)}


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_nests(ddr3: daedal.Device, rng: np.random.Generator, name: str, opt: int) -> None:
    kernel: KernelFunction = KERNELS[name]
    t, idx = floats(rng, 12, 9), rng.integers(0, 12, 20)
    ends = np.array([0, 0, 1, 0, 1, 0, 3, 0])
    given: dict[str, Any] = {"t": t, "idx": idx, "ends": ends, "sums": floats(rng, 9)}
    arrays = [given.get(each, np.zeros((8, 9), np.float32)) for each in kernel.signature.arguments]
    check(ddr3, kernel, *arrays, opt=opt)
