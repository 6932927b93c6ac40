"""Gathers with a change in place between them are one launch if it changes nothing that they or what is moved need."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

ROWS, WIDTH = 19, 12

Layer = Callable[[Tensor, Tensor], Any]


def sums(table: Tensor, seeds: Tensor) -> Any:
    """As CTR models add up their linear parts."""
    total = torch.zeros(len(seeds), WIDTH)
    total += table[seeds]
    total += table[seeds + 1]
    return total, table[seeds + 2]


def counted_up(table: Tensor, seeds: Tensor) -> Any:
    """The change makes indices of the second gather, and is moved with them."""
    first, places = table[seeds], seeds * 1
    places += 1
    return first, table[places]


def behind_its_reader(table: Tensor, seeds: Tensor) -> Any:
    """The same, but the first gather reads the indices as they were."""
    places = seeds * 1
    first = table[places]
    places += 1
    return first, table[places]


def of_indices(table: Tensor, seeds: Tensor) -> Any:
    """The change stays where it is, and the second gather needs it."""
    places = seeds * 1
    view = places[:]
    first = table[seeds]
    view += 1
    return first, table[places]


def of_the_table(table: Tensor, seeds: Tensor) -> Any:
    rows = table * 1
    first = rows[seeds]
    rows.mul_(2)
    return first, rows[seeds]


def of_another_table(table: Tensor, seeds: Tensor) -> Any:
    rows, others = table * 1, table * 3
    first = rows[seeds]
    others.mul_(2)
    return first, rows[seeds + 1], others


def read_in_between(table: Tensor, seeds: Tensor) -> Any:
    """What is moved would change what is read in front of it."""
    places = seeds * 1
    first = table[seeds]
    double = places * 2
    places.add_(1)
    return first, double, table[places]


def of_a_result(table: Tensor, seeds: Tensor) -> Any:
    first = table[seeds]
    first.mul_(2)
    return first, table[seeds + 1], torch.cat([first, table[seeds + 2]], 1)


def through_data(table: Tensor, seeds: Tensor) -> Any:
    return table[seeds], table.data.sum(0), table[seeds + 1]


def constructed(table: Tensor, seeds: Tensor) -> Any:
    return table[seeds], torch.FloatTensor([1e-8]), table[seeds + 1]


CASES: list[tuple[Layer, int]] = [
    (sums, 1), (counted_up, 1), (behind_its_reader, 2), (of_indices, 2), (of_the_table, 2), (of_another_table, 1),
    (read_in_between, 2), (of_a_result, 1), (through_data, 1), (constructed, 1),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "launches"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_changes_between_gathers(layer: Layer, launches: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    fast = torch.compile(layer, backend="daedal", dynamic=True, options={"device": ddr3})
    for count in (5, 9, 2):
        table, seeds = wild_table(ROWS, WIDTH, rng), torch.from_numpy(rng.integers(0, ROWS - 3, count))
        with torch.no_grad():
            found, wanted = fast(table.clone(), seeds.clone()), layer(table.clone(), seeds.clone())
        for left, right in zip(_listed(found), _listed(wanted), strict=True):
            assert same_bits(left, right) if left.is_floating_point() else torch.equal(left, right)
    (graph,) = daedal.graphs(ddr3)
    assert graph.stats.launches == launches


def _listed(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)
