"""Gathers of rows that are longer than what the machine copies at once: 1 MiB and more."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import daedal
from daedal import f32, i64
from daedal.compiler.transforms.tile_columns import LONGEST_COPY
from daedal.hw.isa.words import SIZE_BITS
from tests.compiler.layers.compiler_support import same_bits
from tests.compiler.torch.dynamo_support import Layer

B, D, N = daedal.dims("B D N")
MIB = 1 << 18
"""Elements of a row of 1 MiB."""

INDICES = torch.tensor([2, 0, 2])


@daedal.kernel
def taken(out: f32[B, D], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


def looked_up(indices: Tensor, table: Tensor) -> Tensor:
    return functional.embedding(indices, table)


def selected(indices: Tensor, table: Tensor) -> Tensor:
    return table.index_select(0, indices)


def indexed(indices: Tensor, table: Tensor) -> Tensor:
    return table[indices.view(1, -1)]


def gathered(indices: Tensor, table: Tensor) -> Tensor:
    return torch.gather(table, 0, indices.view(-1, 1).expand(-1, table.shape[1]))


def rows_of(width: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((3, width), np.float32))


def test_a_copy_is_shorter_than_the_machines_longest() -> None:
    assert 4 * LONGEST_COPY < 1 << SIZE_BITS


@pytest.mark.parametrize("config", ["minimum", "ddr3"])
def test_rows_of_a_mebibyte(config: str) -> None:
    table = rows_of(MIB)
    with daedal.Device.open("emulator", config=config) as device:
        for layer in (looked_up, selected, indexed, gathered):
            executable = daedal.compile(Layer(layer), (INDICES, table), device=device)
            assert same_bits(executable(INDICES, table), layer(INDICES, table))
            assert executable.stats.launches == 1
        out = torch.zeros(3, MIB)
        daedal.compile(taken, (out, table, INDICES), device=device)(out, table, INDICES)
        assert same_bits(out, table[INDICES])


@pytest.mark.parametrize("width", [LONGEST_COPY, LONGEST_COPY + 1, MIB - 1, 2 * MIB + 17])
def test_rows_around_that(width: int) -> None:
    table = rows_of(width)
    with daedal.Device.open("emulator", config="edge") as device:
        executable = daedal.compile(Layer(looked_up), (INDICES, table), device=device)
        assert same_bits(executable(INDICES, table), table[INDICES])


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("config", ["edge", pytest.param("ddr3", marks=pytest.mark.full)])
def test_rows_of_a_mebibyte_on_the_rtl(config: str) -> None:
    table, indices = rows_of(MIB + 5)[:2], torch.tensor([1])
    layers: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (looked_up,)
    with daedal.Device.open("verilator", config=config, memory="ideal") as device:
        for layer in layers:
            executable = daedal.compile(Layer(layer), (indices, table), device=device)
            assert same_bits(executable(indices, table), layer(indices, table))


@daedal.kernel
def two_widths(out: f32[B, D], small: f32[B, 4], table: f32[N, D], rows: f32[N, 4], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]
        for d in range(4):
            small[b, d] = rows[idx[b], d]


def test_long_rows_beside_short_ones() -> None:
    table, rows = rows_of(MIB), rows_of(4)
    out, small = torch.zeros(3, MIB), torch.zeros(3, 4)
    with daedal.Device.open("emulator", config="ddr3") as device:
        with pytest.raises(daedal.UnsupportedOperation, match="copy them in loops of their own"):
            daedal.compile(two_widths, (out, small, table, rows, INDICES), device=device)
