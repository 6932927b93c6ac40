"""Several gathers of a module, of any type and width and beside bags, are one launch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import _pytree as pytree

import daedal
from tests.compiler.layers.compiler_support import ddr3, device, same_bits, wild_table

__all__ = ["ddr3", "device"]


class Fields(nn.Module):
    """A table for each column of the indices, whose rows are put together in some way."""

    def __init__(self, rng: np.random.Generator, join: Callable[[list[Tensor]], Any], widths: list[int]) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.Embedding.from_pretrained(wild_table(10 + 3 * number, width, rng)) for number, width in enumerate(widths)
        )
        self.join = join

    def forward(self, indices: Tensor) -> Any:
        return self.join([table(indices[:, number]) for number, table in enumerate(self.tables)])


JOINS: dict[str, tuple[Callable[[list[Tensor]], Any], list[int]]] = {
    "list": (list, [8, 5, 16, 5, 300]),
    "cat": (lambda rows: torch.cat(rows, 1), [8, 5, 16, 5, 300]),
    "cat with others": (lambda rows: torch.cat([rows[0], rows[0] * 0.5, rows[1]], 1), [4, 4]),
    "some used elsewhere": (lambda rows: (torch.cat(rows, 1), rows[1] + 1), [4, 12, 4]),
    "stack": (lambda rows: torch.stack(rows, 1), [12] * 10),
    "unsqueeze": (lambda rows: torch.cat([row.unsqueeze(1) for row in rows], 1), [12] * 10),
    "sum": (lambda rows: rows[0] + rows[1] + rows[2], [7] * 3),
    "one column": (lambda rows: torch.cat(rows, -1), [1] * 9),
}


@pytest.mark.parametrize("case", JOINS)
def test_fields(device: daedal.Device, case: str, rng: np.random.Generator) -> None:
    join, widths = JOINS[case]
    module = Fields(rng, join, widths)
    executable = None
    for batch in (5, 1, 17, 0):
        indices = torch.from_numpy(rng.integers(0, 10, (batch, len(widths))))
        executable = executable or daedal.compile(module, (indices,), device=device)
        found, wanted = pytree.tree_leaves(executable(indices)), pytree.tree_leaves(module(indices))
        assert [each.shape for each in found] == [each.shape for each in wanted]
        assert all(same_bits(*pair) for pair in zip(found, wanted, strict=True))
        assert executable.stats.launches == 1
    assert executable is not None and f"{len(widths)} of {len(widths)} operations, in 1 launch" in executable.explain()


BY_DIMENSION: dict[str, Callable[[list[Tensor]], Any]] = {
    "along the columns": lambda rows: torch.cat(rows, -1),
    "by their number": lambda rows: torch.cat(rows, 2),
    "along the bags": lambda rows: torch.cat(rows, 1),
    "along the batch": lambda rows: torch.cat(rows),
    "summed": lambda rows: torch.cat(rows, -1).sum(-1),
    "and one alone": lambda rows: (torch.cat(rows, -1), rows[1] * 2),
}


@pytest.mark.parametrize("case", BY_DIMENSION)
@pytest.mark.parametrize("length", [1, 3])
def test_rows_by_indices_of_two_dimensions(
    device: daedal.Device, case: str, length: int, rng: np.random.Generator
) -> None:
    """Of these the columns are the third dimension, and rows are put together along any."""

    class Longer(Fields):
        def forward(self, indices: Tensor) -> Any:
            return self.join(
                [table(indices[:, number, None].repeat(1, length)) for number, table in enumerate(self.tables)]
            )

    module = Longer(rng, BY_DIMENSION[case], [6] * 4)
    indices = torch.from_numpy(rng.integers(0, 10, (5, 4)))
    executable = daedal.compile(module, (indices,), device=device)
    for batch in (5, 2, 0):
        indices = torch.from_numpy(rng.integers(0, 10, (batch, 4)))
        found, wanted = pytree.tree_leaves(executable(indices)), pytree.tree_leaves(module(indices))
        assert [each.shape for each in found] == [each.shape for each in wanted]
        assert all(same_bits(*pair) for pair in zip(found, wanted, strict=True))
        assert executable.stats.launches == 1


class Mixed(nn.Module):
    """Gathers by several names, of several types and shapes, beside bags and pooled look-ups."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.register_buffer("halves", torch.from_numpy(rng.standard_normal((20, 5))).to(torch.float16))
        self.register_buffer("words", torch.from_numpy(rng.integers(-99, 99, (30, 3))))
        self.register_buffer("flags", torch.from_numpy(rng.integers(0, 2, (9, 7))).bool())
        self.register_buffer("floats", wild_table(25, 11, rng))
        self.bag = nn.EmbeddingBag.from_pretrained(wild_table(25, 12, rng), mode="mean")
        self.pooled = nn.Embedding.from_pretrained(wild_table(25, 32, rng))

    def forward(self, few: Tensor, many: Tensor, offsets: Tensor) -> Any:
        return {
            "halves": self.halves[few],
            "words": self.words.index_select(0, many),
            "flags": self.flags[many.int() % 9],
            "floats": functional.embedding(few, self.floats),
            "bag": self.bag(many, offsets),
            "pooled": self.pooled(few).sum(1),
            "joined": torch.cat([self.floats[many], self.floats.index_select(0, many)], dim=1),
        }


def test_gathers_of_all_kinds_beside_bags(device: daedal.Device, rng: np.random.Generator) -> None:
    module = Mixed(rng)
    executable = None
    for rows, length, entries in ((6, 3, 40), (2, 16, 1), (1, 1, 0)):
        few, many = (torch.from_numpy(rng.integers(0, 20, shape)) for shape in ((rows, length), (entries,)))
        offsets = torch.tensor([0, entries // 3, entries // 3])
        executable = executable or daedal.compile(module, (few, many, offsets), device=device)
        found, wanted = executable(few, many, offsets), module(few, many, offsets)
        for name in wanted:
            assert found[name].dtype is wanted[name].dtype and found[name].shape == wanted[name].shape, name
            assert found[name].contiguous().numpy().tobytes() == wanted[name].contiguous().numpy().tobytes(), name
        assert executable.stats.launches <= 2


def test_a_bad_index_names_its_table(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = Fields(rng, list, [8] * 4)
    good = torch.from_numpy(rng.integers(0, 10, (6, 4)))
    executable = daedal.compile(module, (good,), device=ddr3)
    for column, index in ((2, 16), (0, -1), (3, 1 << 40)):
        bad = good.clone()
        bad[4, column] = index
        with pytest.raises(daedal.IndexOutOfRange, match=rf"of tables\.{column}\.weight: index {index} .* number 4 of"):
            executable(bad)
    assert all(same_bits(*pair) for pair in zip(executable(good), module(good), strict=True))


def test_a_gather_of_a_gather_is_behind_it(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """What needs another's result, or what a change in place lies between, is no part of its launch."""

    class Chained(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("links", torch.from_numpy(rng.integers(0, 20, (20, 2))))
            self.rows = nn.Embedding.from_pretrained(wild_table(20, 6, rng))

        def forward(self, seeds: Tensor) -> Any:
            return self.rows(seeds), self.rows(self.links[seeds])

    module, seeds = Chained(), torch.tensor([3, 19, 0])
    executable = daedal.compile(module, (seeds,), device=ddr3)
    assert all(same_bits(*pair) for pair in zip(executable(seeds), module(seeds), strict=True))
    assert executable.stats.launches == 2
