"""Optimizers that backward passes run, as TorchRec has them (``apply_optimizer_in_backward``)."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.test_runs import Tables, batch
from tests.compiler.optim.training_steps import bags, compiled, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of other optimizers there
    from torch.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers

__all__ = ["ddr3", "fresh"]


def applied(model: nn.Module, device: daedal.Device, **options: Any) -> tuple[nn.Module, list[Any]]:
    """A twin that PyTorch trains, and the optimizers of the model's parameters, the tables' first."""
    plain = copy.deepcopy(model)
    _apply_optimizer_in_backward(daedal.optim.SGD, model.parameters(), {**options, "device": device})
    _apply_optimizer_in_backward(torch.optim.SGD, plain.parameters(), options)
    return plain, _get_in_backward_optimizers(model)


def check(model: nn.Module, plain: nn.Module, optimizers: list[Any]) -> None:
    for each in optimizers:
        each.sync()
    for (name, a), b in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert same(a.detach(), b.detach()), name


@pytest.mark.parametrize("options", [{}, {"sparse": False}, {"mode": "mean"}], ids=str)
@pytest.mark.parametrize("momentum", [0, 0.9])
def test_as_pytorch(ddr3: daedal.Device, options: dict[str, Any], momentum: float) -> None:
    model, generator = pooled(**options), torch.Generator().manual_seed(1)
    plain, optimizers = applied(model, ddr3, lr=0.05, momentum=momentum)
    fast, uploads = compiled(model, ddr3), ddr3.table_uploads
    for _ in range(4):
        inputs = bags(60, 40, 7, generator)
        losses = [loss_of(run(*inputs)) for run in (fast, plain)]
        assert same(losses[0].detach(), losses[1].detach())
        for each in losses:
            each.backward()
        assert model.table.weight.grad is None
    is_here = not momentum or options.get("sparse") is False
    assert bool(optimizers[0]._owners[0].is_ahead) is is_here
    assert ddr3.table_uploads == uploads + 1 or not is_here
    check(model, plain, optimizers)


def test_several_tables(ddr3: daedal.Device) -> None:
    model, generator = Tables(), torch.Generator().manual_seed(1)
    plain, optimizers = applied(model, ddr3, lr=0.05)
    fast = compiled(model, ddr3)
    for _ in range(3):
        inputs = batch(generator)
        for run in (fast, plain):
            loss_of(run(*inputs)).backward()
    assert sum(owner.is_ahead for each in optimizers for owner in each._owners) == 3
    check(model, plain, optimizers)


def test_a_table_that_is_used_twice(ddr3: daedal.Device) -> None:
    """Two forward passes in a backward pass: one step, of both gradients, which PyTorch adds up."""
    model, generator = pooled(), torch.Generator().manual_seed(1)
    plain, optimizers = applied(model, ddr3, lr=0.05)
    fast = compiled(model, ddr3)
    for _ in range(2):
        inputs = [bags(60, 40, 7, generator) for _ in range(2)]
        for run in (fast, plain):
            (loss_of(run(*inputs[0])) + loss_of(run(*inputs[1]))).backward()
    assert "used twice" in optimizers[0].explain()
    check(model, plain, optimizers)
