"""Layers as PyTorch Geometric writes them, operations one behind the other, and tensors that change in between."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

NODES, EDGES, WIDTH = 23, 60, 32


def data(rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, both ends of edges, and weights of edges."""
    ends = torch.from_numpy(rng.integers(0, NODES - 1, (2, EDGES)))
    return wild_table(NODES, WIDTH, rng), ends, wild_table(1, EDGES, rng)[0]


def offloaded(layer: Any, inputs: tuple[Any, ...], device: daedal.Device) -> tuple[str, ...]:
    """What runs on the device, of results that are PyTorch's."""
    expected = layer(*(each.clone() for each in inputs))
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": device})
    with torch.no_grad():
        assert same_bits(fast(*(each.clone() for each in inputs)), expected)
    graph = daedal.graphs(device)[-1]
    assert graph.stats.launches == len(graph.offloaded)
    return tuple(graph.offloaded)


# ------------------------------------------------------------------ as PyTorch Geometric writes them


def spread(index: Tensor, like: Tensor) -> Tensor:
    return index.view((-1,) + (1,) * (like.dim() - 1)).expand_as(like)


def scatter(source: Tensor, index: Tensor, size: int, reduce: str) -> Tensor:
    shape = source.size()[:0] + (size,) + source.size()[1:]  # noqa: RUF005 - one node in the graph
    if reduce == "max":
        made = source.new_zeros(shape)
        return made.scatter_reduce_(0, spread(index, source), source, reduce="amax", include_self=False)
    total = source.new_zeros(shape).scatter_add_(0, spread(index, source), source)
    if reduce == "sum":
        return total
    count = source.new_zeros(size)
    count.scatter_add_(0, index, source.new_ones(source.size(0)))
    return total / spread(count.clamp(min=1), total)


def from_offsets(x: Tensor, ends: Tensor, reduce: str) -> Tensor:
    starts = torch.arange(0, EDGES + 1, 4, dtype=torch.int32)
    starts[3] = starts[2]
    return torch.segment_reduce(x.index_select(-2, ends[0]), reduce, offsets=starts)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_layers_of_pytorch_geometric(
    reduce: str, weighted: bool, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """Rows are along dim -2, and what is added to is made of a ``torch.Size``."""

    def layer(x: Tensor, ends: Tensor, weight: Tensor) -> Tensor:
        rows = x.index_select(-2, ends[0])
        return scatter(weight.view(-1, 1) * rows if weighted else rows, ends[1], x.size(0), reduce)

    x, ends, weight = data(rng)
    if reduce == "max":  # a maximum of zeros of both signs, and of NaN, is PyTorch's
        x, weight = (each.abs().clamp(1e-3, 1e3).nan_to_num(1.0) for each in (x, weight))
    found = offloaded(layer, (x, ends, weight), ddr3)
    assert len(found) == (2 if weighted and reduce == "max" else 1)


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_segments_by_offsets(reduce: str, exported: bool, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, ends, _ = data(rng)
    x = torch.where(x.isnan(), 1.0, x)

    def layer(x: Tensor, ends: Tensor) -> Tensor:
        return from_offsets(x, ends, reduce)

    if exported:
        executable = daedal.compile(Layer(layer), (x, ends), device=ddr3)
        assert same_bits(executable(x, ends), layer(x, ends)) and executable.offloaded == ("segment_reduce",)
    else:
        assert offloaded(layer, (x, ends), ddr3) == ("segment_reduce",)


@pytest.mark.parametrize("bad", [[1, 3, 60], [0, 5, 3], [0, 61]])
def test_offsets_that_are_none(bad: list[int], ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def layer(x: Tensor, starts: Tensor) -> Tensor:
        return torch.segment_reduce(x, "sum", offsets=starts)

    executable = daedal.compile(Layer(layer), (wild_table(EDGES, 4, rng), torch.tensor([0, 5, 60])), device=ddr3)
    call = next(iter(executable._program.calls))
    with pytest.raises(daedal.UnsupportedOperation, match="offsets must start from 0, not decrease, and end at the"):
        call.request(wild_table(EDGES, 4, rng), None, None, torch.tensor(bad))


@pytest.mark.parametrize("reduce", ["mean", "amax"])
def test_maxima_and_means_of_weighted_rows(reduce: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """A weight may turn an order round: a maximum is not one of rows as they are."""
    x, ends, _ = data(rng)
    x, weight = x.nan_to_num(1.0).abs() + 1, torch.from_numpy(rng.choice([-1.0, 2.0], EDGES).astype(np.float32))

    def layer(x: Tensor, ends: Tensor, weight: Tensor) -> Tensor:
        message = x.index_select(0, ends[0]) * weight.view(-1, 1)
        index = ends[1].view(-1, 1).expand(-1, WIDTH)
        return torch.zeros_like(x).scatter_reduce(0, index, message, reduce, include_self=False)

    assert offloaded(layer, (x, ends, weight), ddr3) == (
        ("scatter_reduce",) if reduce == "mean" else ("index_select", "scatter_reduce")
    )


def test_one_weight_for_all_rows(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def layer(x: Tensor, ends: Tensor, weight: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, ends[1], x.index_select(0, ends[0]) * weight)

    x, ends, _ = data(rng)
    assert offloaded(layer, (x, ends, torch.tensor([[2.5]])), ddr3) == ()
    assert "there must be a weight for each of the 60 rows" in daedal.graphs(ddr3)[-1].explain()


GATHERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "2-D": lambda x, i: x[i.view(-1, 4)],
    "3-D": lambda x, i: x[i.view(-1, 2, 2)],
    "whole rows": lambda x, i: x[i, :],
    "tuple": lambda x, i: x[(i,)],
    "dim -2": lambda x, i: x.index_select(-2, i),
    "gather along dim -2": lambda x, i: torch.gather(x, -2, i.view(-1, 1).expand(-1, WIDTH)),
    "gather of one column": lambda x, i: torch.gather(x[:, :1], 0, i.view(-1, 1)),
    "pooled": lambda x, i: x[i.view(-1, 4)].sum(1),
    "pooled mean": lambda x, i: x[i.view(-1, 4)].mean(1, keepdim=True),
}  # fmt: skip


@pytest.mark.parametrize("name", GATHERS)
def test_gathers(name: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, ends, _ = data(rng)
    indices = ends[0] - (5 if name in ("2-D", "tuple", "pooled") else 0)
    assert len(offloaded(GATHERS[name], (x, indices), ddr3)) == 1


def test_a_gather_whose_columns_differ(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """It stays in PyTorch, alone or beside a lookup, and explain() names it and says why."""

    def mixed(x: Tensor, indices: Tensor) -> Tensor:
        return torch.gather(x, 0, indices) + x.index_select(0, indices[:, 0])

    x, indices = wild_table(9, 6, rng), torch.from_numpy(rng.integers(0, 9, (12, 6)))
    why = "gather: in PyTorch, because the index must be one column, expanded to the table's width, to name whole rows"
    for layer, count in ((mixed, 1), (lambda x, i: x.gather(-2, i), 0)):
        torch._dynamo.reset()
        compiled = torch.compile(layer, backend="daedal", options={"device": ddr3})
        with torch.no_grad():
            assert same_bits(compiled(x, indices), layer(x, indices))
        graph = daedal.graphs(ddr3)[-1]
        assert len(graph.offloaded) == graph.stats.launches == count
        (line,) = (line for line in graph.explain().splitlines() if "gather" in line and "in PyTorch" in line)
        assert line.startswith(why)
    with pytest.raises(daedal.UnsupportedOperation, match="gather: the index must be one column, expanded"):
        daedal.compile(Layer(lambda x, i: torch.gather(x, 0, i)), (x, indices), device=ddr3)
    along_rows = torch.compile(lambda x, i: torch.gather(x, 1, i % 6), backend="daedal", options={"device": ddr3})
    assert same_bits(along_rows(x, indices[:9]), torch.gather(x, 1, indices[:9] % 6))
    assert "gather: in PyTorch, because rows are gathered along dim 0" in daedal.graphs(ddr3)[-1].explain()


# ------------------------------------------------------------------ one behind the other


def convolution(x: Tensor, ends: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add_(0, ends[1], x.index_select(0, ends[0]))


CHAINS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "two layers": lambda x, ends: convolution(convolution(x, ends), ends),
    "mean of layers": lambda x, ends: (x + (a := convolution(x, ends)) + convolution(a, ends)) / 3,
    "gathers": lambda x, ends: x.index_select(0, ends[0]).index_select(0, ends[1]),
    "lookups": lambda x, ends: functional.embedding(ends[0], functional.embedding(ends[1], x)),
    "pooled lookups": lambda x, ends: functional.embedding(ends, functional.embedding(ends[0], x)).sum(1),
    "bag of a lookup": lambda x, ends: functional.embedding_bag(ends, functional.embedding(ends[0], x), mode="sum"),
    "bag of bags": lambda x, ends: functional.embedding_bag(
        ends % 3, functional.embedding_bag(ends[0].view(-1, 4), x, mode="sum"), mode="sum"
    ),
    "layer of bags": lambda x, ends: convolution(
        functional.embedding_bag(ends[0, :46].view(-1, 2), x, mode="sum"), ends
    ),
}


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_an_operation_on_the_result_of_another(
    name: str, exported: bool, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    x, ends, _ = data(rng)
    x = wild_table(NODES, WIDTH, rng)
    if exported:
        executable = daedal.compile(Layer(CHAINS[name]), (x, ends), device=ddr3)
        assert same_bits(executable(x, ends), CHAINS[name](x, ends))
        assert len(executable.offloaded) == 2 == executable.stats.launches
    else:
        assert len(offloaded(CHAINS[name], (x, ends), ddr3)) == 2


# ------------------------------------------------------------------ tensors that change in between


def changing(what: str) -> Callable[..., Tensor]:
    """A sum by destination of rows times weights, and of that something that changes before the sum."""

    def layer(x: Tensor, ends: Tensor, weight: Tensor) -> Tensor:
        x, ends, weight, base = x * 1, ends * 1, weight * 1, torch.zeros_like(x)
        rows = x.index_select(0, ends[0])
        if what == "rows":
            rows.mul_(2.0)
        message = rows * weight.view(-1, 1)
        if what == "table":
            x.view(-1).mul_(2.0)
        elif what == "indices":
            ends[0].zero_()
        elif what == "weights":
            weight += 1
        elif what == "message":
            functional.relu(message, inplace=True)
        elif what == "base":
            base[3].fill_(1.0)
        elif what == "another":
            torch.ones(3).mul_(2.0)
        return base.index_add(0, ends[1], message)

    return layer


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize("what", ["rows", "table", "indices", "weights", "message", "base", "another"])
def test_changes_in_between(what: str, exported: bool, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, ends, weight = data(rng)
    layer = changing(what)
    if exported:
        executable = daedal.compile(Layer(layer), (x, ends, weight), device=ddr3)
        assert same_bits(executable(x, ends, weight), layer(x, ends, weight))
        found = tuple(executable.offloaded)
    else:
        found = offloaded(layer, (x, ends, weight), ddr3)
    assert len(found) == {"base": 1, "another": 1}.get(what, 2)


@pytest.mark.parametrize("what", ["table", "rows", "nothing"])
def test_changes_before_a_sum_of_lookups(what: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def layer(x: Tensor, ends: Tensor) -> Tensor:
        x = x * 1
        rows = functional.embedding(ends, x)
        if what != "nothing":
            (x if what == "table" else rows.view(-1)).mul_(2.0)
        return rows.sum(1)

    x, ends, _ = data(rng)
    (found,) = offloaded(layer, (x, ends), ddr3)
    assert found.startswith("sum") == (what == "nothing")
