"""``daedal.optim.SGD`` trains tables as ``torch.optim.SGD`` does, bit for bit."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from daedal.compiler.frontends.torch.training import steps
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Pooled, Twins, bags, pooled
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60

TABLES = {
    "sparse": {},
    "mean": {"mode": "mean"},
    "padding": {"padding_idx": 3},
    "mean, padding": {"mode": "mean", "padding_idx": 3},
    "dense": {"sparse": False},
    "dense mean": {"sparse": False, "mode": "mean"},
    "dense mean, padding": {"sparse": False, "mode": "mean", "padding_idx": 3},
}


@pytest.mark.parametrize("width", [16, pytest.param(5, marks=pytest.mark.full)])
@pytest.mark.parametrize("options", TABLES.values(), ids=TABLES)
def test_bags_as_pytorch(ddr3: daedal.Device, options: dict[str, Any], width: int) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS, width, **options), ddr3)
    for samples in (16, 17, 200):
        twins.step(bags(ROWS, samples, 7, generator))
        assert twins.model.table.weight.grad is None
        assert twins.optimizer._owners[0].is_ahead
    twins.check()


@pytest.mark.parametrize("is_sparse", [True, False])
def test_weights(ddr3: daedal.Device, is_sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS, sparse=is_sparse), ddr3)
    for samples in (17, 60, 130):
        indices, offsets = bags(ROWS, samples, 7, generator)
        twins.step((indices, offsets, torch.randn(samples, generator=generator)))
    assert twins.optimizer._owners[0].is_ahead
    twins.check()


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("padding", [None, 3])
def test_embeddings(ddr3: daedal.Device, is_sparse: bool, padding: int | None) -> None:
    generator = torch.Generator().manual_seed(1)
    table = nn.Embedding(ROWS, 16, padding_idx=padding, sparse=is_sparse)
    twins = Twins(Pooled(table, 16), ddr3)
    for shape in ((5, 8), (20, 9), (1, 1)):
        twins.step((torch.randint(0, ROWS, shape, generator=generator),))
    assert twins.optimizer._owners[0].is_ahead
    twins.check()


@pytest.mark.parametrize("samples", [16, 17, 32_767, 32_768])
def test_order_of_pytorchs_sort(ddr3: daedal.Device, samples: int) -> None:
    """Which is not stable from 17 to 32,767 elements."""
    one_dense_step(ddr3, samples)


def one_dense_step(device: daedal.Device, samples: int) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(7, 4, sparse=False), device, lr=1.0)
    twins.step(bags(7, samples, samples // 3 + 4, generator))
    twins.check()


def test_a_stable_sort_would_be_noticed(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "sort_order", lambda samples: samples.rows.argsort(kind="stable"))
    for samples in (17, 32_767):
        with pytest.raises(AssertionError):
            one_dense_step(ddr3, samples)


def test_all_bags_empty(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS), ddr3)
    twins.step((torch.zeros(0, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)))
    twins.check()


def test_duplicates_across_bags(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS), ddr3)
    for _ in range(3):
        twins.step((torch.tensor([5, 5, 9, 5, 9, 5, 5]), torch.tensor([0, 2, 2, 5])))
    twins.check()


@pytest.mark.parametrize("is_sparse", [True, False])
def test_two_backward_passes_before_a_step(ddr3: daedal.Device, is_sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS, sparse=is_sparse), ddr3)
    for _ in range(3):
        twins.step(bags(ROWS, 40, 7, generator), bags(ROWS, 25, 5, generator))
    twins.check()


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda rows: rows * 1.5,
    "part of a row": lambda rows: torch.cat([rows, rows.new_ones(*rows.shape[:-1], 1)], -1),
    "transposed": lambda rows: rows.transpose(0, -1).contiguous() * 1.5,
    "one number": lambda rows: rows.sum(),
    "one row": lambda rows: rows.sum(0) * 1.5,
}
"""What is made of rows that were looked up, by how their gradient lies in memory."""


class Laid(nn.Module):
    """A table whose gradient lies in memory as the call says."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4, sparse=True, **options)

    def forward(self, rows: torch.Tensor, layout: str) -> torch.Tensor:
        return LAYOUTS[layout](self.table(rows))


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize(
    "layouts",
    [
        ("contiguous", "part of a row", "contiguous"),
        ("part of a row", "contiguous"),
        ("transposed", "one number"),
        ("one number", "transposed"),
        ("one row", "one row"),
    ],
)
def test_layouts_of_gradients_that_are_added(
    ddr3: daedal.Device, layouts: tuple[str, ...], padding: int | None
) -> None:
    """PyTorch merges sparse gradients whose values are contiguous, and else puts them behind each other."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Laid(padding_idx=padding), ddr3)
    for layout in layouts:
        rows = torch.randint(0, 6, (5, 8), generator=generator)
        outputs = [run(rows, layout) for run in (twins.fast, twins.plain)]
        weights = torch.randn(outputs[0].shape, generator=generator)
        for output in outputs:
            (output if layout == "one number" else (output * weights).sum()).backward()
    assert twins.optimizer._owners[0].has_gradients
    twins.optimizer.step()
    twins.reference.step()
    assert twins.optimizer._owners[0].is_ahead
    twins.check()


def test_steps_without_clearing_gradients(ddr3: daedal.Device) -> None:
    """What is recorded counts until it is cleared, as ``grad`` does, by whomever."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS), ddr3)
    for clears in (False, True):
        twins.backward(*bags(ROWS, 40, 7, generator))
        for _ in range(2):
            twins.optimizer.step()
            twins.reference.step()
        if clears:
            twins.model.zero_grad()
            twins.plain.zero_grad()
    twins.backward(*bags(ROWS, 40, 7, generator))
    for model in (twins.model, twins.plain):
        model.table.weight.grad = None
    twins.backward(*bags(ROWS, 40, 7, generator))
    twins.optimizer.step()
    twins.reference.step()
    twins.check()


def test_bytes_of_a_step(ddr3: daedal.Device) -> None:
    """Indices and gradients go up, results come down; the host's memory of the table is not looked at."""
    generator = torch.Generator().manual_seed(1)
    rows, width, count = 3000, 16, 7
    placed = ddr3.config.superblock_bytes  # in which the inputs of a lookup go up
    twins = Twins(pooled(rows, width), ddr3)
    twins.step(bags(rows, 40, count, generator))
    for number in range(30):
        batch = bags(rows, 40, count, generator)
        uploads, up, down = ddr3.table_uploads, ddr3.bytes_up, ddr3.bytes_down
        twins.step(batch)
        assert ddr3.table_uploads == uploads
        gradients, numbers = count * width * 4, 8 * (2 * 40 + (count + 1) + 3 * 40 + 1)
        assert gradients <= ddr3.bytes_up - up <= gradients + numbers + placed
        assert ddr3.bytes_down - down <= gradients + placed
        if number % 9 == 0:
            twins.model.table.weight.data.fill_(float("nan"))
    twins.check()


class Twice(nn.Module):
    """A table that is looked up twice in a forward pass."""

    def __init__(self, is_sparse: bool) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(ROWS, 16, mode="sum", sparse=is_sparse)

    def forward(self, a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.table(a, offsets) * self.table(b, offsets)
        return found


@pytest.mark.parametrize("is_sparse", [True, False])
def test_a_table_that_is_used_twice(ddr3: daedal.Device, is_sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Twice(is_sparse), ddr3)
    for _ in range(2):
        a, offsets = bags(ROWS, 40, 7, generator)
        twins.step((a, a.flip(0), offsets))
    assert "its table is used twice" in daedal.graphs(ddr3)[-1].explain()
    twins.check()


@pytest.mark.parametrize("is_sparse", [True, False])
def test_two_forward_passes_in_a_backward_pass(ddr3: daedal.Device, is_sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS, sparse=is_sparse), ddr3)
    for _ in range(3):
        a, b = bags(ROWS, 40, 7, generator), bags(ROWS, 25, 7, generator)
        twins.optimizer.zero_grad()
        twins.reference.zero_grad()
        for run in (twins.fast, twins.plain):
            (run(*a) * run(*b)).sum().backward()
        twins.optimizer.step()
        twins.reference.step()
    assert "used twice in a backward pass" in twins.optimizer.explain()
    twins.check()
