"""Rows of more than one dimension, as attention heads have them, and sizes that are asked of gathered rows."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def column(index: Tensor, like: Tensor) -> Tensor:
    """An index as PyTorch Geometric expands it."""
    return index.view([-1] + [1] * (like.dim() - 1)).expand_as(like)


def zeros(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


MESSAGES: dict[str, Function] = {
    "index_add": lambda x, e, w: zeros(x).index_add(0, e[1], x.index_select(0, e[0])),
    "a dimension from the end": lambda x, e, w: zeros(x).index_add(-x.dim(), e[1], x.index_select(-x.dim(), e[0])),
    "scatter_add_": lambda x, e, w: zeros(x).scatter_add_(0, column(e[1], x[e[0]]), x[e[0]]),
    "mean": lambda x, e, w: zeros(x).scatter_reduce(0, column(e[1], x[e[0]]), x[e[0]], "mean", include_self=False),
    "amax": lambda x, e, w: zeros(x).scatter_reduce(0, column(e[1], x[e[0]]), x[e[0]], "amax", include_self=False),
    "a weight for each head": lambda x, e, w: zeros(x).index_add(0, e[1], x.index_select(0, e[0]) * w),
    "weights first": lambda x, e, w: zeros(x).index_add(0, e[1], w * x[e[0]]),
    "from the end": lambda x, e, w: zeros(x).index_add(0, e[1], x[e[0] - len(x)] * w),
    "a weight for all": lambda x, e, w: zeros(x).index_add(
        0, e[1], x[e[0]] * w.flatten(1)[:, :1].reshape(-1, *(1,) * (x.dim() - 1))
    ),
    "no gather": lambda x, e, w: zeros(x).index_add(0, e[1][: len(x)], x),
    "gather alone": lambda x, e, w: x[e[0]] * 2.0 + x.index_select(0, e[1]),
}


@pytest.mark.parametrize("shape", [(40, 2, 16), (9, 8, 3), (30, 1, 5), (12, 2, 3, 4)])
@pytest.mark.parametrize("case", MESSAGES)
def test_heads(ddr3: daedal.Device, case: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = wild_table(shape[0], int(np.prod(shape[1:])), rng).view(shape).nan_to_num(1.0) + 0.0
    e = torch.from_numpy(rng.integers(0, shape[0], (2, 150)))
    w = torch.from_numpy(rng.standard_normal((150, *shape[1:-1], 1)).astype(np.float32))
    function = MESSAGES[case]
    compiled = torch.compile(function, backend="daedal", options={"device": ddr3})
    executable = daedal.compile(Layer(function), (x, e, w), device=ddr3)
    with torch.no_grad():
        expected = function(x, e, w)
        assert same_bits(compiled(x, e, w), expected) and same_bits(executable(x, e, w), expected)
    for stats in (daedal.graphs(ddr3)[-1].stats, executable.stats):
        assert stats.launches == 1, executable.explain()


@pytest.mark.parametrize("case", MESSAGES)
def test_heads_of_a_projection(ddr3: daedal.Device, case: str, rng: np.random.Generator) -> None:
    """Queries, keys and values side by side, as one linear layer gives them: rows of each are apart."""

    def function(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        queries, _, values = x.view(len(x), 3, 2, 4).unbind(1)
        return MESSAGES[case](values, e, w) + MESSAGES[case](queries, e.flip(0), w)

    x = wild_table(30, 24, rng).nan_to_num(1.0) + 0.0
    e = torch.from_numpy(rng.integers(0, 30, (2, 150)))
    w = torch.from_numpy(rng.standard_normal((150, 2, 1)).astype(np.float32))
    executable = daedal.compile(Layer(function), (x, e, w), device=ddr3)
    for _ in range(2):
        assert same_bits(executable(x, e, w), function(x, e, w))
        assert executable.stats.launches == 1, executable.explain()
        x = x + 1.0


def test_heads_that_are_not_contiguous(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """PyTorch's, with a reason; bad indices of heads are named as they were given."""
    x, e = torch.from_numpy(rng.standard_normal((4, 20, 6)).astype(np.float32)), torch.tensor([[3, 19], [0, 7]])
    function = Layer(
        lambda x, e, w: zeros(x.transpose(0, 1)).contiguous().index_add(0, e[1], x.transpose(0, 1)[e[0]] * w)
    )
    w = torch.ones(2, 4, 1)
    executable = daedal.compile(function, (x, e, w), device=ddr3)
    assert same_bits(executable(x, e, w), function(x, e, w))
    assert "rows of a table of 3 dimensions must be contiguous: use contiguous()" in executable.explain()
    heads = Layer(MESSAGES["a weight for each head"])
    x = x.reshape(20, 4, 6)
    executable = daedal.compile(heads, (x, e, w), device=ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match="index_add: index 20 is out of range for 20 rows"):
        executable(x, torch.tensor([[3, 20], [0, 7]]), w)
    with pytest.raises(daedal.IndexOutOfRange, match="index_add: destination -1 is out of range for 20 rows"):
        executable(x, torch.tensor([[3, 2], [0, -1]]), w)


def softmax(a: Tensor, index: Tensor, count: int) -> Tensor:
    """As graph attention has it."""
    most = torch.zeros(count, a.shape[1]).scatter_reduce(0, column(index, a), a, "amax", include_self=False)
    e = (a - most.index_select(0, index)).exp()
    return e / (torch.zeros(count, a.shape[1]).index_add(0, index, e).index_select(0, index) + 1e-16)


class Attention(nn.Module):
    """Multi-head graph attention, as GAT and TransformerConv have it."""

    def __init__(self, columns: int, heads: int, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(columns, heads * width) for _ in range(3))
        self.heads, self.width = heads, width

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        q, k, v = (part(x).view(-1, self.heads, self.width) for part in (self.query, self.key, self.value))
        source, target = edges[0], edges[1]
        weights = softmax((q[target] * k[source]).sum(-1) / self.width**0.5, target, len(x))
        return x.new_zeros(len(x), self.heads, self.width).index_add(0, target, v[source] * weights.unsqueeze(-1))


@pytest.mark.parametrize(("heads", "width"), [(4, 8), (1, 5), (8, 16)])
def test_graph_attention(ddr3: daedal.Device, heads: int, width: int, rng: np.random.Generator) -> None:
    """All gathers and reductions run on the device; messages never go through memory."""
    module = Attention(12, heads, width)
    executable = None
    for nodes, edges in ((40, 200), (7, 3), (9, 0)):
        x = torch.from_numpy(rng.standard_normal((nodes, 12)).astype(np.float32))
        e = torch.from_numpy(rng.integers(0, nodes, (2, edges)))
        executable = executable or daedal.compile(module, (x, e), device=ddr3)
        with torch.no_grad():
            assert same_bits(executable(x, e), module(x, e))
        assert executable.stats.launches == 6 and len(executable.offloaded) == 7


SIZES: dict[str, Function] = {
    "one of all": lambda x, e, w: (
        (r := x.index_select(0, e[0])).new_zeros(len(x), r.size()[1]).scatter_add_(0, e[1].view(-1, 1).expand_as(r), r)
    ),
    "one": lambda x, e, w: torch.zeros(len(x), (r := x[e[0]]).size(1)).index_add(0, e[1], r),
    "shape": lambda x, e, w: torch.zeros(len(x), (r := x[e[0]]).shape[-1]).index_add(0, e[1], r),
    "all": lambda x, e, w: torch.zeros_like(x).scatter_add(
        0, e[1].view(-1, 1).expand((r := x.index_select(0, e[0])).size()), r
    ),
    "of products": lambda x, e, w: torch.zeros_like(x).scatter_add(
        0, e[1].view(-1, 1).expand((r := x.index_select(0, e[0]) * w).size()), r
    ),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_of_messages(ddr3: daedal.Device, case: str, rng: np.random.Generator) -> None:
    """Rows that are only asked how many there are do not go through memory, whether sizes are open or not."""
    function = SIZES[case]
    for dynamic in (True, False):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="daedal", dynamic=dynamic, options={"device": ddr3})
        for nodes, edges, columns in ((40, 200, 32), (30, 70, 5)):
            x = wild_table(nodes, columns, rng)
            e = torch.from_numpy(rng.integers(0, nodes, (2, edges)))
            w = torch.from_numpy(rng.standard_normal((edges, 1)).astype(np.float32))
            with torch.no_grad():
                assert same_bits(compiled(x, e, w), function(x, e, w))
            assert daedal.graphs(ddr3)[-1].stats.launches == 1
