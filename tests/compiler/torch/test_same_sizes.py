"""Groups with gathers, called again with batches of the same sizes: they are not planned, and all else is as ever."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.runtime.batch.plan import Plan
from tests.compiler.layers.compiler_support import device, same_bits
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["device", "fresh"]


class Mixed(nn.Module):
    """Gathers of rows of several types and widths, bags of each kind, and concatenations of both."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ModuleList([nn.Embedding(20, 8), nn.Embedding(20, 6), nn.Embedding(20, 4, dtype=torch.float64)])
        self.bags = nn.ModuleList([nn.EmbeddingBag(20, 8, mode=mode) for mode in ("sum", "mean", "max")])
        self.weighted = nn.EmbeddingBag(20, 16, mode="sum", include_last_offset=True)

    def forward(self, ids: Tensor, offsets: Tensor, ends: Tensor, weights: Tensor, wide: Tensor) -> list[Tensor]:
        rows = [table(ids) for table in self.rows]
        pooled = [bag(ids, offsets) for bag in self.bags]
        whole = self.weighted(ids, ends, per_sample_weights=weights)
        pairs = torch.cat([self.rows[0](wide), self.rows[1](wide)], -1)
        return [*rows, torch.cat(pooled, 1), pooled[0], whole, self.bags[0](wide), pairs]


def batch(seed: int, count: int = 12) -> tuple[Tensor, ...]:
    """Inputs of sizes that ``count`` decides."""
    made = torch.Generator().manual_seed(seed)
    ids, wide = torch.randint(0, 20, (count,), generator=made), torch.randint(0, 20, (3, 4), generator=made)
    starts = torch.randint(0, count + 1, (3,), generator=made).sort().values
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), starts])
    ends = torch.cat([offsets, torch.tensor([count])])
    return ids, offsets, ends, torch.randn(count, generator=made), wide


def check(executable: Any, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    with torch.no_grad():
        expected = module(*inputs)
    assert all(map(same_bits, executable(*inputs), expected)) and executable.stats.launches == 1


def without_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(*_: object) -> None:
        raise AssertionError("no launch is to be planned")

    monkeypatch.setattr(Plan, "submit", submit)


def test_batches_of_the_same_sizes(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any values and lengths of bags, results that are waited for; with tables that have changed they are planned."""
    module = Mixed()
    executable = daedal.compile(module, batch(0), device=device)
    check(executable, module, batch(0))
    with torch.no_grad():
        module.rows[1].weight.data[3] = 5
    check(executable, module, (torch.full((12,), 3), *batch(9)[1:]))
    without_plans(monkeypatch)
    for seed in range(1, 6):
        check(executable, module, batch(seed))
    submitted = [executable.submit(*batch(seed)) for seed in (7, 8)]
    with torch.no_grad():
        for seed, future in zip((7, 8), submitted, strict=True):
            assert all(map(same_bits, future.result(), module(*batch(seed))))


@pytest.mark.parametrize("count", [0, 1, 40])
def test_batches_of_other_sizes(device: daedal.Device, count: int) -> None:
    module = Mixed()
    executable = daedal.compile(module, batch(0), device=device)
    for each in (12, 12, count, count, 12, 12):
        check(executable, module, batch(each + 3, each))


def test_other_forms(device: daedal.Device) -> None:
    """Tensors that are not contiguous, replaced tables, and weights with another sign in another place."""
    module = Mixed()
    executable = daedal.compile(module, batch(0), device=device)
    for seed in (1, 2):
        check(executable, module, batch(seed))
    ids, offsets, ends, weights, wide = batch(3)
    check(executable, module, (ids, offsets, ends, torch.stack([weights, weights], 1)[:, 0], wide))
    check(executable, module, (ids, offsets, ends, weights, wide.t().contiguous().t()))
    module.rows[0].weight = nn.Parameter(torch.randn(20, 8))
    for seed in (4, 5):
        check(executable, module, batch(seed))


BAD = {
    "index of a gather": (0, 5, 20, daedal.IndexOutOfRange, r"of rows\.\d\.weight: .*20|of bags\.\d\.weight: .*20"),
    "index of a pair": (4, (1, 1), -1, daedal.IndexOutOfRange, r"of (rows|bags)\.\d\.weight: .*-1"),
    "first offset": (1, 0, 1, daedal.InvalidOffsets, "the first offset must be 0, not 1"),
    "last offset": (1, 3, 13, daedal.InvalidOffsets, "the last offset must be at most the number of indices"),
    "order": (1, 1, 12, daedal.InvalidOffsets, "offset"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_inputs_are_named(device: daedal.Device, case: str) -> None:
    """As when they come first; and the next batch is right again."""
    place, position, value, kind, message = BAD[case]
    module = Mixed()
    executable = daedal.compile(module, batch(0), device=device)
    for seed in (1, 2):
        check(executable, module, batch(seed))
    inputs = batch(3)
    inputs[1][1:] = 4
    inputs[place][position] = value
    with pytest.raises(kind, match=message):
        executable(*inputs)
    for seed in (4, 5):
        check(executable, module, batch(seed))


def test_other_tables(device: daedal.Device) -> None:
    """Parameters that are inputs may be others in each call."""
    tables = [nn.Parameter(torch.randn(20, 8), requires_grad=False) for _ in range(3)]
    ids = batch(0)[0]
    module = Layer(lambda a, b, ids: [a.index_select(0, ids), b.index_select(0, ids)])
    executable = daedal.compile(module, (*tables[:2], ids), device=device)
    for first, second in ((0, 1), (0, 1), (1, 2), (2, 2), (1, 2), (1, 2), (0, 1)):
        given = tables[first], tables[second], ids
        expected = [given[0][ids], given[1][ids]]
        assert all(map(same_bits, executable(*given), expected))
