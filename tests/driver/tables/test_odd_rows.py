"""Tables whose rows start inside of lines: bags, gathers and kernels over them, and the memory that they take."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32, i64
from daedal.driver.memory.layout import line_pitch, row_pitch
from daedal.hw.config.core import Config
from tests.compiler.layers.compiler_support import same_bits
from tests.system.test_rtl_configs import CONFIGS

RTL = (pytest.mark.rtl, pytest.mark.slow)
OPENED = [
    *(pytest.param((name, "emulator", "ideal"), id=f"{name}-emulator") for name in ("ddr3", "edge", "wide", "minimum")),
    pytest.param(("edge", "verilator", "litedram-ddr3-x16:stall=0.2,seed=1"), id="edge-x16", marks=RTL),
    pytest.param(("small", "verilator", "ideal:latency=30,stall=0.1,seed=2"), id="small-stalls", marks=RTL),
]
B, C, D, N = daedal.dims("B C D N")


@pytest.fixture(scope="module", params=OPENED)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    config, target, memory = request.param
    with daedal.Device.open(target, CONFIGS[config], memory, memory_bytes=1 << 22) as opened:
        yield opened


@pytest.mark.parametrize("dim", [3, 5, 6, 7, 9, 17, 18, 33, 50, 67])
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_bags_and_gathers(device: daedal.Device, dim: int, mode: str) -> None:
    rng = np.random.default_rng(dim)
    bag = nn.EmbeddingBag(701, dim, mode=mode, include_last_offset=True)
    rows = nn.Embedding(701, dim, _weight=bag.weight.detach())
    indices, offsets = torch.from_numpy(rng.integers(0, 701, 60)), torch.tensor([0, 1, 1, 4, 31, 60])
    with torch.no_grad():
        assert same_bits(
            daedal.compile(bag, (indices, offsets), device=device)(indices, offsets), bag(indices, offsets)
        )
        assert same_bits(daedal.compile(rows, (indices,), device=device)(indices), rows(indices))
    (table, *_) = device.tables.values()
    assert table.pitch == row_pitch(4 * dim, device.config) <= line_pitch(4 * dim, device.config)
    for name in list(device.tables):
        device.drop_table(name)


@pytest.mark.parametrize(("row_bytes", "room"), [(20, 20), (24, 24), (36, 36), (68, 68)])
def test_padding_takes_no_memory(row_bytes: int, room: int) -> None:
    with daedal.Device.open("emulator", "ddr3") as opened:
        free = opened.free_bytes
        opened.bind_table("t", np.ones((50_000, row_bytes // 4), np.float32))
        taken = free - opened.free_bytes
        assert 50_000 * room <= taken <= 50_000 * room + 2 * opened.config.superblock_bytes


@daedal.kernel
def columns(out: f32[B, C], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for c in range(C):
            out[b, c] = table[idx[b], c]


@pytest.mark.parametrize(("dim", "width"), [(17, 16), (17, 17), (5, 4), (18, 16), (9, 8), (16, 8)])
def test_kernels_read_parts_of_rows(device: daedal.Device, dim: int, width: int) -> None:
    """Also of a table that is resident, as bags have it."""
    if device.config.levels < 4:
        pytest.skip("kernels are for machines with more levels")
    rng = np.random.default_rng(dim + width)
    bag = nn.EmbeddingBag(40, dim, mode="sum")
    with torch.no_grad():
        indices = torch.arange(12).reshape(3, 4)
        assert same_bits(daedal.compile(bag, (indices,), device=device)(indices), bag(indices))
    table, idx, out = bag.weight.detach(), rng.integers(0, 40, 7), np.zeros((7, width), np.float32)
    run = daedal.compile(columns, (out, table, idx), device=device)
    run(out, table, idx)
    assert np.array_equal(out, table.numpy()[idx, :width])
    for name in list(device.tables):
        device.drop_table(name)


@pytest.mark.parametrize("dim", [64, 66, 98, 130])
def test_rows_of_16_bits_in_tiles(dim: int) -> None:
    """Rows longer than a register are fetched in tiles, which begin at lines, however few bytes an element has."""
    config = replace(Config.preset("edge"), name="edge-halves", binary16=1, bfloat16=1)
    bag = nn.EmbeddingBag(90, dim, mode="sum").half()
    indices = torch.arange(87).reshape(3, 29)
    with daedal.Device.open("emulator", config, memory_bytes=1 << 22) as opened, torch.no_grad():
        found = daedal.compile(bag, (indices,), device=opened)(indices)
        assert torch.equal(found.view(torch.int16), bag(indices).view(torch.int16))
