"""Ways to read a table that a device has, and to ask for its gradient, beside the common ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Twins, bags, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60


def batches(count: int) -> list[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    return [bags(ROWS, 40, 7, generator) for _ in range(count)]


READERS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add_": lambda other, weight: other.mul_(0.5).add_(weight, alpha=0.5),
    "copy_": lambda other, weight: other.copy_(weight),
    "setitem": lambda other, weight: other.__setitem__(slice(None), weight),
    "foreach": lambda other, weight: torch._foreach_lerp_([other], [weight], 0.25),
    "keyword": lambda other, weight: other.add_(other=weight),
    "out": lambda other, weight: torch.add(other, weight, out=other),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_is_written_from_a_table(ddr3: daedal.Device, read: Callable[[Tensor, Tensor], Any]) -> None:
    """Whatever is changed in place by them gets the device's rows (averages of parameters)."""
    twins = Twins(pooled(ROWS), ddr3)
    twins.step(batches(1)[0])
    assert twins.optimizer._owners[0].is_ahead
    others = [torch.full((ROWS, 16), 0.5) for _ in range(2)]
    with torch.no_grad():
        for other, model in zip(others, (twins.model, twins.plain), strict=True):
            read(other, model.table.weight)
    assert same(*others)


def test_how_a_table_is_shown(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS), ddr3)
    twins.step(batches(1)[0])
    assert repr(twins.model.table.weight) == repr(twins.plain.table.weight)


@pytest.mark.parametrize("is_sparse", [True, False])
def test_gradients_that_are_asked_for(ddr3: daedal.Device, is_sparse: bool) -> None:
    """``torch.autograd.grad`` gives them, and no step takes them."""
    twins = Twins(pooled(ROWS, sparse=is_sparse), ddr3)
    first, second, third = batches(3)
    twins.step(first)
    found = [
        torch.autograd.grad(loss_of(run(*second)), list(model.parameters()))
        for run, model in ((twins.fast, twins.model), (twins.plain, twins.plain))
    ]
    for a, b in zip(*found, strict=True):
        assert same(a.to_dense(), b.to_dense())
    for optimizer in (twins.optimizer, twins.reference):
        optimizer.zero_grad()
        optimizer.step()
    twins.step(third)
    twins.check()


def test_gradients_that_a_user_sets(ddr3: daedal.Device) -> None:
    """They take the place of what was recorded."""
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    for batch in batches(2):
        twins.backward(*batch)
        for model in (twins.model, twins.plain):
            model.table.weight.grad = torch.ones(ROWS, 16)
        twins.optimizer.step()
        twins.reference.step()
    twins.check()


def test_backward_passes_for_some_parameters(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    for batch in batches(2):
        for run, model in ((twins.fast, twins.model), (twins.plain, twins.plain)):
            model.zero_grad()
            loss = loss_of(run(*batch))
            loss.backward(inputs=[model.top.weight], retain_graph=True)
            loss.backward(inputs=[model.table.weight], retain_graph=True)
            loss.backward()
        assert twins.model.table.weight.grad is None
        twins.optimizer.step()
        twins.reference.step()
    twins.check()


def test_forward_passes_that_are_not_compiled(ddr3: daedal.Device) -> None:
    """``explain()`` says that gradients did not come to the device: so it is when Dynamo has given up, too."""
    twins = Twins(pooled(ROWS), ddr3)
    for run, passed_by in ((twins.fast, False), (twins.model, True), (twins.fast, False)):
        twins.optimizer.zero_grad()
        twins.reference.zero_grad()
        for each in (run, twins.plain):
            loss_of(each(*batches(1)[0])).backward()
        twins.optimizer.step()
        twins.reference.step()
        assert ("recompile_limit" in twins.optimizer.explain()) is passed_by
    twins.check()


class Tied(nn.Module):
    """A table that a layer has as its weights too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table = nn.Embedding(ROWS, 16)
        self.top = nn.Linear(16, ROWS, bias=False)
        self.top.weight = self.table.weight

    def forward(self, indices: Tensor) -> Tensor:
        found: Tensor = self.top(self.table(indices).sum(1))
        return found


def test_a_table_that_a_layer_shares(ddr3: daedal.Device) -> None:
    rng = np.random.default_rng(1)
    twins = Twins(Tied(), ddr3, lr=0.001)
    for _ in range(3):
        twins.step((torch.from_numpy(rng.integers(0, ROWS, (6, 4))),))
    twins.check()
