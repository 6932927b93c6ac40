"""Patterns of what is to run on the device, and a budget of its memory: all else is PyTorch's."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]


class Towers(nn.Module):
    """Three tables of 64 KiB, of which one is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.user, self.item, self.context = (nn.Embedding(1024, 16) for _ in range(3))

    def forward(self, indices: Tensor) -> Tensor:
        return self.user(indices) + self.item(indices) * self.context(indices) + self.user(indices + 1)


INDICES = torch.tensor([1, 5, 1000])
WHOLE, TABLE = 1 << 22, 1 << 16

PLACED: dict[str, tuple[dict[str, Any], set[str], str]] = {
    "all": ({}, {"user", "item", "context"}, ""),
    "one": ({"offload": ["user.*"]}, {"user"}, "none of offload's patterns, user.*, matches"),
    "two": ({"offload": ["user.weight", "c*"]}, {"user", "context"}, "none of offload's"),
    "by operation": ({"offload": ["embedding_[12]"]}, {"item", "context"}, "none of offload's"),
    "enough": ({"budget": WHOLE}, {"user", "item", "context"}, ""),
}


@pytest.mark.parametrize("case", PLACED)
def test_what_runs_where(ddr3: daedal.Device, case: str) -> None:
    options, wanted, reason = PLACED[case]
    module = Towers()
    executable = daedal.compile(module, (INDICES,), device=ddr3, **options)
    compiled = torch.compile(module, backend="daedal", options={"device": ddr3, **options})
    with torch.no_grad():
        assert torch.equal(executable(INDICES), module(INDICES)) and torch.equal(compiled(INDICES), module(INDICES))
    for told in (executable.explain(), daedal.graphs(ddr3)[-1].explain()):
        lines = [line for line in told.splitlines() if ": on the device" in line]
        assert {name for name in ("user", "item", "context") if any(f"of {name}." in line for line in lines)} == wanted
        assert reason in told


def test_a_budget(ddr3: daedal.Device) -> None:
    """Tables take it in the order of their use, whole superblocks at a time; a table is counted once."""
    block = ddr3.config.superblock_bytes
    size = -(-TABLE // block) * block
    module = Towers()
    for tables, names in ((1, ["user"]), (2, ["user", "item"]), (3, ["user", "item", "context"])):
        executable = daedal.compile(module, (INDICES,), device=ddr3, budget=tables * size)
        with torch.no_grad():
            assert torch.equal(executable(INDICES), module(INDICES))
        told = executable.explain()
        assert [n for n in ("user", "item", "context") if f"of {n}.weight: on the device" in told] == names
        assert (f"its table takes {size} bytes, and of the budget of {tables * size} bytes 0 are left" in told) == (
            tables < 3
        )
    with pytest.raises(
        daedal.UnsupportedOperation, match=r"of user.weight: its table .* 5 are left: give a larger budget"
    ):
        daedal.compile(module, (INDICES,), device=ddr3, budget=5)


def test_a_table_that_is_larger_than_the_device_stays(ddr3: daedal.Device) -> None:
    """It is no error in the middle of a call."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.small, self.large = nn.Embedding(9, 16), nn.Embedding(1 << 15, 16)

        def forward(self, indices: Tensor) -> Tensor:
            return self.small(indices) + self.large(indices)

    with daedal.Device.open("emulator", config="edge", memory_bytes=1 << 20) as device:
        module, indices = Two(), torch.tensor([0, 8, 3])
        executable = daedal.compile(module, (indices,), device=device)
        with torch.no_grad():
            assert torch.equal(executable(indices), module(indices))
        assert "of large.weight: in PyTorch, because its table takes 2097152 bytes" in executable.explain()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offload": "user"}, "offload must be a list of patterns"),
        ({"offload": [3]}, "offload must be a list of patterns"),
        ({"budget": -1}, "budget must be a number of bytes"),
        ({"budget": 1.5}, "budget must be a number of bytes"),
        ({"budget": True}, "budget must be a number of bytes"),
    ],
)
def test_options_that_are_none(ddr3: daedal.Device, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        daedal.compile(Towers(), (INDICES,), device=ddr3, **options)


def test_a_pattern_of_nothing(ddr3: daedal.Device) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=r"not 'users.\*': there are embedding of user.weight, "):
        daedal.compile(Towers(), (INDICES,), device=ddr3, offload=["user.*", "users.*"])


class Bags(nn.Module):
    """Three tables of 450 KiB, of which two fit into a MiB."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.EmbeddingBag(1800, 64, mode="sum") for _ in range(3))

    def forward(self, bags: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([self.a(bags), self.b(bags)], -1), self.c(bags)


def test_tables_that_do_not_fit_together_come_one_by_one() -> None:
    model, bags = Bags().requires_grad_(False), torch.tensor([[1, 5, 9], [1799, 2, 2]])
    with daedal.Device.open("emulator", config="ddr3", memory_bytes=1 << 20) as device:
        executable = daedal.compile(model, (bags,), device=device)
        for _ in range(2):
            assert all(torch.equal(*pair) for pair in zip(executable(bags), model(bags), strict=True))
            assert executable.stats.launches == 3
        free = device.free_bytes
        assert all(torch.equal(*pair) for pair in zip(executable.submit(bags).result(), model(bags), strict=True))
        assert device.free_bytes == free, "what did not fit is not kept"
