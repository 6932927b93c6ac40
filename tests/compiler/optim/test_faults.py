"""A fault in the middle of a step leaves tables and their state as they were before it, also where only the device has
them."""

from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.frontends.torch.training import optimizers, steps
from daedal.compiler.frontends.torch.training.undo import Undo
from daedal.errors import IndexOutOfRange, InvalidOffsets, MemoryFault, StaleParameter
from daedal.runtime import kernel_launch
from daedal.runtime.kernel_launch import KernelLaunch, PlacedKernel
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.test_runs import Tables, batch
from tests.compiler.optim.training_steps import Twins, bags, compiled, loss_of, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS, SAMPLES, BAGS = 60, 150, 7
FAR = 1 << 30
"""No number of a row or a sample."""

Arrays = dict[str, Any]


def damage(arrays: Arrays, name: str, rng: np.random.Generator) -> Arrays:
    """The machine faults when it comes to a place of this array: a row, a sample in the middle of a row, segments that
    are not in order.
    """
    wrong = arrays[name].copy()
    wrong[rng.integers(1, len(wrong) - 1)] = FAR
    return {**arrays, name: wrong}


def damaging(make: Any, name: str, rng: np.random.Generator) -> Any:
    return lambda *given: damage(make(*given), name, rng)


class Run:
    """A model that a device trains."""

    def __init__(self, device: daedal.Device, model: Any, make: Any = daedal.optim.SGD) -> None:
        self.model, self.fast = model, compiled(model, device)
        self.optimizer = make(model.parameters(), lr=0.05, device=device)

    def backward(self, inputs: Any) -> None:
        self.optimizer.zero_grad()
        loss_of(self.fast(*inputs)).backward()

    def step(self, inputs: Any) -> None:
        self.backward(inputs)
        self.optimizer.step()

    def state(self) -> list[torch.Tensor]:
        state = self.optimizer.state_dict()["state"].values()
        return [*self.model.state_dict().values(), *(each["sum"] for each in state if "sum" in each)]


def faulty_steps(run: Run, twin: Run, trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of both, with a fault of one of them at a random place before each."""
    rng, generator = np.random.default_rng(1), torch.Generator().manual_seed(1)
    for number in range(trials):
        inputs = [bags(ROWS, SAMPLES, BAGS, generator) for _ in range(2)]
        name = ("rows", "src", "seg")[number % 3]
        run.backward(inputs[0])
        with monkeypatch.context() as patch:
            for function in ("arrays_of", "stacked"):
                patch.setattr(optimizers, function, damaging(getattr(steps, function), name, rng))
            patch.setattr(kernel_launch, "check_distinct", lambda *given: None)
            with pytest.raises((IndexOutOfRange, InvalidOffsets, MemoryFault)):
                run.optimizer.step()
        assert not number or run.optimizer._owners[0].is_ahead
        if number % 4 == 3:
            assert all(map(same, run.state(), twin.state()))
        for each in (run, twin):
            each.step(inputs[1])
    assert all(map(same, run.state(), twin.state()))


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sparse": (daedal.optim.SGD, {}),
    "mean": (daedal.optim.SGD, {"mode": "mean"}),
    "dense": (daedal.optim.SGD, {"sparse": False}),
    "dense mean": (daedal.optim.SGD, {"sparse": False, "mode": "mean"}),
    "long rows": (daedal.optim.SGD, {"width": 300}),
    "padded rows": (daedal.optim.SGD, {"width": 3}),
    "adagrad": (daedal.optim.RowWiseAdagrad, {}),
    "adagrad mean": (daedal.optim.RowWiseAdagrad, {"mode": "mean"}),
}


QUICK = ("sparse", "dense", "long rows", "padded rows", "adagrad")


@pytest.mark.parametrize(
    "kind", [each if each in QUICK else pytest.param(each, marks=pytest.mark.full) for each in KINDS]
)
def test_faults_at_random_places(ddr3: daedal.Device, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, options = KINDS[kind]
    run, twin = (Run(ddr3, pooled(ROWS, **options), make) for _ in range(2))
    faulty_steps(run, twin, 6, monkeypatch)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal:stall=0.1,seed=2", "litedram-ddr3-x16"])
def test_faults_on_the_rtl(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept is in memory before what it is kept for changes."""
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        for kind in ("sparse", "adagrad"):
            make, options = KINDS[kind]
            run, twin = (Run(rtl, pooled(ROWS, **options), make) for _ in range(2))
            faulty_steps(run, twin, 6, monkeypatch)


@pytest.mark.parametrize("place", range(3))
def test_a_fault_in_one_of_several_tables(ddr3: daedal.Device, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches before it have changed their tables, and those behind it are run by the driver all the same."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Tables(), ddr3)
    twins.step(batch(generator))
    for others in ([], [batch(generator)]):
        twins.optimizer.zero_grad()
        loss_of(twins.fast(*batch(generator))).backward()
        calls: list[Any] = []

        def of_one(*given: Any, calls: list[Any] = calls) -> Arrays:
            calls.append(given)
            arrays = steps.arrays_of(*given)
            return damage(arrays, "src", np.random.default_rng(1)) if len(calls) == place + 1 else arrays

        with monkeypatch.context() as patch:
            patch.setattr(optimizers, "arrays_of", of_one)
            with pytest.raises((IndexOutOfRange, MemoryFault)):
                twins.optimizer.step()
        for inputs in others:
            twins.step(inputs)
    assert all(owner.is_ahead for owner in twins.optimizer._owners)
    twins.check()


def fails(launch: Any, timeout: float | None = None) -> Any:
    """A launch that has changed all that it changes, and hangs."""
    KernelLaunch.finish(launch)
    raise daedal.DeviceHang("planted")


def test_an_interrupt_between_launches(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = Twins(Tables(), ddr3)
    twins.step(batch(generator))
    twins.optimizer.zero_grad()
    loss_of(twins.fast(*batch(generator))).backward()
    submit, calls = PlacedKernel.submit, []

    def second(placed: Any) -> Any:
        calls.append(placed)
        if len(calls) == 2:
            calls[0]._run.result()
            raise KeyboardInterrupt
        return submit(placed)

    monkeypatch.setattr(PlacedKernel, "submit", second)
    with pytest.raises(KeyboardInterrupt):
        twins.optimizer.step()
    monkeypatch.undo()
    twins.step(batch(generator))
    twins.check()


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_device_that_does_not_answer(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch, is_ahead: bool) -> None:
    """The table is as before if the host has it so, and else it is never taken for what it is not."""
    generator = torch.Generator().manual_seed(1)
    twins = Twins(pooled(ROWS), ddr3)
    if is_ahead:
        twins.step(bags(ROWS, 40, 7, generator))
    before = twins.model.state_dict()["table.weight"].clone()
    if is_ahead:
        twins.step(bags(ROWS, 40, 7, generator))
    twins.optimizer.zero_grad()
    inputs = bags(ROWS, 40, 7, generator)
    loss_of(twins.fast(*inputs)).backward()

    def dead(undo: Undo, state: Any) -> None:
        raise MemoryFault("no answer")

    monkeypatch.setattr(KernelLaunch, "result", fails)
    monkeypatch.setattr(Undo, "restore", dead)
    with pytest.raises(daedal.DeviceHang) as caught:
        twins.optimizer.step()
    assert "table.weight: its rows could not be restored: no answer" in caught.value.__notes__
    monkeypatch.undo()
    if is_ahead:
        for use in (lambda: twins.fast(*inputs), lambda: twins.model(*inputs), twins.optimizer.sync):
            with pytest.raises(StaleParameter, match=r"table\.weight.*DeviceHang: planted.*load a checkpoint"):
                use()
        with torch.no_grad():
            twins.model.table.weight.copy_(before)
            twins.plain.table.weight.copy_(before)
        twins.optimizer.sync()
    twins.optimizer.zero_grad()
    twins.model.top.load_state_dict(twins.plain.top.state_dict())
    twins.step(inputs)
    twins.check()


def test_a_device_that_does_not_answer_and_has_the_state(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host may have the table, and not what belongs to it."""
    generator = torch.Generator().manual_seed(1)
    run = Run(ddr3, pooled(ROWS), daedal.optim.RowWiseAdagrad)
    run.step(bags(ROWS, 40, 7, generator))
    inputs = bags(ROWS, 40, 7, generator)
    run.backward(inputs)
    monkeypatch.setattr(KernelLaunch, "result", fails)
    monkeypatch.delattr(Undo, "restore")
    with pytest.raises(daedal.DeviceHang):
        run.optimizer.step()
    monkeypatch.undo()
    with pytest.raises(StaleParameter, match="load a checkpoint"):
        run.fast(*inputs)
