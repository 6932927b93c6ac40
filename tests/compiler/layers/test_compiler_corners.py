"""Corners of the numeric contract: layouts of tables and weights, long bags, long rows, signs, ties, infinities."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from tests import reference
from tests.compiler.layers.compiler_support import device, random_bags, same_bits, wild_table

__all__ = ["device"]

INF = float("inf")
INT64 = (torch.int64, torch.int64)
MODES = ("sum", "mean", "max", "weighted")

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda table: table,
    "every second column": lambda table: table.repeat_interleave(2, 1)[:, ::2],
    "transposed": lambda table: table.t().contiguous().t(),
    "columns of a wider one": lambda table: torch.cat([table, table, table], 1)[:, table.shape[1] : -table.shape[1]],
    "every second row": lambda table: table.repeat_interleave(2, 0)[::2],
    "rows of a longer one": lambda table: torch.cat([table, table], 0)[len(table) :],
    "one row for all": lambda table: table[:1].expand(len(table), -1),
}
"""Views with the content of a table that are laid out in another way."""


class Bags(nn.Module):
    """``F.embedding_bag`` over any tensor, with an end for the last bag."""

    def __init__(self, table: Tensor, mode: str, padding: int | None) -> None:
        super().__init__()
        self.table, self.mode, self.padding = table, "sum" if mode == "weighted" else mode, padding

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        return functional.embedding_bag(
            indices,
            self.table,
            offsets,
            mode=self.mode,
            per_sample_weights=weights,
            padding_idx=self.padding,
            include_last_offset=True,
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", MODES)
def test_layouts_and_padding(
    device: daedal.Device, layout: str, padding: int | None, mode: str, rng: np.random.Generator
) -> None:
    table = LAYOUTS[layout](wild_table(9, 21, rng))
    module = Bags(table, mode, padding)
    inputs: tuple[Any, ...] = random_bags(9, 7, rng, longest=20, types=INT64)
    if mode == "weighted":
        inputs = (*inputs, wild_table(1, len(inputs[0]), rng)[0])
    result = daedal.compile(module, inputs, device=device)(*inputs)
    assert same_bits(result, module(*inputs))
    expected = reference.embedding_bag(
        table.numpy(),
        inputs[0].numpy(),
        inputs[1].numpy(),
        mode=module.mode,
        weights=inputs[2].numpy() if mode == "weighted" else None,
        padding=padding,
        include_last_offset=True,
        contiguous=table.stride(1) == 1,
    )
    assert reference.same_bits(result.numpy(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_bag_of_100000_rows(device: daedal.Device, mode: str, rng: np.random.Generator) -> None:
    module = Bags(wild_table(300, 3, rng), mode, None)
    inputs: tuple[Any, ...] = (torch.from_numpy(rng.integers(0, 300, 100_001)), torch.tensor([0, 0, 100_000, 100_001]))
    if mode == "weighted":
        inputs = (*inputs, torch.from_numpy(rng.standard_normal(100_001).astype(np.float32)))
    assert same_bits(daedal.compile(module, inputs, device=device)(*inputs), module(*inputs))


@pytest.fixture(scope="module")
def edge() -> Iterator[daedal.Device]:
    """The golden model in configuration ``edge``."""
    with daedal.Device.open("emulator", config="edge") as opened:
        yield opened


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_5000_elements(edge: daedal.Device, mode: str, rng: np.random.Generator) -> None:
    module = Bags(wild_table(6, 5000, rng), mode, 1)
    inputs: tuple[Any, ...] = random_bags(6, 4, rng, types=INT64)
    if mode == "weighted":
        inputs = (*inputs, wild_table(1, len(inputs[0]), rng)[0])
    assert same_bits(daedal.compile(module, inputs, device=edge)(*inputs), module(*inputs))


def test_signs_of_zero(device: daedal.Device) -> None:
    table = torch.tensor([[-0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]])
    inputs = (torch.tensor([0, 0, 1, 1, 0]), torch.tensor([0, 1, 3, 5, 5]))
    for mode in ("sum", "mean", "max"):
        module = Bags(table, mode, None)
        result = daedal.compile(module, inputs, device=device)(*inputs)
        assert same_bits(result, module(*inputs))
        assert bool(torch.signbit(result).any()) == (mode == "max")
        assert not torch.signbit(result[3]).any()


def test_ties_of_subnormal_means(device: daedal.Device) -> None:
    tiny = 2.0**-149
    numbers = [n * tiny for n in (1, 2, 3, 5, 6, 7, 9, 11, 2**23 - 1, 2**23, 2**23 + 1, 2**24 - 1)]
    table = torch.tensor([[n, -n] for n in numbers] + [[0.0, -0.0]], dtype=torch.float32)
    bags = [[row] + [len(numbers)] * others for row in range(len(numbers)) for others in (1, 2, 3, 5, 7)]
    module = Bags(table, "mean", None)
    inputs = (torch.tensor([row for bag in bags for row in bag]), torch.tensor(np.cumsum([0, *map(len, bags)])))
    result = daedal.compile(module, inputs, device=device)(*inputs)
    assert same_bits(result, module(*inputs))
    halved = result[0, 0].item(), result[10, 0].item()
    assert halved == (0.0, 2 * tiny), "half of 1 and of 3 units go to the even neighbour"


@pytest.mark.parametrize("mode", MODES)
def test_infinities(device: daedal.Device, mode: str) -> None:
    table = torch.tensor([[INF, -INF, 3e38, 1.0], [-INF, -INF, 3e38, INF], [0.0, INF, -3e38, -INF]])
    module = Bags(table, mode, None)
    inputs: tuple[Any, ...] = (torch.tensor([0, 0, 1, 0, 2, 1, 2, 2, 1, 1]), torch.tensor([0, 1, 3, 5, 8, 10]))
    if mode == "weighted":
        inputs = (*inputs, torch.tensor([0.0, 1.0, -1.0, INF, 0.0, 2.0, -0.0, 1e-45, INF, -INF]))
    assert same_bits(daedal.compile(module, inputs, device=device)(*inputs), module(*inputs))
