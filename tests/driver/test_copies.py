"""Copies and pickles of what a device hands out: they work, or they are refused."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32
from tests.compiler.layers.compiler_support import same_bits
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["fresh"]

INDICES, OFFSETS = torch.arange(24), torch.arange(0, 24, 4)

(N,) = daedal.dims("N")


@daedal.kernel
def ones(out: f32[N]):
    for n in range(N):
        out[n] = 1.0


class Used:
    """A device in use, and what it and its executables have handed out."""

    def __init__(self, device: daedal.Device) -> None:
        self.device, self.module = device, nn.EmbeddingBag(50, 8)
        self.executable = daedal.compile(self.module, (INDICES, OFFSETS), device=device)
        self.executable(INDICES, OFFSETS)
        self.out = np.zeros(3, np.float32)
        self.kernel = daedal.compile(ones, (self.out,), device=device)
        self.kernel(self.out)
        self.future = self.executable.submit(INDICES, OFFSETS)
        self.launch = device.submit(device.load_program(self.kernel.program), [0] * 8)
        with torch.no_grad():
            torch.compile(self.module, backend="daedal", options={"device": device})(INDICES, OFFSETS)
        (self.graph,) = daedal.graphs(device)

    def works(self) -> bool:
        return same_bits(self.executable(INDICES, OFFSETS), self.module(INDICES, OFFSETS).detach())


@pytest.fixture(scope="module")
def used() -> Iterator[Used]:
    with daedal.Device.open("emulator") as device:
        yield Used(device)


HANDLES: dict[str, Callable[[Used], Any]] = {
    "tables": lambda used: used.device.tables,
    "memory": lambda used: used.device.memory,
    "arena": lambda used: used.device.arena(),
    "target": lambda used: used.device.target,
    "launcher": lambda used: used.device._launcher,
    "registers": lambda used: used.device._launcher._registers,
    "allocator": lambda used: used.device._allocator,
    "launch": lambda used: used.launch,
    "future": lambda used: used.future,
    "executable": lambda used: used.executable,
    "graph": lambda used: used.graph,
}

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps}


@pytest.mark.parametrize("handle", HANDLES.values(), ids=HANDLES)
def test_handles_are_refused(used: Used, handle: Callable[[Used], Any]) -> None:
    for make in COPIES.values():
        for wrapped in (handle(used), [handle(used)]):
            if make is copy.copy and isinstance(wrapped, list):
                continue
            with pytest.raises(TypeError, match=r"cannot be copied or pickled, it belongs to one device: \w"):
                make(wrapped)
    assert used.works()


VALUES: dict[str, Callable[[Used], Any]] = {
    "table": lambda used: next(iter(used.device.tables.values())),
    "dict of tables": lambda used: dict(used.device.tables),
    "record": lambda used: used.device.run(used.kernel.program, [0] * 8),
    "stats": lambda used: used.executable.stats,
    "config": lambda used: used.device.config,
    "records": lambda used: used.device.records,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_are_copied(used: Used, value: Callable[[Used], Any]) -> None:
    found = value(used)
    for made in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert made == found
        del made
    assert used.works()


def test_copies_of_kernels_work_on_the_same_device(used: Used) -> None:
    for make in (copy.copy, copy.deepcopy):
        made, out = make(used.kernel), np.zeros(5, np.float32)
        made(out)
        assert out.tolist() == [1] * 5
        assert made.program == used.kernel.program
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(used.kernel)


def test_copies_of_devices(used: Used) -> None:
    assert copy.deepcopy(used.device) is used.device
    assert copy.copy(used.device) is used.device
    with pytest.raises(TypeError, match="a Device, and what was compiled for it, cannot be pickled"):
        pickle.dumps(used.device)
    assert used.works()
