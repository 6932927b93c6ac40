"""Bad modules and inputs: typed errors that name the value, and a device that works afterwards."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits

__all__ = ["ddr3"]

INDICES = torch.tensor([1, 2, 3, 4])
OFFSETS = torch.tensor([0, 2])

MODULES: dict[str, tuple[Callable[[], Any], Sequence[Any], str]] = {
    "no embedding": (
        lambda: nn.Linear(3, 2),
        (torch.ones(1, 3),),
        "must have an embedding operation.*linear",
    ),
    "max": (
        lambda: nn.EmbeddingBag(9, 4, mode="max", sparse=True),
        (INDICES, OFFSETS),
        "embedding_bag of weight: mode 'max' must go without sparse",
    ),
    "norm": (
        lambda: nn.Embedding(9, 4, max_norm=1.0),
        (INDICES,),
        "embedding of weight: max_norm must be None, not 1.0",
    ),
    "half": (
        lambda: nn.EmbeddingBag(9, 4).half(),
        (INDICES, OFFSETS),
        "embedding_bag of weight: .*rows of binary16 need a converter",
    ),
    "double": (
        lambda: nn.EmbeddingBag(9, 4).double(),
        (INDICES, OFFSETS),
        "embedding_bag of weight: .*not torch.float64",
    ),
    "two elements in a byte": (
        lambda: nn.Embedding.from_pretrained(torch.zeros(9, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)),
        (INDICES,),
        "of weight: the table must be of a type whose elements are whole bytes .*, not torch.float4_e2m1fn_x2",
    ),
    "not a module": (lambda: len, (INDICES,), "must be a torch.nn.Module, an ExportedProgram or a daedal.kernel, not"),
}


@pytest.mark.parametrize("case", MODULES)
def test_unsupported_modules(ddr3: daedal.Device, case: str) -> None:
    make, inputs, message = MODULES[case]
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.compile(make(), inputs, device=ddr3)


INPUTS: dict[str, tuple[Sequence[Any], type[Exception], str]] = {
    "float indices": ((INDICES.float(), OFFSETS), daedal.UnsupportedOperation, "not torch.float32"),
    "short indices": ((INDICES.short(), OFFSETS), daedal.UnsupportedOperation, "not torch.int16"),
    "short offsets": ((INDICES, OFFSETS.short()), daedal.UnsupportedOperation, "offsets must be .*int16"),
    "list": (([1, 2], OFFSETS), daedal.UnsupportedOperation, "indices must be a tensor, not list"),
    "three dimensions": (
        (INDICES.reshape(1, 2, 2), OFFSETS),
        daedal.UnsupportedOperation,
        "1 or 2 dim.*not 3",
    ),
    "two and offsets": ((INDICES.reshape(2, 2), OFFSETS), daedal.InvalidOffsets, "offsets must be None"),
    "no offsets": ((INDICES,), daedal.InvalidOffsets, "offsets must be given"),
    "offsets of two": ((INDICES, OFFSETS.reshape(1, 2)), daedal.InvalidOffsets, "1 dimension, not 2"),
    "first": ((INDICES, torch.tensor([1, 2])), daedal.InvalidOffsets, "first offset must be 0, not 1"),
    "last": (
        (INDICES, torch.tensor([0, 5])),
        daedal.InvalidOffsets,
        "at most the number of indices, 4, not 5",
    ),
    "decreasing": ((INDICES, torch.tensor([0, 3, 1])), daedal.InvalidOffsets, "1"),
    "negative": ((INDICES, torch.tensor([0, -3, 1])), daedal.InvalidOffsets, "-3"),
    "between": ((INDICES, torch.tensor([0, 7, 4])), daedal.InvalidOffsets, "7"),
    "index": ((torch.tensor([1, 10]), OFFSETS), daedal.IndexOutOfRange, "embedding_bag of weight: .*10.*9 rows"),
    "negative index": ((torch.tensor([1, -1]), OFFSETS), daedal.IndexOutOfRange, "-1"),
    "huge index": ((torch.tensor([1, 2**40 + 1]), OFFSETS), daedal.IndexOutOfRange, str(2**40 + 1)),
    "weights": ((INDICES, OFFSETS, torch.ones(3)), daedal.UnsupportedOperation, r"shape.*\(4,\), not \(3,\)"),
    "too few": ((), daedal.UnsupportedOperation, r"inputs \(input, .*\) must be 1 to 3, not 0"),
    "too many": ((INDICES, OFFSETS, None, 3), daedal.UnsupportedOperation, "must be 1 to 3, not 4"),
    "sparse": ((INDICES.to_sparse(), OFFSETS), daedal.UnsupportedOperation, "indices must be dense, not"),
    "where, offset": (
        (INDICES, torch.tensor([0, 3, 1])),
        daedal.InvalidOffsets,
        "bag of weight: .*number 2 of the offsets.*after 3",
    ),
    "where, same value": (
        (INDICES, torch.tensor([0, 1, 3, 1])),
        daedal.InvalidOffsets,
        "number 3 of the offsets.*after 3",
    ),
    "where, outside": (
        (INDICES, torch.tensor([0, 2, 7, 4])),
        daedal.InvalidOffsets,
        "number 2 of the offsets.*after 2",
    ),
    "where, index": ((torch.tensor([1, 2, 9, 9]), OFFSETS), daedal.IndexOutOfRange, "9.*number 2 of the indices"),
    "wide weights": ((INDICES, OFFSETS, torch.ones(4).double()), daedal.UnsupportedOperation, "float64"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_bad_inputs(ddr3: daedal.Device, case: str) -> None:
    inputs, kind, message = INPUTS[case]
    module = nn.EmbeddingBag(9, 4, mode="sum")
    executable = daedal.compile(module, (INDICES, OFFSETS), device=ddr3)
    held = executable(INDICES, OFFSETS)
    with pytest.raises(kind, match=message) as caught:
        executable(*inputs)
    assert isinstance(caught.value, daedal.DaedalError)
    assert same_bits(executable(INDICES, OFFSETS), held)
    assert same_bits(held, module(INDICES, OFFSETS))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "example_inputs must be a tensor, a tuple of inputs or a dictionary .*, not NoneType"),
        ({3: INDICES}, "a tuple, or a dictionary by the names of the inputs"),
        ((), "must be 1 to 3, not 0"),
    ],
)
def test_example_inputs(ddr3: daedal.Device, inputs: Any, message: str) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.compile(nn.EmbeddingBag(9, 4), inputs, device=ddr3)


@pytest.mark.parametrize("device", [None, "emulator"])
def test_what_is_no_device(device: Any) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=f"Device.open or System.open gives, not {device!r}"):
        daedal.compile(nn.EmbeddingBag(9, 4), (INDICES, OFFSETS), device=device)


def test_sparse_tables(ddr3: daedal.Device) -> None:
    class Sparse(nn.Module):
        def forward(self, i: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
            return nn.functional.embedding(i, table)

    i = torch.tensor([1, 2])
    executable = daedal.compile(Sparse(), (i, torch.eye(4)), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation):
        executable(i, torch.eye(4).to_sparse())


def test_weights_must_go_with_sums(ddr3: daedal.Device) -> None:
    executable = daedal.compile(nn.EmbeddingBag(9, 4, mode="mean"), (INDICES, OFFSETS), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match="must go with mode 'sum', not 'mean'"):
        executable(INDICES, OFFSETS, torch.ones(4))


def test_last_offset_needs_an_offset(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(9, 4, include_last_offset=True)
    executable = daedal.compile(module, (INDICES, OFFSETS), device=ddr3)
    with pytest.raises(daedal.InvalidOffsets, match="at least one offset"):
        executable(INDICES, OFFSETS[:0])
    assert executable(INDICES, OFFSETS[:1]).shape == (0, 4)


def test_bags_that_cannot_be_counted(ddr3: daedal.Device) -> None:
    executable = daedal.compile(nn.EmbeddingBag(9, 4), (INDICES, OFFSETS), device=ddr3)
    indices = torch.zeros(1, dtype=torch.int32).expand(1 << 24)
    with pytest.raises(daedal.UnsupportedOperation, match="fewer than 16777216 rows, not 16777216"):
        executable(indices, OFFSETS[:1])
    with pytest.raises(daedal.UnsupportedOperation, match="fewer than 16777216 rows, not 16777216"):
        executable(indices.unsqueeze(0))


def test_rows_that_are_too_long(ddr3: daedal.Device) -> None:
    message = "at most 4194288 elements, not 4194289: take some columns at a time"
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.compile(nn.Embedding(1, 4194289), (INDICES,), device=ddr3)


def test_a_closed_device() -> None:
    with daedal.Device.open("emulator", config="edge") as device:
        executable = daedal.compile(nn.EmbeddingBag(9, 4), (INDICES, OFFSETS), device=device)
    with pytest.raises(daedal.DeviceClosed):
        executable(INDICES, OFFSETS)
    with pytest.raises(daedal.DeviceClosed):
        daedal.compile(nn.EmbeddingBag(9, 4), (INDICES, OFFSETS), device=device)


def test_a_table_that_does_not_fit() -> None:
    with daedal.Device.open("emulator", config="edge", memory_bytes=1 << 20) as device:
        small = nn.Embedding(9, 4)
        executable = daedal.compile(small, (INDICES,), device=device)
        expected = executable(INDICES)
        with pytest.raises(
            daedal.UnsupportedOperation, match="takes 2097152 bytes, and of the device's memory 1048576"
        ):
            daedal.compile(nn.Embedding(1 << 15, 16), (INDICES,), device=device)
        large = daedal.compile(nn.Embedding(1 << 14, 16), (INDICES,), device=device)
        with pytest.raises(daedal.OutOfDeviceMemory):
            large(INDICES)
        assert same_bits(executable(INDICES), expected)
