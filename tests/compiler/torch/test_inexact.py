"""``exact=False``: sums of looked-up rows that PyTorch adds in an order of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.ops import csr_order
from tests.compiler.layers.compiler_support import ddr3, same_bits
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

ROWS = 40


def summed(table: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    return functional.embedding(places, table).sum(1)


def averaged(table: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    return table[places].mean(1)


def masked(table: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    return (functional.embedding(places, table) * mask.unsqueeze(-1)).sum(1)


def in_a_chain(layer: Callable[..., Tensor], table: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """One row after the other."""
    total = torch.zeros(len(places), table.shape[1])
    for number in range(places.shape[1]):
        rows = table[places[:, number]]
        total = total + (rows * mask[:, number, None] if layer is masked else rows)
    return total / places.shape[1] if layer is averaged else total


def data(width: int, length: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    table = torch.from_numpy(rng.standard_normal((ROWS, width)).astype(np.float32))
    places = torch.from_numpy(rng.integers(0, ROWS, (5, length)))
    return table, places, torch.from_numpy(rng.integers(0, 2, (5, length)).astype(np.float32))


@pytest.mark.parametrize(("width", "length"), [(16, 9), (5, 40), (1, 7), (33, 300), (32, 300)])
@pytest.mark.parametrize("layer", [summed, averaged, masked])
@pytest.mark.parametrize("door", ["compile", "dynamo"])
def test_sums_in_another_order(
    door: str, layer: Callable[..., Tensor], width: int, length: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    inputs = data(width, length, rng)
    call: Any
    if door == "compile":
        call = daedal.compile(Layer(layer), inputs, device=ddr3, exact=False)
    else:
        call = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3, "exact": False})
    with torch.no_grad():
        found = call(*inputs)
    executable = call if door == "compile" else daedal.graphs(ddr3)[-1]
    assert executable.stats.launches == 1 == len(executable.offloaded)
    assert same_bits(found, in_a_chain(layer, *inputs))
    assert torch.allclose(found, layer(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layer", [summed, averaged, masked])
def test_where_the_order_is_known_it_stays(
    layer: Callable[..., Tensor], ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    inputs = data(64, 40, rng)
    executable = daedal.compile(Layer(layer), inputs, device=ddr3, exact=False)
    assert same_bits(executable(*inputs), layer(*inputs)) and executable.stats.launches == 1


def test_exact_is_the_default_and_says_how_else(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    inputs = data(16, 9, rng)
    executable = daedal.compile(Layer(summed), inputs, device=ddr3)
    assert same_bits(executable(*inputs), summed(*inputs))
    assert "others of float32 with exact=False" in executable.explain()


def test_sums_of_no_rows_are_pytorchs(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(Layer(averaged), data(16, 9, rng), device=ddr3, exact=False)
    inputs = data(16, 0, rng)
    assert same_bits(executable(*inputs), averaged(*inputs))


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_products_of_narrow_rows(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    matrix = torch.from_numpy(rng.standard_normal((30, 40)).astype(np.float32)).to_sparse_csr()
    executable = daedal.compile(Layer(torch.mm), (matrix, data(16, 1, rng)[0]), device=ddr3, exact=False)
    table = data(16, 1, rng)[0]
    found = executable(matrix, table)
    assert executable.stats.launches == 1
    has_an_order = csr_order.order_of(16) is not None  # on some processors PyTorch's is the machine's
    assert same_bits(found, (matrix if has_an_order else matrix.to_sparse_coo()) @ table)


def test_what_is_refused(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    inputs = data(16, 9, rng)
    with pytest.raises(ValueError, match="exact must be True or False, not 0"):
        daedal.compile(Layer(summed), inputs, device=ddr3, exact=0)  # type: ignore[call-overload]
    with pytest.raises(Exception, match="exact must be True or False, not 'no'"):
        torch.compile(summed, backend="daedal", options={"device": ddr3, "exact": "no"})(*inputs)
    executable = daedal.compile(Layer(summed), inputs, device=ddr3, exact=False)
    with pytest.raises(daedal.UnsupportedOperation, match="cannot hold what was compiled with exact=False"):
        executable.save(tmp_path / "it.daedal")
