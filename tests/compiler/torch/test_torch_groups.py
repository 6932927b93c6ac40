"""Operations of a graph in as few launches as there are steps of which each needs the one before."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.fusion import find_groups
from daedal.compiler.frontends.torch.registry import find_operations
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

NODES, WIDTH = 23, 12


def edges(rng: np.random.Generator, count: int) -> Tensor:
    """Sources and destinations, in no order."""
    return torch.from_numpy(rng.integers(0, NODES, (2, count)))


def reduced(rows: Tensor, keys: Tensor, reduce: str) -> Tensor:
    """As PyTorch Geometric writes it: in place, onto zeros made for it."""
    index = keys.view(-1, 1).expand_as(rows)
    made = rows.new_zeros(NODES, rows.size(1))
    return made.scatter_reduce_(0, index, rows, reduce, include_self=reduce == "sum")


def aggregated(x: Tensor, e: Tensor) -> Tensor:
    """Principal neighbourhood aggregation: five reductions of the same messages."""
    rows = x.index_select(0, e[0])
    most, least = reduced(rows, e[1], "amax"), reduced(rows, e[1], "amin")
    mean, squares = reduced(rows, e[1], "mean"), reduced(rows * rows, e[1], "mean")
    deviation = torch.sqrt(torch.relu(squares - mean * mean) + 1e-5)
    return torch.cat([reduced(rows, e[1], "sum"), mean, most, least, deviation], -1)


def plain_aggregated(x: Tensor, e: Tensor) -> Tensor:
    """Reductions that are all that needs the messages, which no launch gathers then."""
    rows = x.index_select(0, e[0])
    return torch.cat([reduced(rows, e[1], reduce) for reduce in ("sum", "mean", "amax", "amin")], -1)


def weighted(x: Tensor, e: Tensor) -> Tensor:
    """Rows times weights are needed twice, by sums that make them, and the rows by a maximum."""
    rows = x[e[0]]
    scaled = rows * x.new_ones(len(rows), 1)
    return reduced(scaled, e[1], "sum") + reduced(scaled, e[1] * 0, "mean") + reduced(rows, e[1], "amax")


def softmax_of(scores: Tensor, keys: Tensor) -> Tensor:
    exponents = torch.exp(scores - reduced(scores, keys, "amax")[keys])
    return exponents / reduced(exponents, keys, "sum").clamp_(min=1e-16)[keys]


def related(x: Tensor, e: Tensor, *others: Tensor) -> Tensor:
    """A layer for each of several kinds of edges, one behind the other, each with a softmax over its own."""
    total = x * 0.0
    for each in (e, *others):
        scores = functional.dropout((x[each[0]] * x[each[1]]).sum(-1, keepdim=True), 0.5, training=False)
        total = total + reduced(x[each[0]] * softmax_of(scores, each[1]), each[1], "sum")
    return total


@pytest.mark.parametrize(
    ("layer", "kinds", "launches"),
    [(aggregated, 1, 2), (plain_aggregated, 1, 1), (weighted, 1, 1), (related, 1, 6), (related, 3, 6)],
    ids=["PNA", "plain", "weighted", "one", "three"],
)
@pytest.mark.parametrize("is_exported", [False, True])
def test_launches(
    layer: Callable[..., Any], kinds: int, launches: int, is_exported: bool, ddr3: daedal.Device,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    x = wild_table(NODES, WIDTH, rng).nan_to_num(1.0, 2.0, -2.0) + 0.0
    given = [(x, *(edges(rng, count) for _ in range(kinds))) for count in (90, 140)]
    if is_exported:
        run: Any = daedal.compile(Layer(layer), given[0], device=ddr3)
    else:
        run = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    for inputs in given:
        with torch.no_grad():
            result = run(*inputs)
        found = run if is_exported else daedal.graphs(ddr3)[-1]
        assert same_bits(result, layer(*inputs))
        assert found.stats.launches == launches, found.explain()


def interleaved(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    """Two chains, one behind the other, of which each has two steps."""
    first = torch.relu(x[e[0]])
    second = first[e[1]]
    third = torch.relu(x[e[1]])
    return second, third[e[0]]


def with_changes(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    """The rows of the second chain are changed before it begins, and so none of it comes earlier."""
    own = x * 1.0
    first = torch.relu(own[e[0]])
    second = first[e[1]]
    own.add_(1.0)
    third = torch.relu(own[e[1]])
    return second, third[e[0]]


def with_changed_zeros(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    """What is added to zeros is looked at by way of a view of these, before and after."""
    zeros = x.new_zeros(NODES, x.size(1))
    view = zeros.view(-1)
    before = view.sum()
    zeros.index_add_(0, e[1], torch.relu(x[e[0]]))
    return before, view * 1.0, x[e[1]]


def with_random_numbers(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    dropped = functional.dropout(torch.relu(x[e[0]]), 0.5, training=True)
    return dropped[e[1]], torch.relu(x * torch.rand_like(x))[e[0]]


class Keeps(nn.Module):
    """A module with a state, which a step behind it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(NODES, WIDTH))

    def forward(self, x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
        first = torch.relu(x[e[0]])[e[1]]
        self.kept.copy_(x * 2.0)
        return first, torch.relu(self.kept[e[0]])[e[1]]


@pytest.mark.parametrize(
    ("layer", "launches"),
    [(interleaved, 2), (with_changes, 4), (with_changed_zeros, 1), (with_random_numbers, 2), (Keeps(), 4)],
    ids=["interleaved", "changes", "changed zeros", "random numbers", "state"],
)
def test_what_is_done_earlier(layer: Any, launches: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x = wild_table(NODES, WIDTH, rng).nan_to_num(1.0, 2.0, -2.0)
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    for count in (NODES, NODES, NODES):
        e = edges(rng, count)
        with torch.no_grad():
            torch.manual_seed(3)
            wanted = layer(x.clone(), e)
            torch.manual_seed(3)
            found = fast(x.clone(), e)
        for a, b in zip(found, wanted, strict=True):
            assert same_bits(a, b)
        assert daedal.graphs(ddr3)[-1].stats.launches == launches, daedal.graphs(ddr3)[-1].explain()


def by_masks(x: Tensor, e: Tensor, kinds: Tensor) -> Tensor:
    """A sum over the edges of each kind, whose number depends on data."""
    total = x * 0.0
    for kind in range(3):
        own = e[:, kinds == kind]
        total = total + torch.zeros_like(x).index_add_(0, own[1], x[own[0]]) * float(kind + 1)
    return total


def test_checks_of_sizes_are_passed(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """An exported module checks each size that depends on data, which raises an error or does nothing."""
    x = wild_table(NODES, WIDTH, rng)
    inputs = x, edges(rng, 90), torch.from_numpy(rng.integers(0, 3, 90))
    executable = daedal.compile(Layer(by_masks), inputs, device=ddr3)
    assert same_bits(executable(*inputs), by_masks(*inputs))
    assert executable.stats.launches == 1, executable.explain()


@pytest.mark.parametrize(("is_checked", "groups"), [(False, 1), (True, 0)])
def test_what_is_changed_behind_a_check_stays_there(is_checked: bool, groups: int) -> None:
    """An input must be as it was if the check raises its error."""
    graph = fx.Graph()

    def added(node: fx.Node, value: Tensor | None = None) -> fx.Node:
        node.meta["val"] = node.target(*(each.meta["val"] for each in node.all_input_nodes)) if value is None else value
        return node

    x = added(graph.placeholder("x"), torch.zeros(NODES, WIDTH))
    places = added(graph.placeholder("places"), torch.zeros(5, dtype=torch.int64))
    own, first, second = (added(graph.call_function(torch.neg, (each,))) for each in (x, places, places))
    rows = added(graph.call_function(torch.index_select, (own, 0, first)), torch.zeros(5, WIDTH))
    if is_checked:
        graph.call_function(torch.ops.aten._assert_scalar.default, (True, "it must be so"))
    changed = added(graph.call_method("add_", (x, 1.0)), x.meta["val"])
    others = added(graph.call_function(torch.index_select, (changed, 0, second)), torch.zeros(5, WIDTH))
    graph.output((rows, others))
    operations, _ = find_operations(graph)
    assert set(operations) == {rows, others}
    assert len(find_groups(graph, operations)) == groups


class Histories(nn.Module):
    """Users' histories of several kinds, longer than PyTorch adds rows one after the other, beside other tables."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.seen, self.bought = nn.Embedding(40, width), nn.Embedding(40, width)
        self.users, self.words = nn.Embedding(40, width), nn.EmbeddingBag(40, width, mode="mean")

    def forward(self, user: Tensor, seen: Tensor, bought: Tensor, words: Tensor) -> tuple[Tensor, ...]:
        mask = (bought > 0).unsqueeze(-1).float()
        masked = (self.bought(bought) * mask).sum(1) / mask.sum(1).clamp(min=1.0)
        parts = self.users(user), self.seen(seen).mean(1), masked, self.seen(bought).sum(1, keepdim=True)
        return *parts, self.words(words)


@pytest.mark.parametrize("width", [4, 160])
def test_long_histories_are_one_launch(width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = Histories(width).requires_grad_(False)
    for each in (model.seen, model.bought, model.users, model.words):
        each.weight.copy_(wild_table(40, width, rng))
    model.seen.weight[:, 0] = -0.0

    def inputs(users: int, *lengths: int) -> tuple[Tensor, ...]:
        sizes = [(users,), *((users, length) for length in lengths)]
        return tuple(torch.from_numpy(rng.integers(0, 40, size)) for size in sizes)

    run = daedal.compile(model, inputs(5, 20, 50, 3), device=ddr3)
    for sizes in ((7, 37, 50, 4), (7, 37, 50, 4), (3, 17, 16, 1), (2, 256, 32, 5), (4, 5, 33, 2)):
        given = inputs(*sizes)
        for found, wanted in zip(run(*given), model(*given), strict=True):
            assert same_bits(found, wanted), sizes
        assert run.stats.launches == 1, run.explain()
        assert run.stats.rows == sizes[0] * (1 + sizes[1] + 2 * sizes[2] + sizes[3])
    bad = list(inputs(4, 20, 33, 2))
    bad[2][1, 3] = 40
    with pytest.raises(
        daedal.IndexOutOfRange, match=r"bought.weight: index 40 .*is out of range|seen.weight: index 40"
    ):
        run(*bad)
