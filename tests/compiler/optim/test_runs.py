"""Whole runs: checkpoints, schedulers, groups, several tables and optimizers, faults in the middle."""

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.compiler.frontends.torch.training import steps
from daedal.errors import IndexOutOfRange
from daedal.runtime.kernel_launch import KernelLaunch
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Twins, bags, compiled, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60


class Tables(nn.Module):
    """A small DLRM: tables of one width, sparse and dense, in one launch, and layers around them."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS + n, 16, mode="sum", sparse=n % 2 == 0) for n in range(count))
        self.bottom = nn.Linear(4, 16)
        self.top = nn.Linear(16 * (count + 1), 1)

    def forward(self, dense: Tensor, indices: list[Tensor], offsets: Tensor) -> Tensor:
        rows = [table(each, offsets) for table, each in zip(self.tables, indices, strict=True)]
        found: Tensor = self.top(torch.cat([self.bottom(dense), *rows], 1))
        return found


def batch(generator: torch.Generator, count: int = 3) -> tuple[Any, ...]:
    indices, offsets = bags(ROWS, 40, 7, generator)
    others = [torch.randint(0, ROWS, (40,), generator=generator) for _ in range(count - 1)]
    return torch.randn(7, 4, generator=generator), [indices, *others], offsets


def test_several_tables(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Tables(), ddr3)
    for _ in range(4):
        twins.step(batch(generator))
    graph = daedal.graphs(ddr3)[-1]
    assert len(graph.offloaded) == 3 and graph.stats.launches == 1
    assert all(owner.is_ahead for owner in twins.optimizer._owners)
    twins.check()


def test_groups_schedulers_and_rates_that_are_tensors(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Tables(), ddr3)
    optimizers: list[Any] = []
    for kind, model in ((daedal.optim.SGD, twins.model), (torch.optim.SGD, twins.plain)):
        groups = [
            {"params": model.tables[0].parameters(), "lr": torch.tensor(0.01)},
            {"params": model.tables[1].parameters(), "lr": 0.02},
            {"params": [*model.bottom.parameters(), *model.top.parameters()], "momentum": 0.9},
        ]
        options: dict[str, Any] = {"device": ddr3} if kind is daedal.optim.SGD else {}
        optimizers.append(kind(groups, lr=0.05, **options))
        optimizers[-1].add_param_group({"params": model.tables[2].parameters(), "lr": 0.04})
    twins.optimizer, twins.reference = optimizers
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(each, 0.7) for each in optimizers]
    for _ in range(4):
        twins.step(batch(generator))
        for scheduler in schedulers:
            scheduler.step()
    assert all(owner.is_ahead for owner in twins.optimizer._owners)
    twins.check()


def test_two_optimizers(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    model = Tables()
    plain = copy.deepcopy(model)
    fast = compiled(model, ddr3)
    first = [daedal.optim.SGD(model.tables.parameters(), lr=0.1, device=ddr3)]
    first += [torch.optim.Adam([*model.bottom.parameters(), *model.top.parameters()], lr=0.01)]
    second = [torch.optim.SGD(plain.tables.parameters(), lr=0.1)]
    second += [torch.optim.Adam([*plain.bottom.parameters(), *plain.top.parameters()], lr=0.01)]
    for _ in range(3):
        inputs = batch(generator)
        for run, optimizers in ((fast, first), (plain, second)):
            for each in optimizers:
                each.zero_grad()
            loss_of(run(*inputs)).backward()
            for each in optimizers:
                each.step()
    first[0].sync()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        assert same(a.detach(), b.detach())


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.full)])
def test_a_hundred_steps_are_fifty_saved_loaded_and_fifty(ddr3: daedal.Device, count: int) -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = [batch(generator) for _ in range(2 * count)]
    twins = Twins(Tables(), ddr3, lr=0.01)
    for each in inputs[:count]:
        twins.step(each)
    file = io.BytesIO()
    torch.save({"model": twins.model.state_dict(), "optimizer": twins.optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)
    again = Tables()
    fast = compiled(again, ddr3)
    optimizer = daedal.optim.SGD(again.parameters(), lr=0.5, device=ddr3)
    again.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for each in inputs[count:]:
        twins.step(each)
        optimizer.zero_grad()
        loss_of(fast(*each)).backward()
        optimizer.step()
    optimizer.sync()
    for a, b in zip(again.parameters(), twins.plain.parameters(), strict=True):
        assert same(a.detach(), b.detach())
    twins.check()


def test_a_bad_index_in_the_middle(ddr3: daedal.Device) -> None:
    """The forward pass refuses it, and the table is as after the step before."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS), ddr3)
    for _ in range(3):
        twins.step(bags(ROWS, 40, 7, generator))
    indices, offsets = bags(ROWS, 40, 7, generator)
    indices[11] = ROWS
    twins.optimizer.zero_grad()
    with pytest.raises(IndexOutOfRange):
        twins.fast(indices, offsets)
    twins.optimizer.step()
    twins.check()
    twins.step(bags(ROWS, 40, 7, generator))
    twins.check()


def test_closures(ddr3: daedal.Device) -> None:
    inputs = bags(ROWS, 40, 7, torch.Generator().manual_seed(1))
    twins = Twins(pooled(ROWS), ddr3)

    def closure(run: Any, optimizer: Any) -> Any:
        def again() -> Tensor:
            optimizer.zero_grad()
            loss = loss_of(run(*inputs))
            loss.backward()
            return loss

        return again

    for _ in range(2):
        a = twins.optimizer.step(closure(twins.fast, twins.optimizer))
        b = twins.reference.step(closure(twins.plain, twins.reference))
        assert same(a.detach(), b.detach())
    twins.check()


def test_frozen_for_a_while(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS), ddr3)
    for trains in (True, False, True):
        for model in (twins.model, twins.plain):
            model.table.weight.requires_grad_(trains)
        twins.step(bags(ROWS, 40, 7, generator))
    twins.check()


def test_no_room_for_a_step_changes_nothing(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several tables, all are as before, whichever does not get the memory that it needs."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Tables(), ddr3)
    twins.step(batch(generator))
    twins.optimizer.zero_grad()
    loss_of(twins.fast(*batch(generator))).backward()
    place, calls = steps.place_kernel, []

    def third(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise daedal.OutOfDeviceMemory("no room")
        return place(*given)

    monkeypatch.setattr(steps, "place_kernel", third)
    with pytest.raises(daedal.OutOfDeviceMemory):
        twins.optimizer.step()
    monkeypatch.undo()
    for a, b in zip(twins.model.tables, twins.plain.tables, strict=True):
        assert same(a.weight.detach(), b.weight.detach())


def test_an_interrupt_waits_for_the_step(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS), ddr3)
    twins.backward(*bags(ROWS, 40, 7, generator))
    result, calls = KernelLaunch.result, []

    def interrupted(launch: Any, timeout: float | None = None) -> Any:
        calls.append(launch)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return result(launch, timeout)

    monkeypatch.setattr(KernelLaunch, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        twins.optimizer.step()
    twins.reference.step()
    twins.optimizer.sync()
    assert same(twins.model.table.weight.detach(), twins.plain.table.weight.detach())


@pytest.mark.parametrize("is_before", [True, False])
def test_executables_of_compile_train(ddr3: daedal.Device, is_before: bool) -> None:
    """Whether the optimizer or the executable is made first."""
    generator = torch.Generator().manual_seed(1)
    model = Tables()
    plain = copy.deepcopy(model)
    inputs = batch(generator)
    made = daedal.compile(model, inputs, device=ddr3) if is_before else None
    optimizer = daedal.optim.SGD(model.parameters(), lr=0.01, device=ddr3)
    reference = torch.optim.SGD(plain.parameters(), lr=0.01)
    fast = made or daedal.compile(model, inputs, device=ddr3)
    for number in range(4):
        inputs, uploads = batch(generator), ddr3.table_uploads
        for run, each in ((fast, optimizer), (plain, reference)):
            each.zero_grad()
            loss_of(run(*inputs)).backward()
            each.step()
        assert not number or ddr3.table_uploads == uploads
        assert all(owner.is_ahead for owner in optimizer._owners)
        with torch.no_grad():
            assert same(fast(*inputs), plain(*inputs))
    optimizer.sync()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        assert same(a.detach(), b.detach())
    optimizer.release()
    assert not fast(*inputs).requires_grad
