"""Results without elements: they have the strides that PyTorch gives them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree as pytree

import daedal
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

TABLE, WIDE = torch.arange(40.0).view(10, 4), torch.ones(10, 32)
EYE = torch.eye(3, 10)


def none(*sizes: int) -> Tensor:
    return torch.zeros(sizes, dtype=torch.int64)


def two_bags(indices: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    first, second = (functional.embedding_bag(indices, each, offsets, mode="sum") for each in (TABLE, TABLE * 2))
    return torch.cat([first, second], 1), first


def added(keys: Tensor, base: Tensor) -> Tensor:
    return torch.zeros_like(base).index_add(0, keys, TABLE.index_select(0, keys))


def scattered(keys: Tensor, base: Tensor) -> Tensor:
    wide = keys.view(-1, 1).expand(-1, 4)
    return torch.zeros_like(base).scatter_reduce(0, wide, TABLE[: len(keys)], "amax", include_self=False)


PAIRS = torch.tensor([[1, 2], [3, 4]])
KEYS, OFFSETS = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
LAYERS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], list[tuple[Tensor, ...]]]] = {
    "embedding": (
        functional.embedding,
        (PAIRS, TABLE),
        [
            (none(0, 2), TABLE),
            (none(2, 0), TABLE),
            (none(0, 0), TABLE),
            (none(0, 2), TABLE[:0]),
            (PAIRS, TABLE[:, :0]),
        ],
    ),
    "index": (lambda i, x: x[i], (PAIRS, TABLE), [(none(0, 2), TABLE), (none(2, 0), TABLE), (PAIRS, TABLE[:, :0])]),
    "index_select": (lambda i, x: x.index_select(0, i), (KEYS, TABLE), [(none(0), TABLE), (KEYS, TABLE[:, :0])]),
    "gather": (lambda i, x: x.gather(0, i.view(-1, 1).expand(-1, 4)), (KEYS, TABLE), [(none(0), TABLE)]),
    "bags of rows": (lambda i: functional.embedding_bag(i, TABLE), (PAIRS,), [(none(0, 2),)]),
    "bags": (two_bags, (KEYS, OFFSETS), [(none(0), none(0)), (KEYS, none(0)), (none(0), none(1))]),
    "sums": (lambda i: functional.embedding(i, WIDE).sum(1), (PAIRS,), [(none(0, 2),), (none(2, 0),), (none(0, 0),)]),
    "kept": (lambda i: functional.embedding(i, WIDE).sum(1, keepdim=True), (PAIRS,), [(none(0, 2),), (none(2, 0),)]),
    "added": (added, (KEYS, TABLE), [(none(0), TABLE[:0]), (none(0), TABLE)]),
    "scattered": (scattered, (KEYS, TABLE), [(none(0), TABLE[:0]), (none(0), TABLE)]),
}


def check(run: Callable[..., Any], layer: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    for found, expected in zip(pytree.tree_leaves(run(*inputs)), pytree.tree_leaves(layer(*inputs)), strict=True):
        assert found.stride() == expected.stride() and found.dtype is expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", LAYERS)
def test_strides_of_empty_results(name: str, ddr3: daedal.Device) -> None:
    layer, examples, others = LAYERS[name]
    executable = daedal.compile(Layer(layer), examples, device=ddr3)
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    with torch.no_grad():
        for run in (executable, fast, lambda *inputs: executable.submit(*inputs).result()):
            for inputs in (examples, *others, *others):
                check(run, layer, inputs)


@pytest.mark.parametrize("matrix", [torch.zeros(0, 10), torch.zeros(3, 10)])
def test_empty_sparse_matrices(matrix: Tensor, ddr3: daedal.Device) -> None:
    executable = daedal.compile(Layer(torch.sparse.mm), (EYE.to_sparse(), TABLE), device=ddr3)
    for table in (TABLE, TABLE[:, :0]):
        check(executable, torch.sparse.mm, (matrix.to_sparse(), table))


def test_a_view_of_an_empty_result(ddr3: daedal.Device) -> None:
    """Some views ask for strides."""
    layer = Layer(lambda i: torch.view_as_complex(functional.embedding(i, TABLE[:, :2].contiguous())).abs())
    executable = daedal.compile(layer, (KEYS,), device=ddr3)
    check(executable, layer, (none(0),))


def put(keys: Tensor, rows: Tensor) -> Tensor:
    return torch.zeros(5, rows.shape[1]).index_put((keys,), rows, accumulate=True)


def parts_added(keys: Tensor, rows: Tensor) -> Tensor:
    """Rows in parts, each of which has a weight."""
    wide = rows.unsqueeze(1).expand(-1, 2, -1) * torch.ones(len(rows), 2, 1)
    return torch.zeros(5, 2, rows.shape[1]).index_add(0, keys, wide)


PLACED: dict[str, Callable[..., Tensor]] = {
    "index_add": lambda keys, rows: torch.zeros(5, rows.shape[1]).index_add(0, keys, rows),
    "scatter_add": lambda keys, rows: torch.zeros(5, rows.shape[1]).scatter_add(
        0, keys.view(-1, 1).expand(-1, rows.shape[1]), rows
    ),
    "index_put": put,
    "parts": parts_added,
    "index": lambda keys, rows: rows[keys],
    "embedding": functional.embedding,
    "bags": lambda keys, rows: functional.embedding_bag(keys.view(1, -1), rows, mode="max"),
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("place", [9, -9])
def test_places_out_of_range_of_rows_without_elements(name: str, place: int, ddr3: daedal.Device) -> None:
    """PyTorch looks at some of them, and not at others: so it is here."""
    keys, rows = torch.tensor([1, place, 3]), torch.zeros(3, 0)
    executable = daedal.compile(Layer(PLACED[name]), (torch.tensor([1, 2, 0]), rows), device=ddr3)
    if name in ("embedding", "bags"):
        for run in (PLACED[name], executable):
            with pytest.raises(RuntimeError, match=f"[ =]{place}"):
                run(keys, rows)
    else:
        assert executable(keys, rows).shape == PLACED[name](keys, rows).shape
