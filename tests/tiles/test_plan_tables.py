"""What plans call the tables of a model: each has a name of its own, whatever made it, and however it is taken."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.tiles.models import random_plan, same


class Layers(nn.Module):
    """Two graph convolutions of different widths: both read rows of what ``relu`` gives."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.first, self.second = nn.Embedding(30, 12), nn.Linear(12, 20), nn.Linear(20, 8)

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """Sums at the targets, and some rows of each layer."""
        hidden = torch.relu(self.first(self.rows.weight))
        sums = torch.zeros(30, 20).index_add(0, target, hidden[source])
        last = torch.relu(self.second(sums))
        return torch.zeros(30, 8).index_add(0, target, last[source]), hidden[target], last[target % 5]


class Heads(nn.Module):
    """Rows in two parts, each of which has a weight; and the same rows whole."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(30, 2, 6))

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """Sums at the targets, and rows."""
        weights = torch.linspace(0, 1, 2 * len(source)).view(-1, 2, 1)
        return torch.zeros(30, 2, 6).index_add(0, target, self.rows[source] * weights), self.rows[target]


class Parts(nn.Module):
    """Bags of a part of a table, and rows of another one: both are made anew in each trace."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(30, 16))

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """Sums of rows, and rows."""
        sums = torch.nn.functional.embedding_bag((target % 3).view(-1, 1), self.rows[2:5], mode="sum")
        return sums, torch.nn.functional.embedding(source % 4, self.rows[:4])


SECOND = "aten.relu.default as rows of 8 float32"
TABLES: Sequence[tuple[type[nn.Module], dict[str, int]]] = [
    (Layers, {"aten.relu.default": 20, SECOND: 8}),
    (Parts, {"getitem": 16}),
    (Heads, {"rows": 6, "rows as rows of 12 float32": 12}),
]


@pytest.mark.parametrize(("kind", "tables"), TABLES)
@pytest.mark.parametrize("tiles", [1, 3])
def test_a_plan_of_a_model_is_one_for_it(
    kind: type[nn.Module], tables: dict[str, int], tiles: int, rng: np.random.Generator
) -> None:
    model, edges = kind().eval(), torch.from_numpy(rng.integers(0, 30, (2, 80)))
    with daedal.System.open("emulator", config="edge", tiles=tiles) as system, torch.no_grad():
        made = daedal.plan(model, system, sample=(edges[0], edges[1]))
        assert {table.name: table.dim for table in made.tables} == tables
        steps = dict.fromkeys(tables, 2)
        for plan in (made, random_plan(made, steps, rng), random_plan(made, steps, rng)):
            executable = daedal.compile(model, (edges[0], edges[1]), device=system, plan=plan)
            for count, dtype in ((80, torch.int64), (7, torch.int64), (80, torch.int32), (0, torch.int64)):
                given = edges[0, :count].to(dtype), edges[1, :count].to(dtype)
                assert same(executable(*given), model(*given))
