"""Kernels on rows of u8 and i8: elements are f32 where they are read, and stay one byte on the device."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal import bf16, f32, i8, i64, u8
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.hw.config.core import Config
from daedal.hw.isa.spec.binary32 import fused
from tests.compiler.kernels.kernel_support import offsets
from tests.compiler.layers.compiler_support import ddr3
from tests.fuzz.configs import SMALL, TYPES

__all__ = ["ddr3"]

EDGE = replace(Config.preset("edge"), name="edge-quantised", quantised=1)
ONE_LANE = replace(SMALL, name="small-integers", vector_registers=5, lengths=4, callbacks=8, quantised=1)

B, D, N, P = daedal.dims("B D N P")


@pytest.fixture(
    scope="module", params=[EDGE, TYPES, ONE_LANE, Config.preset("narrow16")], ids=lambda config: config.name
)
def integers(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def edge() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def run(device: daedal.Device, kernel: KernelFunction, *arguments: Any, opt: int = 3) -> None:
    daedal.compile(kernel, arguments, device=device, opt=opt)(*arguments)


def unsigned(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(0, 256, shape).astype(np.uint8)


def signed(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(-128, 128, shape).astype(np.int8)


@daedal.kernel
def scaled(out: f32[B, D], table: u8[N, D], scale: f32[N], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d] * scale[idx[p]]


@pytest.mark.parametrize("opt", [0, 1, 3])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 16, 30, 64])
def test_sums_of_unsigned(width: int, opt: int, integers: daedal.Device, rng: np.random.Generator) -> None:
    """Of any width: what is behind a row in its last granule is no part of it."""
    table, scale = unsigned(rng, 30, width), rng.standard_normal(30, np.float32)
    idx, off = rng.integers(0, 30, 60), offsets(rng, 9, 60)
    out = rng.standard_normal((9, width), np.float32)
    expected = out.copy()
    for b in range(9):
        for i in idx[off[b] : off[b + 1]]:
            expected[b] += table[i].astype(np.float32) * scale[i]
    run(integers, scaled, out, table, scale, idx, off, opt=opt)
    assert np.array_equal(out.view(np.uint32), expected.view(np.uint32))


@daedal.kernel
def mixed(out: f32[B, D], a: i8[N, D], b: u8[N, D], c: f32[B, D], row: i8[D], idx: i64[B]):
    for i in range(B):
        for d in range(D):
            out[i, d] = daedal.fma(a[idx[i], d], b[idx[i], d], c[i, d]) * row[d]


@pytest.mark.parametrize("width", [1, 4, 7, 16])
def test_types_that_meet(width: int, integers: daedal.Device, rng: np.random.Generator) -> None:
    a, b, row = signed(rng, 30, width), unsigned(rng, 30, width), signed(rng, width)
    c, idx, out = rng.standard_normal((9, width), np.float32), rng.integers(0, 30, 9), np.zeros((9, width), np.float32)
    run(integers, mixed, out, torch.from_numpy(a), b, c, row, idx)
    expected = fused(a[idx].astype(np.float32), b[idx].astype(np.float32), c) * row.astype(np.float32)
    assert np.array_equal(out, expected)


@daedal.kernel
def dots(out: f32[B], a: i8[N, D], b: i8[B, D], idx: i64[B]):
    for i in range(B):
        out[i] = daedal.dot(a[idx[i], :], b[i, :])


@pytest.mark.parametrize("width", [1, 6, 16, 64])
def test_dots_of_signed(width: int, integers: daedal.Device, rng: np.random.Generator) -> None:
    a, b, idx, out = signed(rng, 30, width), signed(rng, 9, width), rng.integers(0, 30, 9), np.zeros(9, np.float32)
    run(integers, dots, out, a, b, idx)
    assert np.array_equal(out, (a[idx].astype(np.int64) * b).sum(1))


@daedal.kernel
def whole(out: f32[B, D], a: i8[N, D], b: u8[N, D]):
    for i in range(B):
        for d in range(D):
            out[i, d] = a[i, d] * 1000.0 + b[i, d]


def test_every_number(edge: daedal.Device) -> None:
    """Also zero, which has no sign."""
    a = np.arange(-128, 128).astype(np.int8).reshape(4, 64)
    b = np.arange(256).astype(np.uint8).reshape(4, 64)
    out = np.zeros((4, 64), np.float32)
    run(edge, whole, out, a, b)
    assert np.array_equal(out, a.astype(np.float32) * np.float32(1000) + b)


@daedal.kernel
def long(out: f32[B, D], table: i8[N, D], idx: i64[B]):
    for i in range(B):
        for d in range(D):
            out[i, d] = table[idx[i], d] * 2.0


@pytest.mark.parametrize("width", [260, 300, 1030])
def test_rows_of_several_registers(width: int, edge: daedal.Device, rng: np.random.Generator) -> None:
    table, idx, out = signed(rng, 20, width), rng.integers(0, 20, 9), np.zeros((9, width), np.float32)
    run(edge, long, out, table, idx)
    assert np.array_equal(out, table[idx].astype(np.float32) * 2)


def test_tables_stay_narrow_and_are_uploaded_once(edge: daedal.Device, rng: np.random.Generator) -> None:
    table, idx, out = signed(rng, 20, 64), rng.integers(0, 20, 9), np.zeros((9, 64), np.float32)
    executable = daedal.compile(long, (out, table, idx), device=edge)
    executable(out, table, idx)
    resident = edge.tables["table"]
    assert (resident.dtype, resident.row_bytes, resident.pitch) == ("uint8", 64, 64)
    before = dict(edge.tables)
    executable(out, table, idx)
    assert dict(edge.tables) == before
    table[idx[0], 5] = -77
    executable(out, table, idx)
    assert np.array_equal(out, table[idx].astype(np.float32) * 2) and dict(edge.tables) == before


@pytest.mark.rtl
@pytest.mark.slow
def test_rtl(rng: np.random.Generator) -> None:
    """RTL = emulator, in the same loops."""
    with daedal.Device.open("verilator", config=TYPES) as device:
        for width in (1, 7, 16, 64):
            a, b, row = signed(rng, 30, width), unsigned(rng, 30, width), signed(rng, width)
            c, idx, out = (
                rng.standard_normal((9, width), np.float32),
                rng.integers(0, 30, 9),
                np.zeros((9, width), "f4"),
            )
            run(device, mixed, out, a, b, c, row, idx)
            expected = fused(a[idx].astype(np.float32), b[idx].astype(np.float32), c) * row.astype(np.float32)
            assert np.array_equal(out, expected)


@daedal.kernel
def single(out: f32[B], a: u8[B]):
    for i in range(B):
        out[i] = a[i]


@daedal.kernel
def stored(out: i8[B, D], a: f32[B, D]):
    for i in range(B):
        for d in range(D):
            out[i, d] = a[i, d]


@daedal.kernel
def halved(out: bf16[B, D], a: u8[B, D]):
    for i in range(B):
        for d in range(D):
            out[i, d] = a[i, d] * 0.3


def test_results_of_other_types(rng: np.random.Generator) -> None:
    a, out = unsigned(rng, 9, 12), torch.zeros(9, 12, dtype=torch.bfloat16)
    with daedal.Device.open("emulator", config=TYPES) as device:
        run(device, halved, out, a)
    assert torch.equal(out, (torch.from_numpy(a).float() * 0.3).bfloat16())


def test_what_is_refused(edge: daedal.Device, ddr3: daedal.Device) -> None:
    a, out = np.zeros((4, 8), np.uint8), np.zeros((4, 8), np.float32)
    refused = daedal.UnsupportedOperation
    with pytest.raises(refused, match=r"'a\[i\]' is a single u8: use elements of a in loops along its rows"):
        daedal.compile(single, (out[0], a[0]), device=edge)
    with pytest.raises(refused, match="out holds i8: the machine writes f32, f16 and bf16 only: write one"):
        daedal.compile(stored, (a.view(np.int8), out), device=edge)
    with pytest.raises(refused, match=r"ddr3: rows of 8-bit integers need a converter.*set quantised = 1"):
        daedal.compile(whole, (out, a.view(np.int8), a), device=ddr3)
    with pytest.raises(refused, match=r"argument 'b' must be of uint8 \(u8\[N, D\]\), not of int8"):
        daedal.compile(whole, (out, a.view(np.int8), a.view(np.int8)), device=edge)
    with pytest.raises(refused, match="argument 'n' is a single number: it must be f32"):

        @daedal.kernel
        def number(out: f32[B], n: u8):
            for i in range(B):
                out[i] = n
