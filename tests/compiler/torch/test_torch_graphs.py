"""Graph convolutions and gathers of all spellings: what runs on the device, and that it equals eager PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.ops import csr_order
from daedal.compiler.frontends.torch.ops.pooled_lookups import adds_in_blocks
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

NODES = 23
"""Nodes of a graph; the last one has no edges to it."""


def edges(count: int, rng: np.random.Generator, *, ordered: bool = False) -> Tensor:
    """Sources and destinations, in no order unless wanted."""
    found = torch.from_numpy(np.stack([rng.integers(0, NODES, count), rng.integers(0, NODES - 1, count)]))
    return found[:, found[1].argsort(stable=True)] if ordered else found


def scatter_sum(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    """A GCN's propagation as PyTorch Geometric writes it."""
    message = weight.view(-1, 1) * x.index_select(0, edge[0])
    index = edge[1].view(-1, 1).expand_as(message)
    return message.new_zeros(x.size(0), x.size(1)).scatter_add_(0, index, message)


def scatter_mean(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    message = x.index_select(0, edge[0])
    index = edge[1].view(-1, 1).expand(-1, x.size(1))
    return torch.zeros_like(x).scatter_reduce(0, index, message, "mean", include_self=False)


def scatter_max(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    message = x.index_select(0, edge[0])
    index = edge[1].view(-1, 1).expand(-1, x.size(1))
    return message.new_zeros(x.size(0), x.size(1)).scatter_reduce_(0, index, message, "amax", include_self=False)


def scatter_min(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    message = x.index_select(0, edge[0])
    index = edge[1].view(-1, 1).expand(-1, x.size(1))
    return message.new_zeros(x.size(0), x.size(1)).scatter_reduce_(0, index, message, "amin", include_self=False)


def index_sum(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, edge[1], x[edge[0]] * weight.unsqueeze(-1))


def plain_index_sum(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    return torch.zeros(x.size(0), x.size(1)).index_add_(0, edge[1], x[edge[0]])


def of_messages(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, edge[1], torch.relu(x.index_select(0, edge[0])) + weight.view(-1, 1))


def segments(reduce: str, **options: Any) -> Callable[..., Tensor]:
    def layer(x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
        lengths = torch.bincount(edge[1], minlength=NODES)
        order = edge[1].argsort(stable=True)
        return torch.segment_reduce(x.index_select(0, edge[0][order]), reduce, lengths=lengths, **options)

    return layer


LAYERS: dict[str, Callable[..., Tensor]] = {
    "scatter_add_": scatter_sum,
    "scatter_reduce mean": scatter_mean,
    "scatter_reduce_ amax": scatter_max,
    "scatter_reduce_ amin": scatter_min,
    "index_add weighted": index_sum,
    "index_add_": plain_index_sum,
    "index_add of messages": of_messages,
    "segment_reduce sum": segments("sum"),
    "segment_reduce mean": segments("mean"),
    "segment_reduce mean from 0": segments("mean", initial=0),
    "segment_reduce max": segments("max"),
    "segment_reduce min": segments("min"),
}


def graph_of(device: daedal.Device, layer: Any, *inputs: Any) -> tuple[Any, Any]:
    """The result of ``torch.compile`` and the graph it made last."""
    with torch.no_grad():
        result = torch.compile(layer, backend="daedal", dynamic=True, options={"device": device})(*inputs)
    return result, daedal.graphs(device)[-1]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_propagation(name: str, ordered: bool, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    layer, x = LAYERS[name], wild_table(NODES, 6, rng)
    fast = torch.compile(layer, backend="daedal", dynamic=not name.startswith("segment"), options={"device": ddr3})
    for count in (90, 120):
        edge = edges(count, rng, ordered=ordered)
        weight = wild_table(1, count, rng)[0]
        with torch.no_grad():
            result = fast(x, edge, weight)
        assert same_bits(result, layer(x, edge, weight))
        graph = daedal.graphs(ddr3)[-1]
        reductions = [node for node in graph.offloaded if node.startswith(("scatter", "index_add", "segment"))]
        assert len(reductions) == 1, graph.explain()
        assert graph.stats.launches == len(graph.offloaded)
        assert graph.stats.rows == count * len(graph.offloaded)
        assert f"{reductions[0]}: on the device; destinations that are not in order are sorted" in graph.explain()
    if "of messages" not in name and not name.startswith("segment"):
        assert graph.offloaded == tuple(reductions), "the gather is part of the sum"


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")  # PyTorch calls its CSR support new
@pytest.mark.parametrize("name", ["scatter_add_", "scatter_reduce mean", "index_add weighted", "index_add of messages"])
def test_propagation_by_export(name: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    layer, x, edge = LAYERS[name], wild_table(NODES, 6, rng), edges(90, rng)
    weight = wild_table(1, 90, rng)[0]
    executable = daedal.compile(Layer(layer), (x, edge, weight), device=ddr3)
    for count in (90, 40):
        inputs = wild_table(NODES, 6, rng), edges(count, rng), wild_table(1, count, rng)[0]
        assert same_bits(executable(*inputs), layer(*inputs))
        assert executable.stats.launches == len(executable.offloaded) >= 1


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")  # PyTorch calls its CSR support new
@pytest.mark.parametrize("width", [1, 5, 16, 33])
@pytest.mark.parametrize("kind", ["coo", "uncoalesced", "csr"])
@pytest.mark.parametrize("product", [torch.sparse.mm, torch.matmul])
def test_sparse_times_dense(
    kind: str, width: int, product: Callable[..., Tensor], ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    def matrix(count: int) -> Tensor:
        found = torch.sparse_coo_tensor(edges(count, rng), wild_table(1, count, rng)[0], (NODES, NODES))
        found = found if kind == "uncoalesced" else found.coalesce()
        return found.to_sparse_csr() if kind == "csr" else found

    layer = Layer(product)
    sparse = matrix(150)
    executable = daedal.compile(layer, (sparse, wild_table(NODES, width, rng)), device=ddr3)
    for a in (sparse, matrix(60)):
        x = wild_table(NODES, width, rng)
        assert same_bits(executable(a, x), product(a, x))
        if kind != "csr" or csr_order.order_of(width):
            assert executable.stats.launches == 1 == len(executable.offloaded)
        else:
            assert not executable.offloaded and "on this processor" in executable.explain()


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")
@pytest.mark.parametrize("width", [1, 16, 33])
def test_csr_is_multiplied_then_added(
    width: int, ddr3: daedal.Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the machine does with it wherever PyTorch does the same, also on processors where it does not."""
    monkeypatch.setattr(csr_order, "order_of", lambda width, reduce: csr_order.ROUNDED)
    found = torch.sparse_coo_tensor(edges(150, rng), wild_table(1, 150, rng)[0], (NODES, NODES)).coalesce()
    x = wild_table(NODES, width, rng)
    executable = daedal.compile(Layer(torch.sparse.mm), (found.to_sparse_csr(), x), device=ddr3)
    expected = np.zeros((NODES, width), np.float32)
    for (row, column), weight in zip(found.indices().T.tolist(), found.values().numpy(), strict=True):
        expected[row] += x[column].numpy() * weight
    assert same_bits(executable(found.to_sparse_csr(), x), torch.from_numpy(expected))
    assert executable.stats.launches == 1


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")
@pytest.mark.parametrize("order", [csr_order.FUSED, None])
def test_csr_where_pytorch_has_an_order_of_its_own(
    order: str | None, ddr3: daedal.Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csr_order, "order_of", lambda width, reduce: order)
    found = torch.sparse_coo_tensor(edges(150, rng), wild_table(1, 150, rng)[0], (NODES, NODES)).to_sparse_csr()
    executable = daedal.compile(Layer(torch.sparse.mm), (found, wild_table(NODES, 4, rng)), device=ddr3)
    assert bool(executable.offloaded) == (order is not None)
    assert ("on this processor" in executable.explain()) == (order is None)


@pytest.mark.parametrize(
    "layer",
    [
        lambda x, i: x.index_select(0, i),
        lambda x, i: torch.index_select(x, 0, i),
        lambda x, i: torch.gather(x, 0, i.view(-1, 1).expand(-1, x.size(1))),
        lambda x, i: x[i],
        lambda x, i: functional.embedding(i, x),
    ],
)
@pytest.mark.parametrize("exported", [False, True])
def test_gathers(layer: Any, exported: bool, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, first = wild_table(NODES, 6, rng), torch.tensor([3, 0, 22])
    run: Any
    if exported:
        run = daedal.compile(Layer(layer), (x, first), device=ddr3)
    else:
        run = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    for indices in (first, torch.from_numpy(rng.integers(0, NODES, 40))):
        assert same_bits(run(x, indices), layer(x, indices))
        found = run if exported else daedal.graphs(ddr3)[-1]
        assert found.stats.launches == 1 == len(found.offloaded) and found.stats.rows == len(indices)
    with pytest.raises(daedal.IndexOutOfRange):
        run(x, torch.tensor([NODES, 0]))


def test_negative_indices_count_from_the_end(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, indices = wild_table(NODES, 6, rng), torch.tensor([[-1, 3], [-NODES, 0]]).view(-1)
    result, graph = graph_of(ddr3, lambda x, i: x[i], x, indices)
    assert same_bits(result, x[indices]) and graph.stats.launches == 1
    with pytest.raises(daedal.IndexOutOfRange):
        graph_of(ddr3, lambda x, i: x[i], x, torch.tensor([-NODES - 1, 0]))
    edge, weight = torch.tensor([[-1, 2, -NODES], [4, 4, 0]]), torch.ones(3)
    result, graph = graph_of(ddr3, index_sum, x, edge, weight)
    assert same_bits(result, index_sum(x, edge, weight)) and graph.stats.launches == 1
    with pytest.raises(daedal.IndexOutOfRange):
        graph_of(ddr3, scatter_sum, x, edge, weight)


SUMS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda rows: rows.sum(1),
    "mean": lambda rows: rows.mean(dim=1),
    "sum kept": lambda rows: torch.sum(rows, -2, keepdim=True),
    "mean of a list": lambda rows: torch.mean(rows, [1]),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("width", [4, 32, 96])
def test_sums_of_looked_up_rows(name: str, width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """One launch, in PyTorch's order: sums of 16 rows at a time."""
    table = wild_table(NODES, width, rng)
    table[:, 0] = -0.0

    def layer(indices: Tensor) -> Tensor:
        return torch.relu(SUMS[name](functional.embedding(indices, table)))

    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    for bags, length in ((5, 37), (3, 16), (4, 2), (2, 256), (300, 33), (3, 257)):
        indices = torch.from_numpy(rng.integers(0, NODES, (bags, length)))
        result, graph = fast(indices), daedal.graphs(ddr3)[-1]
        assert same_bits(result, layer(indices)), length
        assert graph.stats.launches == (length < 257)
        assert len(graph.offloaded) == (length < 257), graph.explain()
        assert ("PyTorch adds 257 rows" in graph.explain()) == (length == 257)
    with pytest.raises(daedal.IndexOutOfRange, match=f"index {NODES} is out of range"):
        fast(torch.full((2, 20), NODES))


def test_the_order_of_sums_is_asked_for(rng: np.random.Generator) -> None:
    """The rule of ``adds_in_blocks`` is PyTorch's: it says no more and no less."""
    for width in (4, 32, 64, 160):
        assert all(adds_in_blocks(length, width) for length in (1, 5, 16, 17, 40, 255, 256))
        assert not adds_in_blocks(0, width) and not adds_in_blocks(257, width)
    assert not any(adds_in_blocks(20, width) for width in (1, 8, 16, 33, 48))


@pytest.mark.parametrize(
    "pool",
    [lambda rows: rows.sum(0), lambda rows: rows.sum(), lambda rows: rows.sum((0, 1)),
     lambda rows: rows.sum(1) + rows[:, 0],
     lambda rows: rows.sum(1, dtype=torch.float64), lambda rows: rows.sum(2)],
)  # fmt: skip
def test_other_sums_are_pytorchs(pool: Any, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, indices = wild_table(NODES, 32, rng), torch.from_numpy(rng.integers(0, NODES, (5, 37)))
    result, graph = graph_of(ddr3, lambda indices: pool(functional.embedding(indices, table)), indices)
    assert torch.equal(result, pool(functional.embedding(indices, table)))
    assert graph.offloaded == ("embedding",) and graph.stats.launches == 1
    assert "in an order of its own; the machine can follow it along dim 1" in graph.explain()


@pytest.mark.parametrize("pool", ["sum", "mean"])
def test_a_sum_of_looked_up_rows_is_pytorchs(pool: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table = wild_table(NODES, 8, rng)
    indices = torch.from_numpy(rng.integers(0, NODES, (5, 37)))

    def layer(indices: Tensor) -> Tensor:
        pooled: Tensor = getattr(functional.embedding(indices, table), pool)(1)
        return pooled

    result, graph = graph_of(ddr3, layer, indices)
    assert same_bits(result, layer(indices))
    assert graph.offloaded == ("embedding",) and graph.stats.launches == 1
    assert "in PyTorch, because PyTorch adds such rows in an order of its own" in graph.explain()


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (lambda x, e: x.index_add(0, e[1], x[e[0]]), "it must start from zeros"),
        (lambda x, e: torch.zeros_like(x).index_add(0, e[1], x[e[0]], alpha=2), "alpha must be 1, not 2"),
        (
            lambda x, e: torch.zeros_like(x).scatter_reduce(0, e[1, :, None].expand(-1, 6), x[e[0]], "mean"),
            "include_self must be False for reduce 'mean'",
        ),
        (
            lambda x, e: torch.zeros_like(x).scatter_reduce(0, e[1, :, None].expand(-1, 6), x[e[0]], "prod"),
            "reduce must be sum, mean, amax or amin, not 'prod'",
        ),
    ],
)
def test_reductions_that_stay(layer: Any, reason: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, edge = wild_table(NODES, 6, rng), edges(50, rng)
    result, graph = graph_of(ddr3, layer, x, edge)
    assert same_bits(result, layer(x, edge))
    assert reason in graph.explain() and len(graph.offloaded) == 1 == graph.stats.launches


def test_what_only_a_run_shows(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, edge, weight = wild_table(NODES, 6, rng), edges(50, rng), torch.ones(50)
    x[int(edge[0, 3])] = float("nan")
    result, graph = graph_of(ddr3, scatter_max, x, edge, weight)
    assert same_bits(result, scatter_max(x, edge, weight))
    assert "rows must be free of NaN" in graph.explain() and graph.offloaded == ()
    sound = wild_table(NODES, 6, rng)
    result, graph = graph_of(ddr3, scatter_max, sound, edge, weight)
    assert same_bits(result, scatter_max(sound, edge, weight))
    assert "NaN" not in graph.explain() and graph.offloaded == ("scatter_reduce_",) and graph.stats.launches == 1
    x[:, 2:4] = torch.tensor([0.0, -0.0])
    x = torch.where(x.isnan(), x.new_tensor(-1.0), x)
    result, graph = graph_of(ddr3, scatter_max, x, edge, weight)
    assert same_bits(result, scatter_max(x, edge, weight))
    assert "rows must not have +0.0 and -0.0" in graph.explain() and graph.offloaded == ()

    def columns(x: Tensor, index: Tensor) -> Tensor:
        return torch.zeros_like(x).scatter_add(0, index, x)

    index = torch.from_numpy(rng.integers(0, NODES, (NODES, 6)))
    result, graph = graph_of(ddr3, columns, x, index)
    assert same_bits(result, columns(x, index))
    assert "the index must be one column" in graph.explain()
    with pytest.raises(daedal.IndexOutOfRange, match="destination 23 is out of range"):
        graph_of(ddr3, index_sum, x, torch.tensor([[1, 2], [0, NODES]]), torch.ones(2))


def test_a_matrix_made_in_the_module(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def layer(edge: Tensor, weight: Tensor, x: Tensor) -> Tensor:
        return torch.sparse.mm(torch.sparse_coo_tensor(edge, weight, (NODES, NODES), check_invariants=False), x)

    inputs = edges(80, rng), wild_table(1, 80, rng)[0], wild_table(NODES, 6, rng)
    executable = daedal.compile(torch.export.export(Layer(layer), inputs), inputs, device=ddr3)
    assert same_bits(executable(*inputs), layer(*inputs))
    assert executable.stats.launches == 1 == len(executable.offloaded)


class Network(nn.Module):
    """Two graph convolutions with layers between them."""

    def __init__(self, propagate: Callable[..., Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.propagate = nn.Linear(6, 8), nn.Linear(8, 3), propagate

    def forward(self, x: Tensor, edge: Tensor, weight: Tensor) -> Tensor:
        x = torch.relu(self.propagate(self.first(x), edge, weight))
        return self.propagate(self.second(x), edge, weight)


@pytest.mark.parametrize("propagate", [scatter_sum, scatter_mean, scatter_max, scatter_min])
def test_networks_and_their_training(propagate: Any, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = Network(propagate)
    x, edge, weight = wild_table(NODES, 6, rng), edges(70, rng), torch.rand(70)
    result, graph = graph_of(ddr3, model, x, edge, weight)
    assert same_bits(result, model(x, edge, weight))
    assert graph.stats.launches == 2 == len(graph.offloaded)
    free = ddr3.free_bytes
    for _ in range(3):
        graph_of(ddr3, model, x, edge, weight)
    assert ddr3.free_bytes == free, "what a layer gives is not kept"
    model(x, edge, weight).sum().backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    torch.compile(model, backend="daedal", options={"device": ddr3})(x, edge, weight).sum().backward()
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert len(found) == len(wanted) == 4
    assert all(same_bits(a, b) for a, b in zip(found, wanted, strict=True))
    assert daedal.graphs(ddr3)[-1].offloaded == ()


@pytest.mark.rtl
@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")  # PyTorch calls its CSR support new
@pytest.mark.parametrize("name", ["scatter_add_", "scatter_reduce mean", "scatter_reduce_ amin", "segment_reduce max"])
def test_on_rtl(name: str, rng: np.random.Generator) -> None:
    x, edge, weight = wild_table(NODES, 6, rng), edges(40, rng), wild_table(1, 40, rng)[0]
    with daedal.Device.open("verilator", config="edge") as dev:
        result, graph = graph_of(dev, LAYERS[name], x, edge, weight)
        assert same_bits(result, LAYERS[name](x, edge, weight))
        assert graph.stats.cycles > 0 and graph.stats.launches == len(graph.offloaded) >= 1
        matrix = torch.sparse_coo_tensor(edge, weight, (NODES, NODES))
        sparse = daedal.compile(Layer(torch.sparse.mm), (matrix, x), device=dev)
        assert same_bits(sparse(matrix, x), torch.sparse.mm(matrix, x)) and sparse.stats.cycles > 0


@pytest.mark.rtl
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_looked_up_rows_on_rtl(name: str, rng: np.random.Generator) -> None:
    table = wild_table(NODES, 32, rng)
    with daedal.Device.open("verilator", config="edge") as dev:
        for length in (5, 40):
            indices = torch.from_numpy(rng.integers(0, NODES, (3, length)))
            result, graph = graph_of(dev, lambda i: SUMS[name](functional.embedding(i, table)), indices)
            assert same_bits(result, SUMS[name](functional.embedding(indices, table)))
            assert graph.stats.cycles > 0 and len(graph.offloaded) == 1
