"""Layers on the golden model against PyTorch, bit for bit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import device, random_bags, same_bits, wild_table

__all__ = ["device"]

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 65, 100, 256, 257, 600)
TYPES = ((torch.int32, torch.int64), (torch.int64, torch.int32), (torch.int32, torch.int32))


def as_torch_wants(value: Any) -> Any:
    """Integers of one type, which PyTorch takes in all versions."""
    return value.long() if isinstance(value, Tensor) and value.dtype == torch.int32 else value


def check(executable: Any, module: nn.Module, *inputs: Any) -> None:
    expected = module(*map(as_torch_wants, inputs))
    assert same_bits(executable(*inputs), expected)


def bag(table: Tensor, **options: Any) -> nn.EmbeddingBag:
    return nn.EmbeddingBag.from_pretrained(table, **options)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_every_width(device: daedal.Device, width: int, mode: str, rng: np.random.Generator) -> None:
    module = bag(wild_table(50, width, rng), mode=mode, include_last_offset=True)
    inputs = random_bags(50, 7, rng, types=(torch.int64, torch.int64))
    check(daedal.compile(module, inputs, device=device), module, *inputs)


@pytest.mark.parametrize("types", TYPES, ids=str)
@pytest.mark.parametrize("include_last_offset", [False, True])
@pytest.mark.parametrize("padding", [None, 11, -12])
@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
def test_options_of_bags(
    device: daedal.Device,
    types: tuple[Any, Any],
    include_last_offset: bool,
    padding: int | None,
    mode: str,
    rng: np.random.Generator,
) -> None:
    module = bag(
        wild_table(12, 20, rng),
        mode="sum" if mode == "weighted" else mode,
        include_last_offset=include_last_offset,
        padding_idx=padding,
    )
    indices, offsets = random_bags(12, 6, rng, types=types)
    inputs = [indices, offsets if include_last_offset else offsets[:-1]]
    if mode == "weighted":
        inputs.append(wild_table(1, len(indices), rng)[0])
    check(daedal.compile(module, inputs, device=device), module, *inputs)


@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 1), (1, 9), (0, 3)])
def test_bags_of_one_length(device: daedal.Device, mode: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    module = bag(wild_table(12, 20, rng), mode="sum" if mode == "weighted" else mode, padding_idx=3)
    inputs: list[Tensor | None] = [torch.from_numpy(rng.integers(0, 12, shape))]
    if mode == "weighted":
        inputs += [None, wild_table(*shape, rng) if shape[0] else torch.zeros(shape)]
    check(daedal.compile(module, inputs, device=device), module, *inputs)


@pytest.mark.parametrize("layout", ["contiguous", "columns", "transposed"])
@pytest.mark.parametrize("stride", [1, 2])
def test_rounding_follows_the_layout(device: daedal.Device, layout: str, stride: int, rng: np.random.Generator) -> None:
    def table_of(*shape: int) -> Tensor:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    table = {
        "contiguous": lambda: table_of(20, 24),
        "columns": lambda: table_of(20, 48)[:, 7:31],
        "transposed": lambda: table_of(24, 20).t(),
    }[layout]()
    indices, offsets = random_bags(20, 9, rng, longest=30, types=(torch.int64, torch.int64))
    weights = table_of(stride * len(indices))[::stride]

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = table

        def forward(self, i: Tensor, o: Tensor, w: Tensor) -> Tensor:
            return functional.embedding_bag(
                i, self.table, o, mode="sum", per_sample_weights=w, include_last_offset=True
            )

    module = Weighted()
    executable = daedal.compile(module, (indices, offsets, weights), device=device)
    check(executable, module, indices, offsets, weights)


@pytest.mark.parametrize("width", WIDTHS)
def test_lookups_of_every_width(device: daedal.Device, width: int, rng: np.random.Generator) -> None:
    module = nn.Embedding.from_pretrained(wild_table(30, width, rng), padding_idx=3)
    indices = torch.from_numpy(rng.integers(0, 30, 17))
    check(daedal.compile(module, (indices,), device=device), module, indices)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_lookups_of_every_shape(device: daedal.Device, kind: Any, rng: np.random.Generator) -> None:
    module = nn.Embedding.from_pretrained(wild_table(30, 6, rng))
    executable = daedal.compile(module, (torch.zeros(2, dtype=kind),), device=device)
    for shape in ((), (1,), (0,), (3, 4), (2, 0, 3), (2, 1, 3)):
        check(executable, module, torch.from_numpy(rng.integers(0, 30, shape)).to(kind).reshape(shape))


def test_special_values(device: daedal.Device) -> None:
    inf, nan = float("inf"), float("nan")
    table = torch.tensor([[0.0, -0.0, 1e-45, inf], [-0.0, -0.0, 1e-45, -inf], [nan, 1.0, 3e38, 1.0]])
    module = bag(table, mode="sum", include_last_offset=True)
    inputs = (torch.tensor([1, 0, 1, 2, 2, 1]), torch.tensor([0, 0, 1, 3, 5, 6]))
    executable = daedal.compile(module, inputs, device=device)
    check(executable, module, *inputs)
    weights = torch.tensor([0.0, -0.0, 1.0, 2.0, nan, 0.5])
    weighted = daedal.compile(module, (*inputs, weights), device=device)
    check(weighted, module, *inputs, weights)


def test_no_bags(device: daedal.Device) -> None:
    module = bag(torch.ones(4, 3), mode="mean")
    empty = torch.zeros(0, dtype=torch.int64)
    executable = daedal.compile(module, (torch.tensor([1]), torch.tensor([0])), device=device)
    assert executable(empty, empty).shape == (0, 3)
    assert executable(torch.tensor([1, 2]), empty).shape == (0, 3)
    assert executable(empty, torch.tensor([0])).tolist() == [[0.0, 0.0, 0.0]]


def test_indices_beyond_the_last_offset_are_not_read(device: daedal.Device) -> None:
    module = bag(torch.ones(4, 3), mode="sum", include_last_offset=True)
    inputs = (torch.tensor([1, 2, 99]), torch.tensor([0, 2]))
    assert daedal.compile(module, inputs, device=device)(*inputs).tolist() == [[2.0, 2.0, 2.0]]


@pytest.mark.parametrize("padding", [-1, -5, 19])
def test_padding_counts_from_the_end_in_the_operation_itself(
    device: daedal.Device, padding: int, rng: np.random.Generator
) -> None:
    """``nn.EmbeddingBag`` makes it positive before the operation sees it; here nobody does."""

    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(wild_table(20, 8, rng))

        def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return torch.embedding_bag(self.table, indices, offsets, False, 0, False, None, True, padding)[0]

    module = Direct()
    inputs = random_bags(20, 30, rng, types=(torch.int64, torch.int64))
    executable = daedal.compile(module, inputs, device=device)
    assert executable.offloaded
    assert same_bits(executable(*inputs), module(*inputs))
