"""Operators of others that have the names of ATen's, that write, or draw random numbers; graphs within graphs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, fx
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import daedal
from daedal.compiler.frontends.torch.dynamo import CompiledGraph
from daedal.compiler.frontends.torch.effects import effects_of
from daedal.compiler.frontends.torch.host.dry_run import rehearsal
from daedal.compiler.frontends.torch.ops.lookups import IndexSelect
from daedal.compiler.frontends.torch.registry import kind_of
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

ROWS, WIDTH = 12, 8
OTHERS = {
    "index_select(Tensor table, int dim, Tensor index) -> Tensor": lambda t, d, i: t.index_select(d, (i + 3) % ROWS),
    "gather(Tensor table, int dim, Tensor index) -> Tensor": lambda t, d, i: t.gather(d, (i + 3) % ROWS),
    "index_add(Tensor base, int dim, Tensor index, Tensor source) -> Tensor": lambda b, d, i, s: b.index_add(
        d, i.flip(0), s
    ),
    "mul(Tensor a, Tensor b) -> Tensor": lambda a, b: a + b,
    "mm(Tensor a, Tensor b) -> Tensor": lambda a, b: a.to_dense() @ b * 2,
    "sum(Tensor rows, int dim) -> Tensor": lambda r, d: r.sum(d) * 2,
    "zeros(int rows, int columns) -> Tensor": lambda r, c: torch.ones(r, c),
    "expand(Tensor column, int rows, int columns) -> Tensor": lambda k, r, c: (
        k.flip(0).expand(r, c) * torch.ones(c, dtype=torch.int64)
    ),
}
"""Operators of a namespace that is not ATen's."""


def _repair(indices: Tensor, rows: int) -> None:
    indices.clamp_(0, rows - 1)


def _noisy(table: Tensor) -> Tensor:
    return table + torch.rand(table.shape)


@pytest.fixture(scope="module", autouse=True)
def others() -> Iterator[None]:
    """Operators of the namespace ``others``."""
    library = torch.library.Library("others", "DEF")
    for schema, function in OTHERS.items():
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"others::{name}", function, lib=library, allow_override=True)
    library.define("repair(Tensor(a!) indices, int rows) -> ()")
    library.define("noisy(Tensor table) -> Tensor")
    library.define("tell(Tensor value) -> ()")
    for name, function in {"repair": _repair, "noisy": _noisy, "tell": lambda value: None}.items():
        library.impl(name, function, "CPU")
    library.impl("repair", lambda indices, rows: None, "Meta")
    library.impl("noisy", torch.empty_like, "Meta")
    library.impl("tell", lambda value: None, "Meta")
    yield
    library._destroy()


def bag(indices: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    return functional.embedding_bag(indices, table, mode="sum", per_sample_weights=weights)


def both(layer: Callable[..., Any], inputs: tuple[Any, ...], device: daedal.Device) -> CompiledGraph:
    """Results, and what becomes of the inputs, are those of PyTorch's graph."""
    results = []
    for backend, options in (("eager", None), ("daedal", {"device": device})):
        torch._dynamo.reset()
        given = [each.clone() if isinstance(each, Tensor) else each for each in inputs]
        torch.manual_seed(7)
        with torch.no_grad():
            found = torch.compile(layer, backend=backend, options=options)(*given)
        results.append([*(found if isinstance(found, tuple) else [found]), *given])
    for left, right in zip(*results, strict=True):
        assert torch.equal(left, right) and left.stride() == right.stride()
    return daedal.graphs(device)[-1]


# ------------------------------------------------------------------ names


def selected(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    return torch.ops.others.index_select(table, 0, keys), table.index_select(0, keys)


def gathered(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    return torch.ops.others.gather(table, 0, keys.view(-1, 1).expand(-1, WIDTH)), table[keys]


def added(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    zeros = torch.zeros(ROWS, WIDTH)
    return torch.ops.others.index_add(zeros, 0, keys, table.index_select(0, keys)), table[keys]


def multiplied(table: Tensor, keys: Tensor) -> Tensor:
    rows = torch.ops.others.mul.default(table.index_select(0, keys), table[: len(keys), :1])
    return torch.zeros(ROWS, WIDTH).index_add(0, keys, rows)


def summed(table: Tensor, keys: Tensor) -> Tensor:
    return torch.ops.others.sum(functional.embedding(keys.view(1, -1), table).repeat(1, 1, 4), 1)


def summed_at_once(table: Tensor, keys: Tensor) -> Tensor:
    return torch.ops.others.sum(functional.embedding(keys.view(1, -1), table.repeat(1, 4)), 1)


def from_others(table: Tensor, keys: Tensor) -> Tensor:
    return torch.ops.others.zeros(ROWS, WIDTH).index_add(0, keys, table.index_select(0, keys))


def expanded(table: Tensor, keys: Tensor) -> Tensor:
    wide = torch.ops.others.expand(keys.view(-1, 1), len(keys), WIDTH)
    return torch.zeros(ROWS, WIDTH).scatter_add(0, wide, table.index_select(0, keys))


NAMES = [
    (selected, 1),
    (gathered, 1),
    (added, 1),
    (multiplied, 2),
    (summed, 1),
    (summed_at_once, 1),
    (from_others, 1),
    (expanded, 0),
]


@pytest.mark.parametrize(("layer", "launches"), NAMES, ids=lambda value: getattr(value, "__name__", None))
def test_operators_of_other_namespaces(
    layer: Callable[..., Any], launches: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    inputs = wild_table(ROWS, WIDTH, rng), torch.tensor([3, 1, 1, 7])
    assert both(layer, inputs, ddr3).stats.launches == launches
    executable = daedal.compile(Layer(layer), inputs, device=ddr3)
    expected, found = layer(*inputs), executable(*inputs)
    for left, right in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        assert same_bits(left, right)
    assert executable.stats.launches == launches


@torch._dynamo.allow_in_graph
def index_select(table: Tensor, dim: int, index: Tensor) -> Tensor:
    return torch.index_select(table, dim, (index + 5) % ROWS)


def test_a_function_with_the_name_of_an_operation(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def layer(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return index_select(table, 0, keys), torch.index_select(table, 0, keys)

    graph = both(layer, (wild_table(ROWS, WIDTH, rng), torch.tensor([3, 1])), ddr3)
    assert graph.stats.launches == 1


def test_names_are_those_of_what_is_called() -> None:
    graph = fx.Graph()
    table = graph.placeholder("table")
    aten = torch.ops.aten
    for target in (torch.index_select, Tensor.index_select, aten.index_select, aten.index_select.default):
        assert kind_of(graph.call_function(target, (table,))) is IndexSelect
    for target in (
        torch.ops.others.index_select,
        torch.ops.others.index_select.default,
        index_select,
        aten.index_select.out,
    ):
        assert kind_of(graph.call_function(target, (table,))) is None
    assert kind_of(graph.call_method("index_select", (table,))) is IndexSelect
    table.meta["example_value"] = "no tensor"
    assert kind_of(graph.call_method("index_select", (table,))) is None


# ------------------------------------------------------------------ changes


def scaled(x: Tensor) -> Tensor:
    return x.mul_(2).sum()


def by_packet(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys % 5, table)
    torch.ops.others.repair(keys, 5)
    return first, bag(keys, table)


def by_overload(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys % 5, table)
    torch.ops.others.repair.default(keys, 5)
    return first, bag(keys, table)


def by_condition(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = bag(keys, table)
    total = torch.cond(table[0, 0] > 0, scaled, lambda x: x.mul_(3).sum(), (table,))
    return first, bag(keys, table), total


def by_checkpoint(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = bag(keys, table)
    total = checkpoint(scaled, table, use_reentrant=False)
    return first, bag(keys, table), total


def by_condition_in_a_checkpoint(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    def inner(x: Tensor) -> Tensor:
        return torch.cond(x[0, 0] > 0, scaled, scaled, (x,))

    first = bag(keys, table)
    total = checkpoint(inner, table, use_reentrant=False)
    return first, bag(keys, table), total


def between_gather_and_sum(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    rows = table.index_select(0, keys.view(-1))
    total = torch.cond(table[0, 0] > 0, scaled, scaled, (table,))
    return torch.zeros(ROWS, WIDTH).index_add(0, keys.view(-1), rows), total


def by_each(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys, table)
    torch._foreach_mul_([table[:2], table[2:]], 2.0)
    return first, bag(keys, table)


def by_statistics(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The weights are what a normalization remembers."""
    remembered = torch.zeros(WIDTH)
    first = bag(keys, table, remembered[: keys.numel()].view(keys.shape))
    normal = functional.batch_norm(table, remembered, torch.ones(WIDTH), training=True)
    return first, bag(keys, table, remembered[: keys.numel()].view(keys.shape)), normal


@torch._dynamo.allow_in_graph
def opaque(table: Tensor) -> Tensor:
    return table.mul_(2).sum()


def by_function(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = bag(keys, table)
    total = opaque(table)
    return first, bag(keys, table), total


CHANGES = [
    by_packet,
    by_overload,
    by_condition,
    by_checkpoint,
    by_condition_in_a_checkpoint,
    between_gather_and_sum,
    by_each,
    by_statistics,
    by_function,
]


@pytest.mark.parametrize("layer", CHANGES)
def test_nothing_is_moved_over_a_change(
    layer: Callable[..., Any], ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    table = torch.from_numpy(rng.integers(-9, 9, (ROWS, WIDTH))).float()
    assert both(layer, (table, torch.tensor([[1, 2], [11, 3]])), ddr3).stats.launches == 2


def test_memory_that_two_inputs_share(ddr3: daedal.Device) -> None:
    """Two inputs of a graph may be the same in a later call."""

    def layer(table: Tensor, other: Tensor, keys: Tensor) -> Tensor:
        rows = table.index_select(0, keys)
        other.mul_(2)
        return torch.zeros(ROWS, WIDTH).index_add(0, keys, rows)

    keys = torch.tensor([3, 1])
    executable = daedal.compile(Layer(layer), (torch.ones(ROWS, WIDTH), torch.ones(ROWS, WIDTH), keys), device=ddr3)
    shared = torch.ones(ROWS, WIDTH)
    assert bool((executable(shared, shared.view(-1).view(ROWS, WIDTH), keys)[keys] == 1).all())
    assert bool((shared == 2).all())


# ------------------------------------------------------------------ what is not known to change anything


def pure_condition(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = bag(keys, table)
    total = torch.cond(table[0, 0] > 0, lambda x: x.sum(), lambda x: x.mean(), (table,))
    return first, bag(keys, table * 1), total


def pure_checkpoint(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    first = bag(keys, table)
    total = checkpoint(lambda x: (x * 2).sum(), table, use_reentrant=False)
    return first, bag(keys, table * 1), total


def normalized(table: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
    """What models have between their bags."""
    first = bag(keys, table)
    shown = functional.layer_norm(functional.gelu(first), (WIDTH,)), torch.einsum("ij,ij->i", first, first)
    split = torch.split(first, 1)[0].to(torch.float32).unflatten(1, (2, -1)).contiguous()
    scaled = functional.batch_norm(first, torch.zeros(WIDTH), torch.ones(WIDTH), training=False)
    return bag(keys, table * 1), split, scaled, functional.dropout(first, 0.5, False), *shown


@pytest.mark.parametrize("layer", [pure_condition, pure_checkpoint, normalized])
def test_what_changes_nothing_is_passed(
    layer: Callable[..., Any], ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    table = torch.from_numpy(rng.integers(-9, 9, (ROWS, WIDTH))).float()
    assert both(layer, (table, torch.tensor([[1, 2], [11, 3]])), ddr3).stats.launches == 1


def test_an_operator_without_a_result_does_something() -> None:
    graph = fx.Graph()
    value = graph.placeholder("value")
    assert effects_of(graph.call_function(torch.ops.others.tell.default, (value,))).is_barrier
    assert effects_of(graph.call_function(torch.ops.others.tell, (value,))).is_barrier
    for function in (torch.manual_seed, Tensor.register_hook, torch._C._set_grad_enabled):
        assert effects_of(graph.call_function(function, (value,))).is_barrier
    for function in (Tensor.split, torch.split, functional.gelu, torch.tensor):
        assert not effects_of(graph.call_function(function, (value,))).any_change
    assert not effects_of(graph.call_function(torch.ops.others.mul, (value, value))).any_change


# ------------------------------------------------------------------ random numbers


def test_models_in_use_draw_nothing() -> None:
    """Exported modules have dropout as an operator, also where it does nothing."""
    graph = fx.Graph()
    value = graph.placeholder("value")
    for operator in (torch.ops.aten.dropout.default, torch.ops.aten.native_dropout.default):
        for trains in (True, False):
            assert effects_of(graph.call_function(operator, (value, 0.5, trains))).draws == trains
            assert effects_of(graph.call_function(operator, (value, 0.5), {"train": trains})).draws == trains


def by_operator(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys, table)
    return torch.ops.others.noisy(first), bag(keys, table, torch.rand(keys.shape))


def in_a_checkpoint(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys, table)
    dropped = checkpoint(lambda x: functional.dropout(x, 0.5, True), first, use_reentrant=False)
    return dropped, bag(keys, table, torch.rand(keys.shape))


@torch._dynamo.allow_in_graph
def noise(table: Tensor) -> Tensor:
    return table + torch.rand(table.shape)


def in_a_function(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    return noise(bag(keys, table)), bag(keys, table, torch.rand(keys.shape))


def in_attention(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(keys, table)
    rows = first.view(1, 1, -1, WIDTH)
    attended = functional.scaled_dot_product_attention(rows, rows, rows, dropout_p=0.5)
    return attended, bag(keys, table, torch.rand(keys.shape))


@pytest.mark.parametrize("layer", [by_operator, in_a_checkpoint, in_a_function, in_attention])
def test_random_numbers_come_in_their_order(
    layer: Callable[..., Any], ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    table = torch.from_numpy(rng.integers(-9, 9, (ROWS, WIDTH))).float()
    assert both(layer, (table, torch.tensor([[1, 2], [11, 3]])), ddr3).stats.launches == 2


def test_a_rehearsal_changes_nothing_within_graphs() -> None:
    table = torch.ones(3)
    graph = fx.symbolic_trace(lambda x: (x.mul_(2).sum(),))
    with torch.no_grad(), rehearsal([table]):
        torch.ops.higher_order.cond(torch.tensor(True), graph, graph, (table,))
    assert bool((table == 1).all())
