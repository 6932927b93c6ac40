"""Masked and weighted sums of histories: rows of a table times a number each, summed, as sequence recommenders do."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import ddr3, device, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "device", "fresh"]

Function = Callable[[Tensor, Tensor, Tensor], Tensor]

POOLED: dict[str, Function] = {
    "mask": lambda t, h, w: (functional.embedding(h, t) * (h > 0).unsqueeze(-1).float()).sum(1),
    "mask of bools": lambda t, h, w: (functional.embedding(h, t) * (h > 0).unsqueeze(-1)).sum(1),
    "masked mean": lambda t, h, w: (
        (functional.embedding(h, t) * (m := (h > 0).unsqueeze(-1).float())).sum(1) / m.sum(1).clamp(min=1)
    ),
    "weights": lambda t, h, w: (t[h] * w.unsqueeze(2)).sum(1),
    "weights first": lambda t, h, w: (w[:, :, None] * t[h]).sum(dim=1, keepdim=True),
    "mean of products": lambda t, h, w: (t[h] * w.unsqueeze(2)).mean(1),
}


@pytest.mark.parametrize("width", [4, 32, 64])
@pytest.mark.parametrize("case", POOLED)
def test_weighted_histories(device: daedal.Device, case: str, width: int, rng: np.random.Generator) -> None:
    """One launch, whatever the length, with the bits of PyTorch's order of additions."""
    function = POOLED[case]
    executable = None
    for users, length in ((6, 11), (3, 16), (5, 50), (1, 1), (2, 33)):
        table = wild_table(40, width, rng)
        history = torch.from_numpy(rng.integers(0, 40, (users, length))) * torch.from_numpy(
            rng.integers(0, 2, (users, length))
        )
        weights = torch.from_numpy(rng.standard_normal((users, length)).astype(np.float32))
        executable = executable or daedal.compile(Layer(function), (table, history, weights), device=device)
        expected = function(table, history, weights)
        assert same_bits(executable(table, history, weights), expected), (users, length)
        assert executable.stats.launches == 1 and len(executable.offloaded) == 1, executable.explain()


LEFT: dict[str, Function] = {
    "a weight for each element": lambda t, h, w: (t[h] * torch.ones(h.shape[0], h.shape[1], t.shape[1])).sum(1),
    "rows used elsewhere": lambda t, h, w: (r := t[h])[:, 0] + (r * w.unsqueeze(2)).sum(1),
    "products used elsewhere": lambda t, h, w: (p := t[h] * w.unsqueeze(2))[:, 0] + p.sum(1),
    "along the columns": lambda t, h, w: (t[h] * w.unsqueeze(2)).sum(2),
    "of doubles": lambda t, h, w: (t[h] * w.unsqueeze(2).double()).sum(1),
    "a weight for each place": lambda t, h, w: (t[h] * w[:1].unsqueeze(2)).sum(1),
}


@pytest.mark.parametrize("case", LEFT)
def test_other_sums_of_products(ddr3: daedal.Device, case: str, rng: np.random.Generator) -> None:
    """The gather runs on the device, and PyTorch does the rest."""
    function = LEFT[case]
    table, history = wild_table(40, 32, rng), torch.from_numpy(rng.integers(0, 40, (6, 20)))
    weights = torch.from_numpy(rng.standard_normal((6, 20)).astype(np.float32))
    executable = daedal.compile(Layer(function), (table, history, weights), device=ddr3)
    found, expected = executable(table, history, weights), function(table, history, weights)
    assert found.dtype is expected.dtype and found.numpy().tobytes() == expected.numpy().tobytes()
    assert executable.offloaded == ("index",)
