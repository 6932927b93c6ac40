"""What a call costs the host, in calls of functions: it must not grow with what a launch makes one thing of."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits

__all__ = ["ddr3"]


class Tables(nn.Module):
    """So many tables; their results side by side, or each by itself."""

    def __init__(self, count: int, *, joins: bool, mode: str = "sum") -> None:
        super().__init__()
        self.joins = joins
        self.tables = nn.ModuleList(nn.EmbeddingBag(20 + n, 8, mode=mode) for n in range(count))

    def forward(self, indices: list[Tensor], offsets: list[Tensor]) -> Any:
        rows = [table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)]
        return torch.cat(rows, 1) if self.joins else rows


def batch(count: int, bags: int = 3) -> tuple[list[Tensor], list[Tensor]]:
    lengths = torch.randint(1, 5, (count, bags))
    indices = [torch.randint(0, 20, (int(each.sum()),)) for each in lengths]
    return indices, [torch.cumsum(each, 0) - each for each in lengths]


@contextmanager
def counted(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Calls of functions of Python's, in all as ``functions``, and of the machine's primitives by name."""
    found: Counter[str] = Counter()

    def seen(frame: Any, event: str, argument: Any) -> None:
        found["functions"] += event == "call"

    with monkeypatch.context() as patch:
        for name in ("mem_read", "mem_write", "csr_read", "csr_write", "wait"):
            own = getattr(device.target, name)

            def call(*given: Any, name: str = name, own: Callable[..., Any] = own) -> Any:
                found[name] += 1
                return own(*given)

            patch.setattr(device.target, name, call)
        sys.setprofile(seen)
        try:
            yield found
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("joins", [True, False], ids=["side by side", "each by itself"])
def test_a_call_of_many_tables_is_that_of_few(
    ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch, joins: bool
) -> None:
    """What is done for each table is done in C: a list of each kind of thing is compared, copied or checked at once."""
    calls = {}
    with torch.no_grad():
        for count in (2, 40):
            module = Tables(count, joins=joins)
            executable = daedal.compile(module, batch(count), device=ddr3)
            for _ in range(3):
                inputs = batch(count)
                assert all(map(same_bits, executable(*inputs), module(*inputs)))
            inputs = batch(count)
            with counted(ddr3, monkeypatch) as calls[count]:
                executable(*inputs)
    few, many = calls[2], calls[40]
    primitives = [(name, number) for name, number in many.items() if name != "functions"]
    assert primitives == [(name, number) for name, number in few.items() if name != "functions"]
    assert few["mem_read"] <= 2 and few["mem_write"] <= 3
    per_result = 0 if joins else 8  # an array and a tensor, and what they are made from
    assert many["functions"] - few["functions"] <= 38 * (1 + per_result)
    assert few["functions"] < 330, "of other sizes than the one before"


@pytest.mark.parametrize("count", [2, 26])
def test_a_call_of_the_same_sizes(ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """What follows from sizes is kept from one call to the next."""
    module, inputs = Tables(count, joins=True), batch(count)
    with torch.no_grad():
        executable = daedal.compile(module, inputs, device=ddr3)
        for _ in range(3):
            executable(*inputs)
        with counted(ddr3, monkeypatch) as calls:
            result = executable(*inputs)
        assert same_bits(result, module(*inputs))
    assert calls["functions"] < 220


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (nn.EmbeddingBag(30, 8, mode="sum"), (torch.arange(8), torch.tensor([0, 2, 5]))),
        (nn.EmbeddingBag(30, 8, mode="mean"), (torch.arange(8).reshape(2, 4),)),
        (nn.Embedding(30, 8), (torch.arange(8).reshape(2, 4),)),
    ],
    ids=["bags", "2-D", "lookup"],
)
def test_one_operation_is_written_and_read_at_once(
    ddr3: daedal.Device, monkeypatch: pytest.MonkeyPatch, module: nn.Module, inputs: tuple[Tensor, ...]
) -> None:
    with torch.no_grad():
        executable = daedal.compile(module, inputs, device=ddr3)
        for _ in range(3):
            executable(*inputs)
        with counted(ddr3, monkeypatch) as calls:
            result = executable(*inputs)
        assert same_bits(result, module(*inputs))
    assert calls["mem_write"] == 3, "inputs, launch block, record"
    assert calls["mem_read"] == 2, "record, result"
    assert calls["functions"] < 230


@pytest.mark.parametrize("joins", [True, False], ids=["side by side", "each by itself"])
def test_results_of_two_calls_are_apart(ddr3: daedal.Device, joins: bool) -> None:
    """Each call's are fresh memory, and those of a call do not overlap."""
    module = Tables(3, joins=joins)
    inputs = batch(3)
    with torch.no_grad():
        executable = daedal.compile(module, inputs, device=ddr3)
        for _ in range(2):
            executable(*inputs)
        first = executable(*inputs)
        kept = [each.clone() for each in first]
        second = executable.submit(*batch(3)).result()
        for each in second:
            each.fill_(7)
        assert all(map(same_bits, first, kept))
        for each in first:
            each.zero_()
        assert all(map(same_bits, executable(*inputs), kept))
        for number, each in enumerate(second):
            each.fill_(number)
        assert all(bool((each == number).all()) for number, each in enumerate(second))


def test_sizes_that_change_and_come_back(ddr3: daedal.Device) -> None:
    module = Tables(5, joins=True, mode="max")
    single = nn.Embedding(30, 8)
    with torch.no_grad():
        executable = daedal.compile(module, batch(5), device=ddr3)
        rows = daedal.compile(single, (torch.arange(4),), device=ddr3)
        for bags in (3, 3, 7, 1, 3, 3):
            inputs = batch(5, bags)
            assert same_bits(executable(*inputs), module(*inputs))
            indices = torch.randint(0, 30, (bags,))
            assert same_bits(rows(indices), single(indices))


def test_other_lengths_of_the_same_sum(ddr3: daedal.Device) -> None:
    """All arrays have the sizes that they had, and the indices of a table begin elsewhere."""
    module, offsets = Tables(3, joins=True), [torch.tensor([0, 1])] * 3
    with torch.no_grad():
        executable = daedal.compile(module, batch(3, 2), device=ddr3)
        for lengths in ((6, 2, 4), (6, 2, 4), (2, 6, 4), (4, 4, 4), (2, 2, 8)):
            indices = [torch.randint(0, 20, (length,)) for length in lengths]
            assert same_bits(executable(indices, offsets), module(indices, offsets))


def test_inference_mode_before_and_after(ddr3: daedal.Device) -> None:
    """What is kept from one call to the next can be written in both."""
    module = Tables(3, joins=True)
    executable = daedal.compile(module, batch(3), device=ddr3)
    for mode in (True, False, True):
        with torch.no_grad(), torch.inference_mode(mode):
            for bags in (2, 2, 4):
                inputs = batch(3, bags)
                assert same_bits(executable(*inputs), module(*inputs))


def test_nothing_is_kept_of_launches_that_fail(ddr3: daedal.Device) -> None:
    """A bad offset, index and sizes between good calls, and the memory is given back."""
    module = Tables(3, joins=True)
    with torch.no_grad():
        inputs = batch(3)
        executable = daedal.compile(module, inputs, device=ddr3)
        for _ in range(2):
            wanted = executable(*inputs)
        free = ddr3.free_bytes
        indices, offsets = inputs
        bad_index = [indices[0], indices[1].clone(), indices[2]]
        bad_index[1][0] = 99
        with pytest.raises(daedal.IndexOutOfRange, match="index 99 is out of range"):
            executable(bad_index, offsets)
        with pytest.raises(daedal.InvalidOffsets, match="the first offset must be 0, not 1"):
            executable(indices, [offsets[0] + 1, *offsets[1:]])
        with pytest.raises(daedal.InvalidOffsets, match="the last offset must be at most"):
            executable([indices[0][:0], *indices[1:]], offsets)
        assert same_bits(executable(*inputs), wanted) and same_bits(wanted, module(*inputs))
        assert ddr3.free_bytes == free
