"""The cores of the boards, small ones: what they run, on the emulator and as RTL in the boards' own designs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.fpga.boards import find_board
from tests.compiler.layers.compiler_support import random_bags, same_bits, wild_table

BOARDS = ("ecpix5", "ulx3s")

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


def fast_line(board: str) -> int:
    """A serial line of ten cycles for each bit: with the board's own, nearly all simulated cycles wait for bytes."""
    return int(find_board(board).clock_hz / 10)


def change(monkeypatch: pytest.MonkeyPatch, board: str, **fields: float) -> None:
    """Another board under the same name."""
    monkeypatch.setattr(f"daedal.fpga.boards.{board}.BOARD", replace(find_board(board), **fields))


@pytest.mark.parametrize("board", BOARDS)
def test_on_the_emulator(board: str, rng: np.random.Generator) -> None:
    with daedal.Device.open("emulator", config=find_board(board).config) as device:
        check(device, rng)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("board", BOARDS)
def test_in_the_boards_design(board: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch, board, baud=fast_line(board))
    with daedal.Device.open("board-sim", config=find_board(board).config, board=board) as device:
        check(device, rng)


def gather(device: daedal.Device, rng: np.random.Generator) -> None:
    """What a core without an execute unit can do, equal to PyTorch's bit for bit, and an error on the way."""
    words = nn.Embedding.from_pretrained(wild_table(ROWS, DIM, rng))
    indices = torch.from_numpy(rng.integers(0, ROWS, 25))
    exe = daedal.compile(words, (indices,), device=device)
    assert same_bits(exe(indices), words(indices))
    with pytest.raises(daedal.errors.IndexOutOfRange, match=f"index {ROWS} is out of range"):
        exe(torch.tensor([ROWS]))
    assert same_bits(exe(indices.int()), words(indices))


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "run"), [("tangnano20k", gather), pytest.param("ulx3s", check, marks=pytest.mark.full)]
)
def test_in_a_clock_domain_of_its_own(
    board: str, run: Callable[..., None], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ``--core-mhz``: channels of memory and registers cross."""
    change(monkeypatch, board, baud=fast_line(board), core_hz=find_board(board).clock_hz / 2)
    with daedal.Device.open("board-sim", config=find_board(board).config, board=board) as device:
        run(device, rng)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("board", ["tangnano20k", "icebreaker"])
def test_what_only_gathers(board: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest boards' own cores have no execute unit."""
    change(monkeypatch, board, baud=fast_line(board))
    with daedal.Device.open("board-sim", config=find_board(board).config, board=board) as device:
        gather(device, rng)
