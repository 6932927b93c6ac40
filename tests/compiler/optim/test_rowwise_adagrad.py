"""``daedal.optim.RowWiseAdagrad`` by FBGEMM's rule, in NumPy; ``tests/frameworks`` has FBGEMM itself."""

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Pooled, bags, compiled, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS, LR, EPS = 60, 0.05, 1e-6
F32 = np.float32
Rows = NDArray[np.float32]


def rule(table: Rows, state: Rows, samples: NDArray[np.int64], gradients: Rows) -> None:
    """A step, of a gradient for each sample, in place."""
    for row in np.unique(samples):
        g = np.zeros(table.shape[1], F32)
        for sample in np.flatnonzero(samples == row):
            g = g + gradients[sample]
        sums = np.zeros(8, F32)
        for n, each in enumerate(g * g):
            sums[n % 8] += each
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
        state[row] += total / F32(len(g))
        table[row] += g * (F32(-LR) / (np.sqrt(state[row]) + F32(EPS)))


class Rule:
    """A model, and what the rule makes of its table; the layers on top are not trained."""

    def __init__(self, device: daedal.Device, model: Pooled) -> None:
        self.model = model
        for parameter in model.top.parameters():
            parameter.requires_grad_(False)
        self.plain = copy.deepcopy(model)
        self.state = np.zeros(len(model.table.weight), F32)
        self.fast = compiled(model, device)
        self.optimizer = daedal.optim.RowWiseAdagrad(model.parameters(), LR, EPS, device=device)

    def step(self, *batches: tuple[Tensor, ...]) -> None:
        self.optimizer.zero_grad()
        samples, gradients = [], []
        for indices, offsets in batches:
            loss_of(self.fast(indices, offsets)).backward()
            rows = self.plain.table(indices, offsets).detach().requires_grad_()
            loss_of(self.plain.top(rows)).backward()
            assert rows.grad is not None
            lengths = np.diff([*offsets.tolist(), len(indices)])
            gradients.append(np.repeat(rows.grad.numpy(), lengths, 0))
            samples.append(indices.numpy())
        self.optimizer.step()
        rule(self.plain.table.weight.detach().numpy(), self.state, np.concatenate(samples), np.concatenate(gradients))

    def check(self) -> None:
        self.optimizer.sync()
        assert same(self.model.table.weight.detach(), self.plain.table.weight.detach())
        found = self.optimizer.state[self.model.table.weight]["sum"]
        assert same(found, torch.from_numpy(self.state))


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("width", [16, 5])
def test_by_the_rule(ddr3: daedal.Device, width: int, is_sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    run = Rule(ddr3, pooled(ROWS, width, sparse=is_sparse))
    for samples in (1, 17, 60, 200):
        run.step(bags(ROWS, samples, 7, generator))
        assert run.model.table.weight.grad is None
    uploads = ddr3.table_uploads
    run.step(bags(ROWS, 30, 7, generator), bags(ROWS, 20, 4, generator))
    assert ddr3.table_uploads == uploads
    run.check()


@pytest.mark.full
def test_a_hundred_steps_by_the_rule(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    run = Rule(ddr3, pooled(ROWS, 64, mode="sum"))
    for _ in range(100):
        run.step(bags(ROWS, 150, 20, generator))
    run.check()


def test_checkpoints(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = [bags(ROWS, 40, 7, generator) for _ in range(10)]
    run = Rule(ddr3, pooled(ROWS))
    for each in inputs[:5]:
        run.step(each)
    file = io.BytesIO()
    torch.save({"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}, file)
    file.seek(0)
    state: dict[str, Any] = torch.load(file)
    again = Rule(ddr3, pooled(ROWS, seed=7))
    again.step(inputs[9])
    again.model.load_state_dict(state["model"])
    again.optimizer.load_state_dict(state["optimizer"])
    again.plain, again.state = copy.deepcopy(run.plain), run.state.copy()
    for each in inputs[5:]:
        run.step(each)
        again.step(each)
    run.check()
    again.check()


def test_tables_and_parameters_of_pytorch(ddr3: daedal.Device) -> None:
    """A clipped table takes the same step in PyTorch, and other parameters are Adagrad's."""
    generator = torch.Generator().manual_seed(1)
    model = pooled(ROWS, sparse=False)
    twin = copy.deepcopy(model)
    fast = compiled(model, ddr3)
    optimizer = daedal.optim.RowWiseAdagrad(model.parameters(), LR, EPS, device=ddr3)
    layers = torch.optim.Adagrad(twin.top.parameters(), lr=LR, eps=EPS)
    state = np.zeros(ROWS, F32)
    for clips in (False, True, True):
        inputs = bags(ROWS, 40, 7, generator)
        for run, each, zero in ((fast, model, optimizer), (twin, twin, layers)):
            zero.zero_grad()
            each.table.weight.grad = None
            loss_of(run(*inputs)).backward()
            if clips:
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5)
        optimizer.step()
        layers.step()
        grad = twin.table.weight.grad
        assert grad is not None
        rows = np.flatnonzero((grad != 0).any(1).numpy())
        rule(twin.table.weight.detach().numpy(), state, rows, grad.numpy()[rows])
    optimizer.sync()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=1e-4, atol=1e-5)
    assert "clipped" in optimizer.explain()


def test_bad_numbers(ddr3: daedal.Device) -> None:
    for options in ({"lr": -0.1}, {"eps": -1.0}):
        with pytest.raises(ValueError, match="must be at least 0"):
            daedal.optim.RowWiseAdagrad(pooled(ROWS).parameters(), device=ddr3, **options)
