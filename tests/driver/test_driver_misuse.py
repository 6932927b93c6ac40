"""What the driver is given by mistake is refused by name, and the device works on."""

import re

import pytest
import torch
from torch import nn

import daedal
from daedal.driver.memory.regions import Region
from daedal.errors import DeviceClosed
from daedal.hw.isa.tools.assembler import assemble

INPUTS = (torch.tensor([0, 1, 2, 3, 4, 4, 1]), torch.tensor([0, 2, 2, 5]))


@pytest.fixture
def device():
    with daedal.Device.open("emulator") as opened:
        yield opened


def load_nothing(device):
    """The address of a program that does nothing."""
    return device.load_program(assemble(f"config {device.config.hash:#x}\ncontrol 0 run = 0\n"))


@pytest.fixture
def program(device):
    return load_nothing(device)


def works(device):
    module = nn.EmbeddingBag(20, 8, mode="sum")
    return torch.equal(daedal.compile(module, INPUTS, device=device)(*INPUTS), module(*INPUTS).detach())


def test_a_launch_of_another_device_stops_nothing(device, program):
    with daedal.Device.open("emulator") as other:
        mine = device.submit(program)
        theirs = other.submit(load_nothing(other))
        with pytest.raises(ValueError, match="must be one of this device"):
            device.finish(theirs)
        with pytest.raises(TypeError, match="must be what submit gave, not 'x'"):
            device.finish("x")
        assert device.finish(mine).launch == mine.number
        assert other.finish(theirs).launch == theirs.number
    assert works(device)


@pytest.mark.parametrize(
    ("address", "error"), [(-8, ValueError), (1 << 70, ValueError), (None, TypeError), ("x", TypeError)]
)
def test_addresses_that_are_none(device, address, error):
    with pytest.raises(error, match=re.escape(repr(address))):
        device.launch(address)
    assert works(device)


@pytest.mark.parametrize("arguments", [["x"], [1.5], [None], None])
def test_arguments_that_are_no_integers(device, program, arguments):
    with pytest.raises(TypeError, match=r"must be integers, not .* and " + re.escape(repr(arguments))):
        device.launch(program, arguments)
    assert works(device)


def test_regions_may_be_pairs(device, program):
    for _ in range(3):
        device.submit(program, reads=[(1, 2)], writes=[(1, 2)])
    with pytest.raises(TypeError):
        device.submit(program, reads=[5], writes=[])
    assert device.submit(program, reads=[Region(1, 2)], writes=[]).result()
    assert works(device)


def test_futures_of_a_device_that_was_closed(program, device):
    future = device.submit(program)
    device.close()
    assert device.flying == 0
    with pytest.raises(DeviceClosed, match=f"launch {future.number} had not ended when the device was closed: open a"):
        future.result()
    with pytest.raises(DeviceClosed), device:
        pass


TABLES = {
    "sparse": (lambda: torch.eye(3).to_sparse(), "must be dense and on the CPU, not of layout torch.sparse_coo"),
    "meta": (lambda: torch.empty(3, 4, device="meta"), "must be dense and on the CPU, not on meta"),
    "float4": (
        lambda: torch.zeros(3, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "whole bytes of their own, not torch.float4_e2m1fn_x2: convert it",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_cannot_be(device, name):
    make, why = TABLES[name]
    with pytest.raises(ValueError, match=re.escape(why)):
        device.bind_table("table", make())
    assert works(device)


def test_an_optimizer_may_have_tensors_without_memory(device):
    """Counting its steps does not stop it."""
    assert works(device)  # from here on steps are counted
    parameters = [torch.zeros(3, requires_grad=True), torch.eye(3).to_sparse().requires_grad_()]
    parameters[0].grad = torch.ones(3)
    torch.optim.SGD(parameters, lr=1.0, fused=True).step()
    assert parameters[0].tolist() == [-1, -1, -1]
