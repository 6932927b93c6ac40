"""Copies of optimizers: on the same device, of copies of the parameters, and never in a file."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import bags, compiled, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]


def step(run: Any, optimizer: Any, inputs: Any) -> None:
    optimizer.zero_grad()
    loss_of(run(*inputs)).backward()
    optimizer.step()


@pytest.mark.parametrize("make", [daedal.optim.SGD, daedal.optim.RowWiseAdagrad], ids=lambda make: make.__name__)
def test_a_copy_goes_on_by_itself(ddr3: daedal.Device, make: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = [bags(60, 40, 7, generator) for _ in range(4)]
    model = pooled()
    optimizer = make(model.parameters(), lr=0.05, device=ddr3)
    fast = compiled(model, ddr3)
    step(fast, optimizer, inputs[0])
    twin, other = copy.deepcopy((model, optimizer))
    assert other.device is ddr3 and other.param_groups[0]["params"][0] is twin.table.weight
    step(fast, optimizer, inputs[1])
    before = [each.detach().clone() for each in model.parameters()]
    fast_twin = compiled(twin, ddr3)
    for each in inputs[2:]:
        step(fast_twin, other, each)
    assert [owner.is_ahead for owner in (*optimizer._owners, *other._owners)] == [False, True]
    assert all(map(same, before, [each.detach() for each in model.parameters()]))
    again = pooled()
    reference = make(again.parameters(), lr=0.05, device=ddr3)
    fast_again = compiled(again, ddr3)
    for each in (inputs[0], *inputs[2:]):
        step(fast_again, reference, each)
    assert all(map(same, twin.state_dict().values(), again.state_dict().values()))


@pytest.mark.parametrize(
    "save", [pickle.dumps, copy.copy, lambda each: torch.save(each, io.BytesIO())], ids=["pickle", "copy", "save"]
)
def test_optimizers_are_not_saved_whole(ddr3: daedal.Device, save: Any) -> None:
    optimizer = daedal.optim.SGD(pooled().parameters(), lr=0.05, device=ddr3)
    with pytest.raises(TypeError, match=r"daedal\.optim\.SGD cannot be saved .* save its state_dict\(\)"):
        save(optimizer)
