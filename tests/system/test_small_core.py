"""The core of ecpix5, a small one: what it runs, on the emulator, on RTL, and in the board's own design."""

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.hw.boards import find_board
from tests.system.compiler_support import random_bags, same_bits, wild_table

SMALL = find_board("ecpix5").config

ROWS, DIM = 30, 9


class Weighted(nn.Module):
    """A weighted bag; its weights are an input."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(table, mode="sum", include_last_offset=True)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.bag(indices, offsets, weights)


def check(device: daedal.Device, rng: np.random.Generator) -> None:
    """Every kind of bag and a gather, equal to PyTorch's bit for bit."""
    table = wild_table(ROWS, DIM, rng)
    inputs = random_bags(ROWS, 6, rng, types=(torch.int64, torch.int64))
    for mode in ("sum", "mean", "max"):
        bag = nn.EmbeddingBag.from_pretrained(table, mode=mode, include_last_offset=True)
        assert same_bits(daedal.compile(bag, inputs, device=device)(*inputs), bag(*inputs)), mode
    weighted, weights = Weighted(table), torch.from_numpy(rng.standard_normal(len(inputs[0]), dtype=np.float32))
    got = daedal.compile(weighted, (*inputs, weights), device=device)(*inputs, weights)
    assert same_bits(got, weighted(*inputs, weights)), "weighted"
    words = nn.Embedding.from_pretrained(table)
    assert same_bits(daedal.compile(words, inputs[:1], device=device)(inputs[0]), words(inputs[0])), "gather"


def test_on_the_emulator(rng: np.random.Generator) -> None:
    with daedal.Device.open("emulator", config=SMALL) as device:
        check(device, rng)


@pytest.mark.rtl
@pytest.mark.slow
def test_on_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config=SMALL, memory="ideal:latency=20,stall=0.2,seed=4") as device:
        check(device, rng)


@pytest.mark.rtl
@pytest.mark.slow
def test_in_the_boards_design(rng: np.random.Generator) -> None:
    with daedal.Device.open("board-sim", config=SMALL, board="ecpix5") as device:
        check(device, rng)
