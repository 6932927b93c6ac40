"""Launches of several tables that were made ready: what changes from batch to batch is seen, and said as always."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.runtime.batch.fast_path import FastPath
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table

__all__ = ["ddr3"]


class Tables(nn.Module):
    """Three bags, the last one weighted, side by side; with the first one once more if ``again``."""

    def __init__(self, rng: np.random.Generator, *, again: bool = False) -> None:
        super().__init__()
        self.again = again
        self.bags = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(wild_table(rows, width, rng), mode="sum")
            for rows, width in ((10, 4), (20, 4), (30, 300))
        )

    def forward(self, indices: list[Tensor], offsets: list[Tensor], weights: Tensor) -> Any:
        given: list[Any] = [None, None, weights]
        rows = [
            bag(i, o, per_sample_weights=w) for bag, i, o, w in zip(self.bags, indices, offsets, given, strict=True)
        ]
        joined = torch.cat(rows, 1)
        return (joined, rows[0]) if self.again else joined


def batch(bags: int, rng: np.random.Generator, kind: torch.dtype = torch.int64) -> tuple[Any, ...]:
    lengths = [rng.integers(0, 5, bags) for _ in range(3)]
    offsets = [torch.from_numpy(np.cumsum([0, *each[:-1]])).to(kind) for each in lengths]
    indices = [torch.from_numpy(rng.integers(0, 10, int(each.sum()))).to(kind) for each in lengths]
    return indices, offsets, wild_table(1, len(indices[2]), rng)[0]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each launch that was tried in the short way was one."""
    found: list[bool] = []
    start = FastPath.start

    def counted(self: FastPath, sources: Any, *, are_known: bool = False) -> Any:
        result = start(self, sources, are_known=are_known)
        found.append(result is not None)
        return result

    monkeypatch.setattr(FastPath, "start", counted)
    return found


def test_batches_of_one_kind_take_the_short_way(
    ddr3: daedal.Device, rng: np.random.Generator, starts: list[bool]
) -> None:
    module = Tables(rng)
    executable = daedal.compile(module, batch(4, rng), device=ddr3)
    free = None
    for bags in (4, 9, 1, 30):
        inputs = batch(bags, rng)
        assert same_bits(executable(*inputs), module(*inputs))
        assert executable.stats.launches == 1 and len(executable.kernels) == 3
        assert free in (None, ddr3.free_bytes)
        free = ddr3.free_bytes
    assert starts == [True] * 3
    for tried in (3, 4):  # at first there is another trace
        other = batch(5, rng, torch.int32)
        assert same_bits(executable(*other), module(*other))
        assert starts == [True] * tried
    empty = batch(0, rng)
    assert same_bits(executable(*empty), module(*empty))


def test_what_is_concatenated_is_written_where_it_belongs(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """PyTorch copies no result once more."""
    module = Tables(rng)
    inputs = batch(4, rng)
    executable = daedal.compile(module, inputs, device=ddr3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        result = executable(*inputs)
    assert same_bits(result, module(*inputs))
    assert "aten::cat" not in {event.name for event in profile.events()}


def test_changed_tables_are_uploaded_and_go_on(
    ddr3: daedal.Device, rng: np.random.Generator, starts: list[bool]
) -> None:
    module = Tables(rng)
    inputs = batch(4, rng)
    executable = daedal.compile(module, inputs, device=ddr3)
    for _ in range(2):
        executable(*inputs)
    with torch.no_grad():
        module.get_parameter("bags.1.weight").mul_(3)
    for _ in range(2):
        assert same_bits(executable(*inputs), module(*inputs))
    assert starts == [True, True, True]
    for name in list(ddr3.tables):
        ddr3.drop_table(name)
    for _ in range(2):
        assert same_bits(executable(*inputs), module(*inputs))
    assert starts == [True, True, True, False, True]


def test_errors_name_the_operation(ddr3: daedal.Device, rng: np.random.Generator, starts: list[bool]) -> None:
    module = Tables(rng)
    inputs = batch(4, rng)
    executable = daedal.compile(module, inputs, device=ddr3)
    executable(*inputs)
    indices = [torch.arange(8), torch.arange(8), torch.arange(8)]
    offsets = [torch.arange(0, 8, 2)] * 3
    bad = [indices[0], torch.tensor([0, 1, 2, 20, 3, 4, 5, 6]), indices[2]]
    with pytest.raises(daedal.IndexOutOfRange, match=r"index 20 is out of range .*the table has 20 rows.*number 3"):
        executable(bad, offsets, torch.ones(8))
    assert starts == [True], "the machine found it"
    falling = [offsets[0], torch.tensor([0, 2, 1, 3]), offsets[2]]
    with pytest.raises(daedal.InvalidOffsets, match="offsets must not decrease, but 1 is below"):
        executable(indices, falling, torch.ones(8))
    late = [offsets[0] + 1, *offsets[1:]]
    with pytest.raises(daedal.InvalidOffsets, match="the first offset must be 0, not 1"):
        executable(indices, late, torch.ones(8))
    assert same_bits(executable(*inputs), module(*inputs))


def test_parts_of_a_concatenation_are_copied_when_they_are_there(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = Tables(rng, again=True)
    inputs = batch(4, rng)
    executable = daedal.compile(module, inputs, device=ddr3)
    for _ in range(3):
        inputs = batch(6, rng)
        for ours, theirs in zip(executable.submit(*inputs).result(), module(*inputs), strict=True):
            assert same_bits(ours, theirs)
