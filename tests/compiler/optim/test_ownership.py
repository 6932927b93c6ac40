"""Who has the rows of a table that a device trains: copies, states, host writes, and what PyTorch does with it."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import daedal
from daedal.errors import DeviceClosed, StaleParameter, UnsupportedOperation
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.optim.training_steps import Twins, bags, compiled, pooled, same
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS = 60
PROBE = torch.tensor([1, 5, 5, 9]), torch.tensor([0, 1])


@pytest.fixture
def ahead(ddr3: daedal.Device) -> Twins:
    """The device has later rows than the host."""
    twins = Twins(pooled(ROWS), ddr3)
    for samples in (40, 30):
        twins.step(bags(ROWS, samples, 7, torch.Generator().manual_seed(samples)))
    twins.optimizer.zero_grad()
    assert twins.optimizer._owners[0].is_ahead
    return twins


def saved(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    found: nn.Module = torch.load(file, weights_only=False)
    return found


READERS: dict[str, Callable[[Any], Any]] = {
    "state_dict": lambda m: m.state_dict()["table.weight"],
    "save": lambda m: saved(m).table.weight,
    "deepcopy": lambda m: copy.deepcopy(m).table.weight,
    "deepcopy of the parameter": lambda m: copy.deepcopy(m.table.weight),
    "detach": lambda m: m.table.weight.detach(),
    "clone": lambda m: m.table.weight.clone(),
    "arithmetic": lambda m: m.table.weight + 0.0,
    "double": lambda m: copy.deepcopy(m).double().table.weight.float(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_readers_get_the_rows_of_the_device(ahead: Twins, read: Callable[[Any], Any]) -> None:
    assert same(read(ahead.model).detach(), read(ahead.plain).detach())
    assert type(copy.deepcopy(ahead.model).table.weight) is nn.Parameter
    ahead.step(PROBE)
    ahead.check()


def test_eager_forward_passes(ahead: Twins) -> None:
    weight = ahead.model.table.weight
    expected = ahead.plain(*PROBE)
    assert same(ahead.model(*PROBE).detach(), expected.detach())
    ahead.step(PROBE)
    assert same(functional.embedding_bag(*PROBE[:1], weight, PROBE[1], mode="sum"),
                functional.embedding_bag(*PROBE[:1], ahead.plain.table.weight, PROBE[1], mode="sum"))  # fmt: skip
    ahead.step(PROBE)
    with torch.no_grad():
        assert same(ahead.fast(*PROBE), ahead.plain(*PROBE))
    assert ahead.optimizer._owners[0].is_ahead
    ahead.check()


def test_inference_reads_the_table_of_the_device(ahead: Twins) -> None:
    uploads = ahead.device.table_uploads
    with torch.no_grad():
        assert same(ahead.fast(*PROBE), ahead.plain(*PROBE))
    assert ahead.device.table_uploads == uploads
    assert ahead.optimizer._owners[0].is_ahead


WRITES: dict[str, Callable[[nn.Parameter], Any]] = {
    "all": lambda weight: weight.fill_(0.5),
    "rows": lambda weight: weight.__setitem__(slice(3, 6), 2.0),
    "an element": lambda weight: weight.__setitem__((5, 2), -0.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_host_writes(ahead: Twins, write: Callable[[nn.Parameter], Any]) -> None:
    """They are an error at the next use, and count after ``sync``: as far as rows were not written, they are the
    device's.
    """
    with torch.no_grad():
        write(ahead.model.table.weight)
        if write is WRITES["an element"]:  # the row is the host's as a whole, as it was when the device went ahead
            ahead.plain.table.weight[5] = ahead.model.table.weight.data[5]
        else:
            write(ahead.plain.table.weight)
    for use in (lambda: ahead.fast(*PROBE), lambda: ahead.model(*PROBE), ahead.model.state_dict):
        with pytest.raises(StaleParameter, match=r"parameter 'table\.weight' was changed .*call opt\.sync\(\)"):
            use()
    ahead.optimizer.sync()
    ahead.step(PROBE)
    ahead.check()


def test_host_writes_after_sync(ahead: Twins) -> None:
    """They count, whether PyTorch counts them or not."""
    ahead.optimizer.sync()
    uploads = ahead.device.table_uploads
    for model in (ahead.model, ahead.plain):
        model.table.weight.data[7:9] = 3.0
    ahead.step(PROBE)
    assert ahead.device.table_uploads == uploads + 1
    with torch.no_grad():
        for model in (ahead.model, ahead.plain):
            model.table.weight[5].zero_()  # a view is of the device's rows
    ahead.step(PROBE)
    ahead.check()


def test_other_memory_for_a_parameter(ahead: Twins) -> None:
    new = torch.randn(ROWS, 16)
    ahead.model.table.weight.data, ahead.plain.table.weight.data = new.clone(), new.clone()
    with pytest.raises(StaleParameter, match="other memory"):
        ahead.fast(*PROBE)
    ahead.optimizer.sync()
    ahead.step(PROBE)
    ahead.check()


def test_loading_a_state_into_the_model(ahead: Twins) -> None:
    """As users expect: what was loaded counts, without more ado."""
    state = pooled(ROWS, seed=5).state_dict()
    for model in (ahead.model, ahead.plain):
        model.load_state_dict(state)
    ahead.step(PROBE)
    ahead.check()


def test_views_that_are_tables_of_their_own(ahead: Twins) -> None:
    view = ahead.model.table.weight.data[:20]
    with pytest.raises(StaleParameter, match=r"call opt\.sync\(\)"):
        ahead.device.bind_table("view", view)
    name = next(name for name in ahead.device.tables if ahead.device._tables.is_ahead(name))
    with pytest.raises(StaleParameter, match=r"call opt\.sync\(\)"):
        ahead.device.drop_table(name)
    ahead.check()


def test_release(ahead: Twins) -> None:
    ahead.optimizer.release()
    assert type(ahead.model.table.weight) is nn.Parameter
    assert same(ahead.model.table.weight.detach(), ahead.plain.table.weight.detach())
    ahead.step(PROBE)
    assert ahead.model.table.weight.grad is not None
    ahead.check()


def test_another_device(ahead: Twins) -> None:
    with daedal.Device.open("emulator", config="ddr3") as other:
        with pytest.raises(StaleParameter, match="must be trained by one device"):
            daedal.optim.SGD(ahead.model.parameters(), lr=0.1, device=other)
        ahead.optimizer.release()
        ahead.optimizer = daedal.optim.SGD(ahead.model.parameters(), lr=0.05, device=other)
        ahead.step(PROBE)  # on the first device the graph is PyTorch's
        ahead.check()


def test_a_closed_device() -> None:
    device = daedal.Device.open("emulator", config="ddr3")
    twins = Twins(pooled(ROWS), device)
    twins.step(PROBE)
    device.close()
    for use in (twins.optimizer.sync, lambda: twins.model(*PROBE), lambda: twins.fast(*PROBE)):
        with pytest.raises(DeviceClosed):
            use()
    with daedal.Device.open("emulator", config="ddr3") as other, torch.no_grad():
        with pytest.raises(DeviceClosed):
            compiled(twins.model, other)(*PROBE)
        plain = pooled(ROWS)
        assert same(compiled(plain, other)(*PROBE), plain(*PROBE))


def test_devices_that_are_none() -> None:
    model = pooled(ROWS)
    with daedal.System.open(tiles=2, target="emulator") as system, pytest.raises(UnsupportedOperation, match="System"):
        daedal.optim.SGD(model.parameters(), lr=0.1, device=system)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="device must be"):
        daedal.optim.SGD(model.parameters(), lr=0.1, device="cpu")  # type: ignore[arg-type]
    assert type(model.table.weight) is nn.Parameter


def test_no_room_for_a_table() -> None:
    with daedal.Device.open("emulator", config="ddr3", memory_bytes=1 << 20) as small:
        twins = Twins(pooled(20_000), small)
        twins.step(PROBE)
        assert "of the device's memory" in daedal.graphs(small)[-1].explain()
        twins.check()


class Penalised(nn.Module):
    """A table with which PyTorch computes as well."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(indices, offsets) + self.inner.table.weight.abs().sum()
        return found


def test_graphs_in_which_pytorch_reads_the_table(ahead: Twins) -> None:
    """They compute with the device's rows, on whichever device they are compiled for."""
    with daedal.Device.open("emulator", config="ddr3") as other, torch.no_grad():
        for device in (ahead.device, other):
            fast = torch.compile(Penalised(ahead.model), backend="daedal", options={"device": device})
            assert same(fast(*PROBE), Penalised(ahead.plain)(*PROBE))
            with torch.enable_grad():
                ahead.step(PROBE)


@pytest.mark.parametrize("is_same", [True, False])
def test_executables_of_compile(ahead: Twins, is_same: bool) -> None:
    with daedal.Device.open("emulator", config="ddr3") as other:
        device = ahead.device if is_same else other
        with torch.no_grad():
            executable = daedal.compile(ahead.model, PROBE, device=device)
        for _ in range(3):
            with torch.no_grad():
                assert same(executable(*PROBE), ahead.plain(*PROBE))
            ahead.step(PROBE)
