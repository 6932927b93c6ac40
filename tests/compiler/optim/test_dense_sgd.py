"""SGD of dense gradients that changes all rows of a table: momentum, weight decay, ``maximize``."""

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.compiler.frontends.torch.training import optimizers, steps
from daedal.errors import OutOfDeviceMemory
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Pooled, Twins, bags, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60

OPTIONS: dict[str, dict[str, Any]] = {
    "decay": {"weight_decay": 0.03},
    "maximize": {"maximize": True},
    "momentum": {"momentum": 0.9, "dampening": 0.25},
    "momentum, decay": {"momentum": 0.9, "weight_decay": 0.03},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "nesterov, decay": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.03},
}

QUICK = ("decay", "momentum", "nesterov, decay")


def trained(device: daedal.Device, model: nn.Module, **options: Any) -> Twins:
    """Zeros of both signs are among the rows, and numbers whose decay is one."""
    with torch.no_grad():
        table: Any = model.table
        table.weight[5:9] = -0.0
        table.weight[20:22] = 0.0
        table.weight[25:27] = -1e-45
    return Twins(model, device, lr=0.05, **options)


def batch(samples: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    return bags(ROWS, samples, 7, generator)


def check(twins: Twins) -> None:
    """Parameters and states are the same."""
    assert all(owner.is_ahead for owner in twins.optimizer._owners)
    states = [each.state_dict()["state"] for each in (twins.optimizer, twins.reference)]
    assert states[0].keys() == states[1].keys()
    for number, state in states[1].items():
        assert state.keys() == states[0][number].keys()
        assert all(same(states[0][number][name], value) for name, value in state.items())
    twins.check()


@pytest.mark.parametrize("width", [16, pytest.param(5, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.full) for each in OPTIONS]
)
def test_as_pytorch(ddr3: daedal.Device, name: str, width: int) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = trained(ddr3, pooled(ROWS, width, sparse=False, mode="mean"), **OPTIONS[name])
    empty = torch.zeros(0, dtype=torch.int64), torch.zeros(7, dtype=torch.int64)
    for inputs in (batch(16, generator), batch(200, generator), empty, batch(30, generator)):
        twins.step(inputs)
    uploads = ddr3.table_uploads
    twins.step(batch(17, generator), batch(20, generator))
    assert ddr3.table_uploads == uploads
    assert twins.model.table.weight.grad is None
    check(twins)


def test_the_first_step(ddr3: daedal.Device) -> None:
    """The momentum of rows without samples is what their decay is: -0.0 for some."""
    twins = trained(ddr3, pooled(ROWS, sparse=False), momentum=0.9, nesterov=True, weight_decay=0.03)
    twins.step((torch.arange(10), torch.arange(0, 10, 3)))
    check(twins)


def test_embeddings_with_momentum(ddr3: daedal.Device) -> None:
    generator = torch.Generator().manual_seed(1)
    twins = trained(ddr3, Pooled(nn.Embedding(ROWS, 16, padding_idx=3), 16), momentum=0.9)
    for _ in range(3):
        twins.step((torch.randint(0, ROWS, (5, 8), generator=generator),))
    check(twins)


def test_rows_that_are_not_finite(ddr3: daedal.Device) -> None:
    """Nothing is computed with a row that PyTorch does not compute."""
    twins = trained(ddr3, pooled(ROWS, sparse=False), momentum=0.9)
    with torch.no_grad():
        for model in (twins.model, twins.plain):
            model.table.weight[30:32] = float("inf")
    for _ in range(2):
        twins.step((torch.arange(20), torch.arange(0, 20, 4)))
    check(twins)


def test_checkpoints_and_steps_of_pytorch(ddr3: daedal.Device) -> None:
    """The momentum goes to PyTorch and back, whoever takes a step, and through files."""
    generator = torch.Generator().manual_seed(1)
    twins = trained(ddr3, pooled(ROWS, sparse=False), momentum=0.9, weight_decay=0.01)
    for number in range(6):
        if number == 2:
            file = io.BytesIO()
            torch.save([twins.optimizer.state_dict(), twins.model.state_dict()], file)
        if number == 4:  # a gradient of PyTorch's
            for model in (twins.model, twins.plain):
                model.table.weight.grad = torch.full((ROWS, 16), 0.25)
                model.top.zero_grad()
            twins.optimizer.step()
            twins.reference.step()
        twins.step(batch(40, generator))
    check(twins)
    for optimizer, model in ((twins.optimizer, twins.model), (twins.reference, twins.plain)):
        file.seek(0)
        states = torch.load(file)
        optimizer.load_state_dict(states[0])
        model.load_state_dict(states[1])
    twins.step(batch(40, generator))
    check(twins)


def test_a_first_step_that_fails(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no momentum then; nor does a later one that fails change it."""
    generator = torch.Generator().manual_seed(1)
    twins = trained(ddr3, pooled(ROWS, sparse=False), momentum=0.9, dampening=0.5)

    def damaged(*given: Any) -> Any:
        arrays = steps.of_all_rows(*given)
        arrays["src"][len(arrays["src"]) // 2] = 1 << 30
        return arrays

    for _ in range(2):
        twins.optimizer.zero_grad()
        inputs = batch(40, generator)
        twins.fast(*inputs).sum().backward()
        with monkeypatch.context() as patch:
            patch.setattr(optimizers, "of_all_rows", damaged)
            with pytest.raises(daedal.DaedalError):
                twins.optimizer.step()
        twins.step(inputs)
    check(twins)


def test_no_room_for_the_momentum() -> None:
    with daedal.Device.open("emulator", config="ddr3", memory_bytes=1 << 20) as small:
        twins = trained(small, pooled(5000, sparse=False), momentum=0.9)
        twins.backward(*batch(40, torch.Generator().manual_seed(1)))
        before = twins.model.table.weight.clone()
        with pytest.raises(OutOfDeviceMemory):
            twins.optimizer.step()
        assert same(twins.model.table.weight.detach(), before.detach())
