"""Maxima on the golden model against PyTorch and the C reference, bit for bit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests import reference
from tests.compiler.layers.compiler_support import device, random_bags, same_bits, wild_table
from tests.reference.layers import SPECIAL

__all__ = ["device"]

INF, NAN = float("inf"), float("nan")


def special_table(rows: int, width: int, rng: np.random.Generator) -> Tensor:
    """Mostly zeros of both signs, infinities, NaN and subnormals."""
    table = rng.standard_normal((rows, width)).astype(np.float32)
    return torch.from_numpy(np.where(rng.random((rows, width)) < 0.7, rng.choice(SPECIAL, (rows, width)), table))


def check(device: daedal.Device, module: nn.EmbeddingBag, *inputs: Any) -> Any:
    """The executable, which gives what PyTorch and the C reference give."""
    executable = daedal.compile(module, inputs, device=device)
    result = executable(*inputs)
    assert same_bits(result, module(*(value.long() for value in inputs)))
    expected = reference.embedding_bag(
        module.weight.detach().numpy(),
        inputs[0].numpy(),
        inputs[1].numpy(),
        mode="max",
        padding=module.padding_idx,
        include_last_offset=module.include_last_offset,
    )
    assert reference.same_bits(result.numpy(), expected)
    return executable


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 31, 64, 65, 256, 257, 600])
@pytest.mark.parametrize("padding", [None, 3, -1])
def test_maxima_of_every_width(
    device: daedal.Device, width: int, padding: int | None, rng: np.random.Generator
) -> None:
    for table in (wild_table(12, width, rng), special_table(12, width, rng)):
        module = nn.EmbeddingBag.from_pretrained(table, mode="max", padding_idx=padding, include_last_offset=True)
        check(device, module, *random_bags(12, 9, rng, types=(torch.int32, torch.int64)))


def test_the_first_row_is_taken_as_it_is_and_later_ones_only_if_greater(device: daedal.Device) -> None:
    table = torch.tensor([[NAN, 1.0, -INF, -0.0], [1.0, NAN, NAN, 0.0], [-1e-45, 2.0, -3e38, -0.0], [0.0] * 4])
    module = nn.EmbeddingBag.from_pretrained(table, mode="max", padding_idx=3)
    bags = [[0, 1], [1, 0], [0, 1, 2], [], [3, 3], [3, 2], [2], [0, 3], [3, 0, 1], [1, 2, 2, 3]]
    offsets = torch.tensor(np.cumsum([0, *map(len, bags)])[:-1])
    executable = check(device, module, torch.tensor([index for bag in bags for index in bag]), offsets)
    result = executable(torch.tensor([0, 1, 3, 3, 2]), torch.tensor([0, 2, 4]))
    assert same_bits(result[0], torch.tensor([NAN, 1.0, -INF, -0.0]))
    assert same_bits(result[1], torch.zeros(4))
    assert same_bits(result[2], table[2])


def test_bags_of_one_length(device: daedal.Device, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(special_table(12, 20, rng), mode="max")
    for shape in ((3, 5), (1, 1), (0, 3), (4, 9)):
        inputs = torch.from_numpy(rng.integers(0, 12, shape))
        assert same_bits(daedal.compile(module, inputs, device=device)(inputs), module(inputs))


def test_a_row_costs_one_instruction(device: daedal.Device) -> None:
    module = nn.EmbeddingBag(20, 64, mode="max", padding_idx=0)
    executable = daedal.compile(module, (torch.tensor([1, 2]), torch.tensor([0])), device=device)
    assert executable.asm().count("instruction") == 2
    assert "instruction 0 code op=max a.kind=queue last=1" in executable.asm()
    for level in ("scf", "slc", "slcv", "dlc"):
        assert "emb" not in executable.ir(level)
    assert "arith.cmpf ogt" in executable.ir("scf")
