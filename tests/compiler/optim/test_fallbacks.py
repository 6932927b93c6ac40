"""What puts a table back to PyTorch: the bits are right, and ``explain()`` says why."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Pooled, Twins, bags, loss_of, pooled
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60


def batches(count: int = 4) -> list[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    return [bags(ROWS, 40, 7, generator) for _ in range(count)]


Between = Callable[[nn.Module], Any]

CLIPPED: dict[str, Between] = {
    "norm": lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.01),
    "value": lambda model: nn.utils.clip_grad_value_(list(model.parameters()), 0.001),
}


@pytest.mark.parametrize("clip", CLIPPED.values(), ids=CLIPPED)
def test_clipping(ddr3: daedal.Device, clip: Between) -> None:
    """Of dense gradients: PyTorch clips no others."""
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    first, *others = batches()
    twins.step(first)
    for batch in others:
        twins.optimizer.zero_grad()
        twins.reference.zero_grad()
        twins.backward(*batch)
        found, expected = clip(twins.model), clip(twins.plain)
        assert found == expected
        twins.optimizer.step()
        twins.reference.step()
    assert "its gradient is clipped" in daedal.graphs(ddr3)[-1].explain()
    assert "table.weight: in PyTorch, because its gradient is clipped" in twins.optimizer.explain()
    twins.check()


def test_grad_scaler(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2)]
    for batch in batches():
        for run, optimizer, scaler in zip(
            (twins.fast, twins.plain), (twins.optimizer, twins.reference), scalers, strict=True
        ):
            optimizer.zero_grad()
            scaler.scale(loss_of(run(*batch))).backward()
            scaler.step(optimizer)
            scaler.update()
    assert "GradScaler" in twins.optimizer.explain()
    twins.check()


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks(ddr3: daedal.Device, kind: str) -> None:
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    first, *others = batches()
    twins.step(first)
    for model in (twins.model, twins.plain):
        if kind == "register_hook":
            model.table.weight.register_hook(lambda grad: grad * 2)
        else:
            model.table.weight.register_post_accumulate_grad_hook(doubled)
    for batch in others:
        twins.step(batch)
    assert "it has a hook for its gradient" in daedal.graphs(ddr3)[-1].explain()
    twins.check()


def doubled(parameter: Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(2)


def test_a_hook_between_forward_and_backward(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS, sparse=False), ddr3)
    losses = [loss_of(run(*batches()[0])) for run in (twins.fast, twins.plain)]
    for model in (twins.model, twins.plain):
        model.table.weight.register_hook(lambda grad: grad * 2)
    for loss in losses:
        loss.backward()
    twins.optimizer.step()
    twins.reference.step()
    twins.check()


class Weighted(Pooled):
    def __init__(self) -> None:
        super().__init__(nn.EmbeddingBag(ROWS, 16, mode="sum"), 16)
        self.weights = nn.Parameter(torch.rand(40))

    def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
        found: Tensor = self.top(self.table(indices, offsets, self.weights))
        return found


def test_gradients_of_weights(ddr3: daedal.Device) -> None:
    twins = Twins(Weighted(), ddr3)
    for batch in batches():
        twins.step(batch)
    assert "its weights need a gradient" in daedal.graphs(ddr3)[-1].explain()
    twins.check()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_double_backward(ddr3: daedal.Device) -> None:
    twins = Twins(Pooled(nn.Embedding(ROWS, 16), 16), ddr3)
    inputs = (torch.arange(20).reshape(4, 5) % 7,)
    for run, model in ((twins.fast, twins.model), (twins.plain, twins.plain)):
        loss_of(run(*inputs)).backward(create_graph=True)
        grad = model.table.weight.grad
        assert grad is not None
        (grad**2).sum().backward()
        assert model.table.weight.grad is not None
    twins.optimizer.step()
    twins.reference.step()
    twins.check()


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "max": ({"mode": "max", "sparse": False}, {}, "the gradient of a maximum is PyTorch's"),
    "by frequency": ({"scale_grad_by_freq": True, "sparse": False}, {}, "scale_grad_by_freq"),
    "maximize": ({"sparse": False}, {"momentum": 0.9, "maximize": True}, "with momentum or weight decay that"),
    "fused": ({"sparse": False}, {"weight_decay": 0.1, "fused": True}, "with momentum or weight decay that"),
    "sparse momentum": ({}, {"momentum": 0.9}, "momentum of sparse gradients"),
    "not a number": ({}, {"lr": math.nan}, "the learning rate is nan"),
    "infinite": ({"sparse": False}, {"lr": math.inf}, "the learning rate is inf"),
}


QUICK = ("max", "sparse momentum", "not a number")


@pytest.mark.parametrize(
    "case", [each if each in QUICK else pytest.param(each, marks=pytest.mark.full) for each in OTHERS]
)
def test_other_gradients_and_steps(ddr3: daedal.Device, case: str) -> None:
    table, options, why = OTHERS[case]
    twins = Twins(pooled(ROWS, **table), ddr3, **{"lr": 0.05, **options})
    for batch in batches(3):
        for optimizer in (twins.optimizer, twins.reference):
            optimizer.zero_grad()
        for run in (twins.fast, twins.plain):
            loss_of(run(*batch)).backward()
        twins.optimizer.step()
        twins.reference.step()
    assert why in daedal.graphs(ddr3)[-1].explain()
    assert not any(owner.is_ahead for owner in twins.optimizer._owners)
    twins.check()


def test_maximize_with_sparse_gradients(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS), ddr3, lr=0.01, maximize=True)
    for batch in batches(2):
        twins.step(batch)
    assert twins.optimizer._owners[0].is_ahead
    twins.check()


def test_steps_that_pytorch_refuses(ddr3: daedal.Device) -> None:
    twins = Twins(pooled(ROWS), ddr3, lr=0.1, weight_decay=0.1)
    loss_of(twins.fast(*batches()[0])).backward()
    with pytest.raises(RuntimeError, match="add"):
        twins.optimizer.step()
    for options in ({"lr": -1.0}, {"lr": 0.1, "nesterov": True}):
        with pytest.raises(ValueError, match=r"Invalid|Nesterov"):
            daedal.optim.SGD(pooled(ROWS).parameters(), device=ddr3, **options)  # type: ignore[arg-type]


def test_a_system_does_not_train() -> None:
    with daedal.System.open(tiles=2, target="emulator") as system, daedal.Device.open("emulator") as device:
        model = pooled(ROWS)
        optimizer = daedal.optim.SGD(model.parameters(), lr=0.1, device=device)
        fast = torch.compile(model, backend="daedal", options={"device": system})
        loss_of(fast(*batches()[0])).backward()
        assert "a System does not train" in daedal.graphs(system)[-1].explain()
        with pytest.raises(
            daedal.UnsupportedOperation, match=r"on another device, .*: compile for that, or call opt.rel"
        ):
            daedal.compile(model, batches()[0], device=system)(*batches()[0])
        optimizer.step()
        with torch.no_grad():  # no rows change then: those of the last step
            assert torch.equal(daedal.compile(model, batches()[0], device=system)(*batches()[0]), model(*batches()[0]))
        assert model.table.weight.grad is not None
