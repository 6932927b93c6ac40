"""What PyTorch does between operations of the device: changes in place, states, random numbers, results in ``out``."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.dynamo import CompiledGraph
from daedal.compiler.frontends.torch.ops.pooled_lookups import _is_so, adds_in_blocks
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

ROWS, WIDTH, EDGES = 23, 32, 60

Function = Callable[..., Any]


def data(rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A table, indices of bags of three, and both ends of edges."""
    bags, ends = (torch.from_numpy(rng.integers(0, ROWS, shape)) for shape in ((6, 3), (2, EDGES)))
    return wild_table(ROWS, WIDTH, rng), bags, ends


def bag(indices: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    return functional.embedding_bag(indices, table, mode="sum", per_sample_weights=weights)


def check(layer: Function, inputs: tuple[Tensor, ...], device: daedal.Device, launches: int) -> CompiledGraph:
    """Results, and what becomes of the inputs, are PyTorch's, also by ``daedal.compile``."""
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": device})
    ours, theirs = ([each.clone() for each in inputs] for _ in range(2))
    with torch.no_grad():
        torch.manual_seed(5)
        expected = layer(*theirs)
        torch.manual_seed(5)
        found = fast(*ours)
    for left, right in zip((*_listed(found), *ours), (*_listed(expected), *theirs), strict=True):
        assert same_bits(left, right) if left.is_floating_point() else torch.equal(left, right)
    graph = daedal.graphs(device)[-1]
    assert graph.stats.launches == launches
    return graph


def _listed(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


# ------------------------------------------------------------------ changes in place


def changed_part(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    first, second = bag(bags, table), bag(bags + 1 - 1, table)
    first[:, 3].mul_(2)
    return torch.cat([first, second], 1)


def part_changed_later(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    first, second = bag(bags, table), bag(bags + 1 - 1, table)
    joined = torch.cat([first, second], 1)
    first.mul_(2)
    return joined, first


def positional(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    rows = table.index_select(0, ends[0])
    functional.leaky_relu(table, 0.1, True)
    return torch.zeros_like(table).index_add(0, ends[1], rows)


def between_bags(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    first = bag(bags, table)
    functional.elu(table, 1.0, True)
    return first, bag(bags, table)


def renormalised(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    rows = table.index_select(0, ends[0])
    short = functional.embedding(ends[0], table, max_norm=0.5)
    return torch.zeros_like(table).index_add(0, ends[1], rows), short


def renormalised_by_bags(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    rows = functional.embedding(bags, table)
    short = functional.embedding_bag(bags, table, None, 0.5)
    return rows.sum(1), short


CHANGES: list[tuple[Function, int]] = [
    (changed_part, 1), (part_changed_later, 1), (positional, 2), (between_bags, 2), (renormalised, 2),
    (renormalised_by_bags, 1),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "launches"), CHANGES, ids=lambda value: getattr(value, "__name__", None))
def test_changes_in_place(layer: Function, launches: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    check(layer, data(rng), ddr3, launches)


@pytest.mark.parametrize("layer", [changed_part, part_changed_later, positional, between_bags])
def test_changes_in_place_of_exported_modules(layer: Function, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def copied(table: Tensor, bags: Tensor, ends: Tensor) -> Any:
        return layer(table * 1, bags, ends)

    inputs = data(rng)
    executable = daedal.compile(Layer(copied), inputs, device=ddr3)
    for left, right in zip(_listed(executable(*inputs)), _listed(copied(*inputs)), strict=True):
        assert same_bits(left, right)


@pytest.mark.parametrize(
    "layer", [changed_part, part_changed_later, positional, between_bags, renormalised, renormalised_by_bags]
)
def test_changes_in_place_with_another_backend(layer: Function, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """AOT autograd cannot take changed views of what has an expression as size: they stay as they are."""
    inputs = data(rng)
    ours, theirs = ([each.clone() for each in inputs] for _ in range(2))
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3, "backend": "aot_eager"})
    with torch.no_grad():
        for left, right in zip((*_listed(fast(*ours)), *ours), (*_listed(layer(*theirs)), *theirs), strict=True):
            assert torch.equal(left, right)
    (graph,) = daedal.graphs(ddr3)
    assert ("not compiled by PyTorch, because RuntimeError" in graph.explain()) == (layer is changed_part)


# ------------------------------------------------------------------ states and random numbers


def automatic(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """What is multiplied in a state of PyTorch's must not leave it."""
    first = bag(bags, table)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = table[:6, :5] @ table[:5, :3]
    return first, bag(bags, table, weights.float())


def drawn(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Random numbers come in their order."""
    first = functional.dropout(bag(bags, table), 0.5, True)
    return first, bag(bags, table, torch.rand(bags.shape))


def drawn_in_order(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    first, weights = bag(bags, table), torch.rand(bags.shape)
    second = bag(bags, table, weights)
    return functional.dropout(first, 0.5, True), second


def not_dropped(table: Tensor, bags: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """As a model in use has it."""
    return functional.dropout(bag(bags, table), 0.5, False), functional.dropout(bag(bags + 1 - 1, table), 0.5, False)


STATES: list[tuple[Function, int]] = [(automatic, 2), (drawn, 2), (drawn_in_order, 1), (not_dropped, 1)]


@pytest.mark.parametrize(("layer", "launches"), STATES, ids=lambda value: getattr(value, "__name__", None))
def test_states_and_random_numbers(
    layer: Function, launches: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    check(layer, data(rng), ddr3, launches)


# ------------------------------------------------------------------ results in ``out``


def selected(table: Tensor, ends: Tensor, out: Tensor) -> Tensor:
    torch.index_select(table, 0, ends[0], out=out)
    return out * 1


def added(table: Tensor, ends: Tensor, out: Tensor) -> Tensor:
    torch.index_add(torch.zeros_like(table), 0, ends[1], table.index_select(0, ends[0]), out=out)
    return out * 1


def selected_to_be_added(table: Tensor, ends: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    rows = torch.index_select(table, 0, ends[0], out=out)
    return torch.zeros_like(table).index_add(0, ends[1], rows), out * 1


def multiplied_to_be_added(table: Tensor, ends: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    rows = torch.mul(table.index_select(0, ends[0]), table[:1, :1].expand(EDGES, 1), out=out)
    return torch.zeros_like(table).index_add(0, ends[1], rows), out * 1


OUTS: list[tuple[Function, int, int]] = [
    (selected, EDGES, 0), (added, ROWS, 1), (selected_to_be_added, EDGES, 1), (multiplied_to_be_added, EDGES, 2),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "rows", "launches"), OUTS, ids=lambda value: getattr(value, "__name__", None))
def test_results_in_out(
    layer: Function, rows: int, launches: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    table, _, ends = data(rng)
    check(layer, (table, ends, torch.zeros(rows, WIDTH)), ddr3, launches)


# ------------------------------------------------------------------ odd values


def test_a_destination_without_dimensions(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, _, _ = data(rng)
    inputs = table, torch.tensor(3), table[:1] * 2, torch.tensor([1, 2])

    def layer(x: Tensor, where: Tensor, row: Tensor, others: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, where, row) + x.index_select(0, others).sum()

    graph = check(layer, inputs, ddr3, 1)
    assert "index_add: in PyTorch, because the index must have 1 or 2 dimensions" in graph.explain()


def test_an_initial_minus_zero(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    rows, lengths = torch.full((4, WIDTH), -0.0), torch.tensor([1, 0, 3])
    for initial, count in ((-0.0, 0), (0.0, 1)):

        def layer(rows: Tensor, lengths: Tensor, initial: float = initial) -> Tensor:
            return torch.segment_reduce(rows, "sum", lengths=lengths, initial=initial)

        torch._dynamo.reset()
        fast = torch.compile(layer, backend="daedal", options={"device": ddr3})
        with torch.no_grad():
            assert same_bits(fast(rows, lengths), layer(rows, lengths))
        assert sum(len(graph.offloaded) for graph in daedal.graphs(ddr3)) == count


def test_an_index_far_below_zero_is_named_as_it_is(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, _, _ = data(rng)
    executable = daedal.compile(Layer(lambda x, i: x[i]), (table, torch.tensor([1, 2])), device=ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index -24 is out of range .* number 1 of the indices"):
        executable(table, torch.tensor([-23, -24, 0]))
    assert same_bits(executable(table, torch.tensor([-23, 22])), table[[0, 22]])


def by_destination(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    return torch.zeros_like(table).index_add(0, ends[1] * 0, table.index_select(0, ends[0]))


def by_lengths(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    return torch.segment_reduce(table.index_select(0, ends[0]), "mean", lengths=torch.tensor([EDGES]))


@pytest.mark.parametrize("layer", [by_destination, by_lengths])
def test_reductions_that_are_too_long_to_count(
    layer: Function, ddr3: daedal.Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daedal.compiler.frontends.requests.checks.LONGEST_BAG", EDGES)
    graph = check(layer, data(rng), ddr3, 0)
    assert f"a bag must have fewer than {EDGES} rows, not {EDGES}" in graph.explain()


def test_sparse_rows_that_are_too_long_to_count(
    ddr3: daedal.Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _, _ = data(rng)
    matrix = torch.ones(4, ROWS).to_sparse_coo()
    executable = daedal.compile(Layer(torch.sparse.mm), (matrix, table), device=ddr3)
    for longest, launches in ((1 << 24, 1), (ROWS, 0)):
        monkeypatch.setattr("daedal.compiler.frontends.requests.checks.LONGEST_BAG", longest)
        assert same_bits(executable(matrix, table), torch.sparse.mm(matrix, table))
        assert executable.stats.launches == launches


@pytest.fixture
def double() -> Iterator[None]:
    """Other floats than the machine's, unless one says which."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
def test_other_floats_by_default(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, bags, _ = data(rng)

    def layer(table: Tensor, bags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first, second = bag(bags, table), functional.embedding(bags, table).sum(1)
        return first @ table.T, second, functional.embedding(bags, table) @ table.T

    executable = daedal.compile(Layer(layer), (table, bags), device=ddr3)
    for found, expected in zip(executable(table, bags), layer(table, bags), strict=True):
        assert same_bits(found, expected)
    assert executable.stats.launches == 1
    _is_so.cache_clear()
    try:
        lengths = [length for length in range(1, 33) if adds_in_blocks(length, WIDTH)]
    finally:
        _is_so.cache_clear()
    torch.set_default_dtype(torch.float32)
    assert lengths == [length for length in range(1, 33) if adds_in_blocks(length, WIDTH)]


# ------------------------------------------------------------------ arguments by name


def gathered_by_name(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    return torch.index_select(input=table, dim=0, index=ends[0])


def added_by_name(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    return torch.index_add(input=torch.zeros_like(table), dim=0, index=ends[1], source=table.index_select(0, ends[0]))


def scattered_by_name(table: Tensor, bags: Tensor, ends: Tensor) -> Tensor:
    wide = ends[1].view(-1, 1).expand(-1, WIDTH)
    rows = torch.index_select(table, index=ends[0], dim=0)
    return torch.scatter_add(input=torch.zeros_like(table), dim=0, index=wide, src=rows)


@pytest.mark.parametrize("layer", [gathered_by_name, added_by_name, scattered_by_name])
def test_arguments_by_name(layer: Function, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    check(layer, data(rng), ddr3, 1)
    inputs = data(rng)
    executable = daedal.compile(Layer(layer), inputs, device=ddr3)
    assert same_bits(executable(*inputs), layer(*inputs)) and executable.stats.launches == 1
