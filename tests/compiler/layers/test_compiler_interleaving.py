"""Bags in turn: where the compiler interleaves, where it must not, and that no bit changes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.compiler.pipeline import compile_scf
from daedal.hw.config.core import Config
from daedal.runtime.request import LONG_FROM
from tests.compiler.layers.compiler_support import ddr3, device, random_bags, same_bits, wild_table

__all__ = ["ddr3", "device"]

INTERLEAVES, DEALS = "interleave=1", "deal=1"
LONGEST = {DEALS: 20, INTERLEAVES: 60}
"""How bags come in turn, and the longest of those that do so on average."""


def bags(rows: int, width: int, rng: np.random.Generator, mode: str, *, count: int = 40, longest: int = 20) -> Any:
    """A layer and inputs for it."""
    module = nn.EmbeddingBag.from_pretrained(
        wild_table(rows, width, rng), mode=mode, include_last_offset=True, padding_idx=1
    )
    return module, random_bags(rows, count, rng, longest=longest, types=(torch.int64, torch.int64))


@pytest.mark.parametrize("how", LONGEST)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 16])
def test_narrow_rows_come_from_bags_in_turn(
    device: daedal.Device, width: int, mode: str, how: str, rng: np.random.Generator
) -> None:
    module, inputs = bags(50, width, rng, mode, longest=LONGEST[how])
    executable = daedal.compile(module, inputs, device=device)
    fits = -(-width // device.config.lanes) <= device.config.context_beats
    assert [way in executable.asm() for way in LONGEST] == [fits and way == how for way in LONGEST]
    assert same_bits(executable(*inputs), module(*inputs))


@pytest.mark.parametrize("how", LONGEST)
def test_weights_stay_with_their_rows(device: daedal.Device, how: str, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(30, 4, rng), mode="sum", include_last_offset=True)
    indices, offsets = random_bags(30, 50, rng, longest=LONGEST[how], types=(torch.int32, torch.int32))
    weights = torch.from_numpy(rng.standard_normal(len(indices)).astype(np.float32))
    executable = daedal.compile(module, (indices, offsets, weights), device=device)
    assert how in executable.asm()
    assert same_bits(executable(indices, offsets, weights), module(indices, offsets, weights))


@pytest.mark.parametrize(
    "lengths",
    [[0], [5], [0] * 20, [300, 1, 1, 1], [1] * 30, [0, 0, 7] * 9, [64] * 8, [100, 3] * 7, [900] + [1] * 900 + [0, 500]],
)
def test_bags_of_very_different_lengths(ddr3: daedal.Device, lengths: list[int], rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(30, 4, rng), mode="sum", include_last_offset=True)
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
    indices = torch.from_numpy(rng.integers(0, 30, sum(lengths)))
    executable = daedal.compile(module, (indices, offsets), device=ddr3)
    assert same_bits(executable(indices, offsets), module(indices, offsets))


@pytest.mark.parametrize(("lengths", "streams"), [
    ([1] * 40, False), ([15, 17] * 20, False), ([15, 17] * 20 + [17], True), ([0] * 30 + [465], False), ([], True),
])  # fmt: skip
def test_the_mean_length_decides_how_bags_come_in_turn(
    ddr3: daedal.Device, lengths: list[int], streams: bool, rng: np.random.Generator
) -> None:
    """With a stream of its own, each bag reads a line of indices for itself."""
    module = nn.EmbeddingBag.from_pretrained(wild_table(30, 4, rng), mode="mean", include_last_offset=True)
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    indices = torch.from_numpy(rng.integers(0, 30, sum(lengths)))
    executable = daedal.compile(module, (indices, offsets), device=ddr3)
    assert (INTERLEAVES in executable.asm(), DEALS in executable.asm()) == (streams, not streams)
    assert same_bits(executable(indices, offsets), module(indices, offsets))


class Pair(nn.Module):
    """Two tables, pooled in one launch."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.one, self.two = (
            nn.EmbeddingBag.from_pretrained(wild_table(30, width, rng), mode="sum", include_last_offset=True)
            for width in (4, 8)
        )

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Both sums, side by side."""
        return torch.cat([self.one(indices, offsets), self.two(indices, offsets)], dim=1)


@pytest.mark.parametrize("tables", [1, 2])
def test_a_batch_of_short_bags_between_others(ddr3: daedal.Device, tables: int, rng: np.random.Generator) -> None:
    """Each has its program, which stays; a launch that was made ready for the one is not used for the other."""
    pair = Pair(rng)
    module: nn.Module = pair if tables == 2 else pair.one
    executable: Any = None
    programs = []
    for length in (17, 1, 1, 20, 17, 16, 2, 1):
        offsets = torch.arange(0, 40 * length + 1, length)
        indices = torch.from_numpy(rng.integers(0, 30, 40 * length))
        executable = executable or daedal.compile(module, (indices, offsets), device=ddr3)
        assert same_bits(executable(indices, offsets), module(indices, offsets))
        assert (INTERLEAVES in executable.asm()) == (length > 16)
        programs.append(executable.program)
    assert len(set(programs)) == 2


def in_turn(executable: Any) -> list[str]:
    """What explain() says of bags in turn."""
    return [line for line in executable.explain().splitlines() if "come in turn" in line]


def test_explain_says_which_bags(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module, inputs = bags(50, 4, rng, "sum")
    executable = daedal.compile(module, inputs, device=ddr3)
    (line,) = in_turn(executable)
    count = max(ddr3.config.contexts)
    assert line.endswith(f"code generation: loop %p: its runs for up to {count} iterations of loop %b come in turn")
    assert not in_turn(daedal.compile(module, inputs, device=ddr3, opt=2))


@pytest.mark.parametrize("width", [17, 20, 64])
def test_rows_as_long_as_the_adder_come_one_bag_after_the_other(
    ddr3: daedal.Device, width: int, rng: np.random.Generator
) -> None:
    module, inputs = bags(50, width, rng, "sum")
    executable = daedal.compile(module, inputs, device=ddr3)
    assert INTERLEAVES not in executable.asm() and DEALS not in executable.asm() and not in_turn(executable)


def test_a_machine_without_contexts(rng: np.random.Generator) -> None:
    config = replace(Config.preset("ddr3"), contexts=(), dealt_bundles=0, name="plain")
    module, inputs = bags(50, 4, rng, "sum")
    with daedal.Device.open("emulator", config=config) as plain:
        executable = daedal.compile(module, inputs, device=plain)
        assert INTERLEAVES not in executable.asm() and DEALS not in executable.asm()
        assert same_bits(executable(*inputs), module(*inputs))


def test_a_machine_that_deals_nothing(rng: np.random.Generator) -> None:
    config = replace(Config.preset("ddr3"), dealt_bundles=0, name="streams")
    module, inputs = bags(50, 4, rng, "sum")
    with daedal.Device.open("emulator", config=config) as device:
        executable = daedal.compile(module, inputs, device=device)
        assert INTERLEAVES not in executable.asm() and DEALS not in executable.asm()
        assert same_bits(executable(*inputs), module(*inputs))


SUMS = """
builtin.module {
  func.func @main(%t: memref<?x4xf32, strided<[?, 1]>>, %i: memref<?xi32>, %o: memref<?xi32>, %m: memref<?xi32>,
                  %out: memref<?x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %n = memref.dim %m, %c0 : memref<?xi32>
    scf.for %b = %c0 to %n step %c1 {
      %next = arith.addi %b, %c1 : index
      %s0 = memref.load %o[%b] : memref<?xi32>
      %s = arith.index_cast %s0 : i32 to index
      %e0 = memref.load %o[%next] : memref<?xi32>
      %e = arith.index_cast %e0 : i32 to index
      %r0 = memref.load %m[%b] : memref<?xi32>
      %r = arith.index_cast %r0 : i32 to index
      scf.for %p = %s to %e step %c1 {
        scf.for %d = %c0 to %c4 step %c1 {
          %k0 = memref.load %i[%p] : memref<?xi32>
          %k = arith.index_cast %k0 : i32 to index
          %x = memref.load %t[%k, %d] : memref<?x4xf32, strided<[?, 1]>>
          %a = memref.load %out[TARGET, %d] : memref<?x4xf32>
          %z = arith.addf %a, %x : f32
          memref.store %z, %out[TARGET, %d] : memref<?x4xf32>
        }
      }
    }
    func.return
  }
}"""
"""Sums of rows, each added to a row of the output."""


def test_loops_interleave_as_layers_do() -> None:
    config = Config.preset("ddr3")
    assert INTERLEAVES in daedal.disassemble(compile_scf(SUMS.replace("TARGET", "%b"), config).program)


@pytest.fixture(scope="module", params=["ideal", "ideal:stall=0.3,seed=5", "ideal:latency=300,lines=4"])
def rtl(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open("verilator", config="ddr3", memory=request.param) as opened:
        yield opened


@pytest.mark.rtl
@pytest.mark.slow
def test_the_rtl_interleaves(rtl: daedal.Device, rng: np.random.Generator) -> None:
    """Many bags of all lengths, and several launches, so that contexts and entries are used again and again."""
    for width, mode, longest in ((4, "sum", 40), (1, "mean", 9), (16, "max", 100), (3, "sum", 6), (1, "max", 2)):
        module, inputs = bags(500, width, rng, mode, count=120, longest=longest)
        executable = daedal.compile(module, inputs, device=rtl)
        assert (INTERLEAVES if len(inputs[0]) > LONG_FROM * 120 else DEALS) in executable.asm()
        assert same_bits(executable(*inputs), module(*inputs))
