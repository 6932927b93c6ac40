"""Bounds modes: what an index outside its table does, on the golden model and on the RTL."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3, device, same_bits, wild_table

__all__ = ["ddr3", "device"]

ROWS = 20
REPLACING = ("warn", "ignore")
EXTREMES = (-1, ROWS, 1 << 31, (1 << 40) + 3, -(1 << 40), -(1 << 63), (1 << 63) - 1)
"""Indices outside the table; the fourth would be inside if only its low 40 bits counted."""


class Watch:
    """What calls return, and what they warn of."""

    def __init__(self, executable: Any) -> None:
        self.executable = executable

    def __call__(self, *inputs: Any) -> tuple[Any, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.executable(*inputs)
        assert {warning.category for warning in caught} <= {daedal.BoundsWarning}
        assert {warning.filename for warning in caught} <= {__file__}
        return result, [str(warning.message) for warning in caught]


def inside(indices: Tensor) -> Tensor:
    """The indices with 0 in the place of those outside the table."""
    return torch.where((indices >= 0) & (indices < ROWS), indices, 0)


def some_outside(rng: np.random.Generator, dtype: torch.dtype, count: int = 60) -> Tensor:
    """Indices, a fifth of them outside the table."""
    indices = torch.from_numpy(rng.integers(0, ROWS, count))
    bad = [value for value in EXTREMES if torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max]
    for position in range(3, count, 5):
        indices[position] = bad[position // 5 % len(bad)]
    return indices.to(dtype)


@pytest.mark.parametrize("bounds", REPLACING)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("width", [1, 4, 16, 64])
def test_row_0_takes_the_place_of_bad_indices(
    device: daedal.Device, width: int, dtype: torch.dtype, bounds: str, rng: np.random.Generator
) -> None:
    for mode in ("sum", "mean", "max"):
        module = nn.EmbeddingBag.from_pretrained(wild_table(ROWS, width, rng), mode=mode)
        indices, offsets = some_outside(rng, dtype), torch.arange(0, 60, 7).to(dtype)
        run = Watch(daedal.compile(module, (indices, offsets), device=device, bounds=bounds))
        result, said = run(indices, offsets)
        assert same_bits(result, module(inside(indices), offsets))
        count = int((indices != inside(indices)).sum())
        assert run.executable.stats.bounds_warnings == count == 12
        assert run.executable.stats.lookups == 60
        assert [text.partition(":")[0] for text in said] == ["embedding_bag of weight"] * (bounds == "warn")
        in_turn = "interleave=1" in run.executable.asm()  # then the first one met may be of another bag than the first
        for text in said:
            found = re.search(
                r"12 lookups of indices that are out of range, the first one met (-?\d+) \(the table", text
            )
            assert found
            assert int(found[1]) in ([*indices[indices != inside(indices)]] if in_turn else [-1])
        clean, said = run(inside(indices), offsets)
        assert same_bits(clean, result)
        assert (said, run.executable.stats.bounds_warnings) == ([], 0)


@pytest.mark.parametrize("bad", EXTREMES)
def test_the_first_index_is_named_whole(ddr3: daedal.Device, bad: int, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(ROWS, 8, rng), mode="sum")
    indices, offsets = torch.tensor([1, bad, 3, 99]), torch.tensor([0])
    run = Watch(daedal.compile(module, (indices, offsets), device=ddr3, bounds="warn"))
    result, (said,) = run(indices, offsets)
    assert f"2 lookups of indices that are out of range, the first one met {bad} (the table" in said
    assert same_bits(result, module(torch.tensor([1, 0, 3, 0]), offsets))
    assert "1 lookup of an index that is out of range" in run(indices[:3], offsets[:1])[1][0]


def test_gathers_weights_padding_and_two_dimensions(device: daedal.Device, rng: np.random.Generator) -> None:
    table = wild_table(ROWS, 12, rng)
    indices = some_outside(rng, torch.int64)
    weights = torch.from_numpy(rng.standard_normal(60).astype(np.float32))
    offsets = torch.arange(0, 60, 9)
    gather, plain = nn.Embedding.from_pretrained(table), nn.EmbeddingBag.from_pretrained(table, mode="mean")
    weighted = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    padded = nn.EmbeddingBag.from_pretrained(table, mode="sum", padding_idx=0)  # row 0 is left out
    cases: list[tuple[nn.Module, tuple[Tensor, ...]]] = [
        (gather, (indices.reshape(5, 12),)),
        (plain, (indices.reshape(6, 10),)),
        (weighted, (indices, offsets, weights)),
        (padded, (indices, offsets)),
    ]
    for module, inputs in cases:
        run = Watch(daedal.compile(module, inputs, device=device, bounds="warn"))
        result, said = run(*inputs)
        assert same_bits(result, module(inside(indices).reshape(inputs[0].shape), *inputs[1:]))
        assert len(said) == 1
        assert run.executable.stats.bounds_warnings == 12


class Three(nn.Module):
    """Three tables, concatenated: one launch."""

    def __init__(self, rng: np.random.Generator, width: int) -> None:
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(wild_table(rows, width, rng), mode="sum") for rows in (50, ROWS, 7)
        )

    def forward(self, indices: list[Tensor], offsets: Tensor) -> Tensor:
        return torch.cat([bag(part, offsets) for bag, part in zip(self.bags, indices, strict=True)], 1)


@pytest.mark.parametrize("width", [4, 40])
def test_lists_of_tables(device: daedal.Device, width: int, rng: np.random.Generator) -> None:
    module, offsets = Three(rng, width), torch.tensor([0, 2])
    indices = [torch.tensor([1, 49, 3, 20]), torch.tensor([1, 2, -6, 3]), torch.tensor([6, 7, 1 << 50, 0])]
    fixed = [indices[0], torch.tensor([1, 2, 0, 3]), torch.tensor([6, 0, 0, 0])]
    run = Watch(daedal.compile(module, (indices, offsets), device=device, bounds="warn"))
    result, (said,) = run(indices, offsets)
    assert same_bits(result, module(fixed, offsets))
    assert run.executable.stats.launches == 1
    assert run.executable.stats.bounds_warnings == 3
    assert said.startswith(
        "embedding_bag_1 of bags.1.weight: 3 lookups of indices that are out of range, the first one met -6 (the table "
        "has 20"
    )
    unchecked = daedal.compile(module, (fixed, offsets), device=device, bounds="none")
    assert same_bits(unchecked(fixed, offsets), result)


@pytest.mark.parametrize("bounds", ["fatal", *REPLACING])
def test_bad_offsets_stop_the_launch_all_the_same(ddr3: daedal.Device, bounds: str) -> None:
    module = nn.EmbeddingBag(ROWS, 4, mode="sum")
    indices = torch.tensor([1, 2, 3, 4])
    executable = daedal.compile(module, (indices, torch.tensor([0, 2])), device=ddr3, bounds=bounds)
    for offsets in ([0, 7, 4], [0, -1, 2], [0, 3, 1]):
        with pytest.raises(daedal.InvalidOffsets):
            executable(indices, torch.tensor(offsets))


def test_fatal_is_the_default(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(ROWS, 4, mode="sum")
    inputs = torch.tensor([1, ROWS]), torch.tensor([0])
    for executable in (
        daedal.compile(module, inputs, device=ddr3),
        daedal.compile(module, inputs, device=ddr3, bounds="fatal"),
    ):
        with pytest.raises(daedal.IndexOutOfRange, match=str(ROWS)):
            executable(*inputs)
    assert "mode=" not in executable.asm().partition("check enable=1")[2].splitlines()[0]


def test_none_checks_nothing(device: daedal.Device, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(ROWS, 16, rng), mode="sum")
    indices, offsets = torch.tensor([1, 2, 3, 4]), torch.tensor([0, 2])
    executable = daedal.compile(module, (indices, offsets), device=device, bounds="none")
    assert "check enable=1" not in executable.asm()
    assert "check" not in executable.ir("scf")
    assert same_bits(executable(indices, offsets), module(indices, offsets))
    assert (executable.stats.lookups, executable.stats.bounds_warnings) == (0, 0)
    with pytest.raises(daedal.MemoryFault):
        executable(torch.tensor([1, 2, 1 << 30, 4]), offsets)  # far behind the end of memory
    assert same_bits(executable(indices, offsets), module(indices, offsets))


@pytest.mark.parametrize("bounds", REPLACING)
def test_a_table_without_rows_has_none_to_take(ddr3: daedal.Device, bounds: str) -> None:
    empty = torch.zeros(0, 4)
    module = nn.EmbeddingBag.from_pretrained(empty, mode="sum")
    indices = torch.tensor([5], dtype=torch.int64)
    executable = daedal.compile(module, (indices, torch.tensor([0])), device=ddr3, bounds=bounds)
    with pytest.raises(daedal.IndexOutOfRange, match=r"embedding_bag of weight: index 5 .* has no rows"):
        executable(indices, torch.tensor([0]))
    assert same_bits(executable(indices[:0], torch.tensor([0, 0])), torch.zeros(2, 4))


@pytest.mark.parametrize("bounds", ["warning", "", None, "FATAL"])
def test_other_names_are_refused(ddr3: daedal.Device, bounds: Any) -> None:
    with pytest.raises(ValueError, match=f"bounds must be one of fatal, warn, ignore, none, not {bounds!r}"):
        daedal.compile(nn.EmbeddingBag(9, 4), (torch.tensor([1]), torch.tensor([0])), device=ddr3, bounds=bounds)


@pytest.fixture(scope="module")
def rtl() -> Iterator[daedal.Device]:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.2,seed=3") as opened:
        yield opened


@pytest.mark.rtl
@pytest.mark.slow
def test_the_rtl_does_as_the_golden_model(rtl: daedal.Device, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    for width, dtype in ((4, torch.int32), (4, torch.int64), (40, torch.int64), (300, torch.int32)):
        module = nn.EmbeddingBag.from_pretrained(wild_table(ROWS, width, rng), mode="mean")
        indices, offsets = some_outside(rng, dtype), torch.arange(0, 60, 7)
        for bounds in REPLACING:
            runs = [Watch(daedal.compile(module, (indices, offsets), device=d, bounds=bounds)) for d in (rtl, ddr3)]
            (result, said), (golden, told) = (run(indices, offsets) for run in runs)
            assert same_bits(result, module(inside(indices), offsets))
            assert same_bits(golden, result)
            assert said == told
            assert len(said) == (bounds == "warn")
            assert runs[0].executable.stats.bounds_warnings == runs[1].executable.stats.bounds_warnings > 0
            _, said = runs[0](inside(indices), offsets)  # nothing is left of the launch before
            assert (said, runs[0].executable.stats.bounds_warnings) == ([], 0)
    for bad in EXTREMES:
        module = nn.EmbeddingBag.from_pretrained(wild_table(ROWS, 8, rng), mode="sum")
        run = Watch(daedal.compile(module, (indices.long(), offsets), device=rtl, bounds="warn"))
        _, (warned,) = run(torch.tensor([1, bad, 99]), torch.tensor([0]))
        assert f"2 lookups of indices that are out of range, the first one met {bad} (" in warned
        fatal = daedal.compile(module, (indices.long(), offsets), device=rtl)
        with pytest.raises(daedal.IndexOutOfRange, match=str(bad)):
            fatal(torch.tensor([1, bad, 99]), torch.tensor([0]))
    unchecked = daedal.compile(module, (indices.long(), offsets), device=rtl, bounds="none")
    with pytest.raises(daedal.MemoryFault):
        unchecked(torch.tensor([1, 1 << 30, 2]), torch.tensor([0]))
    assert same_bits(
        unchecked(torch.tensor([1, 2]), torch.tensor([0])), module(torch.tensor([1, 2]), torch.tensor([0]))
    )
