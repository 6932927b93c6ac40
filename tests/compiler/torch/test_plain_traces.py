"""Modules that call functions of tensors are traced without ``torch.export``; it is asked for all others."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.trace.plain_trace import plain_trace
from tests.compiler.layers.compiler_support import ddr3, same_bits

__all__ = ["ddr3"]

INDICES, OFFSETS = torch.tensor([3, 1, 4, 1, 5, 9, 2]), torch.tensor([0, 2, 3])


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """Modules that ``torch.export`` was asked to trace."""
    found: list[nn.Module] = []
    export = torch.export.export

    def seen(module: nn.Module, *given: Any, **named: Any) -> Any:
        found.append(module)
        return export(module, *given, **named)

    monkeypatch.setattr(torch.export, "export", seen)
    return found


class Model(nn.Module):
    """Bags and rows of two tables, joined, through a layer; ``extra`` sees their results first."""

    def __init__(self, extra: Callable[[Tensor, Tensor], Tensor] = lambda bags, rows: bags) -> None:
        super().__init__()
        self.bags, self.table = nn.EmbeddingBag(20, 4, mode="mean"), nn.Embedding(20, 4)
        self.layer, self.extra = nn.Linear(8, 3), extra

    def forward(self, given: dict[str, list[Tensor]], keys: Tensor, *, unused: None = None) -> Any:
        bags, rows = self.bags(*given["bags"]), self.table(keys)
        bags = self.extra(bags, rows)
        return {"all": functional.relu(self.layer(torch.cat([bags, rows], dim=1))), "rows": (rows,)}


def inputs(bags: int = 3, kind: torch.dtype = torch.int64) -> tuple[Any, ...]:
    offsets = torch.arange(0, 2 * bags, 2, dtype=kind)
    indices = torch.randint(0, 20, (2 * bags + 1,), dtype=kind)
    return {"bags": [indices, offsets]}, torch.randint(0, 20, (bags,), dtype=kind)


def same(ours: Any, theirs: Any) -> bool:
    return same_bits(ours["all"], theirs["all"]) and same_bits(ours["rows"][0], theirs["rows"][0])


def test_one_trace_for_all_sizes(ddr3: daedal.Device, exports: list[nn.Module]) -> None:
    module = Model()
    with torch.no_grad():
        executable = daedal.compile(module, inputs(), device=ddr3)
        assert executable.offloaded == ("embedding_bag", "embedding")
        for bags in (1, 3, 2, 50, 1):
            given = inputs(bags)
            assert same(executable(*given), module(*given))
        other = inputs(4, torch.int32)
        assert same(executable(*other), module(*other))
    assert not exports


def one_by_one(bags: Tensor, rows: Tensor) -> Tensor:
    return torch.cat([row.reshape(1, -1) for row in bags], 0)


def as_a_list(bags: Tensor, rows: Tensor) -> Tensor:
    return bags + torch.tensor(bags.tolist())


def several(bags: Tensor, rows: Tensor) -> Tensor:
    first, second = bags.chunk(2, 1)
    return torch.cat([second, first], 1)


def without_ones(bags: Tensor, rows: Tensor) -> Tensor:
    return bags.reshape(-1, 4, 1).squeeze() if rows.squeeze().ndim > 1 else bags + rows


def random(bags: Tensor, rows: Tensor) -> Tensor:
    return bags + 0 * torch.rand(bags.shape[0], 1)


def indexed(bags: Tensor, rows: Tensor) -> Tensor:
    return bags[torch.zeros(bags.shape[0], dtype=torch.int64)]


def in_place(bags: Tensor, rows: Tensor) -> Tensor:
    return functional.relu(bags, inplace=True)


def cast(bags: Tensor, rows: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return functional.linear(bags, torch.ones(4, 4)).float()


@pytest.mark.parametrize("extra", [one_by_one, as_a_list, several, without_ones, random, indexed, in_place, cast])
def test_what_looks_at_tensors_is_pytorchs_to_trace(
    ddr3: daedal.Device, exports: list[nn.Module], extra: Callable[[Tensor, Tensor], Tensor]
) -> None:
    module = Model(extra)
    with torch.no_grad():
        executable = daedal.compile(module, inputs(), device=ddr3)
        assert exports
        for bags in (3, 12, 3, 2):
            given = inputs(bags)
            assert same(executable(*given), module(*given))


class Foreign(nn.Module):
    """Uses a tensor that is no part of it, or remembers something, or shortens rows."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.calls = how, 0
        self.bags = nn.EmbeddingBag(20, 4, mode="sum", max_norm=1.0 if how == "max_norm" else None)
        self.other = (torch.randn(20, 4),)

    def forward(self, indices: Tensor, offsets: Tensor, scale: float = 1.0) -> Tensor:
        self.calls += self.how == "remembers"
        rows = functional.embedding_bag(indices, self.other[0], offsets) if self.how == "constant" else 0
        return self.bags(indices, offsets) if self.how != "constant" else torch.cat([rows, self.bags(indices, offsets)])


@pytest.mark.parametrize("how", ["constant", "remembers", "max_norm"])
def test_modules_that_are_given_up(how: str) -> None:
    assert plain_trace(Foreign(how), (INDICES, OFFSETS)) is None
    assert plain_trace(Foreign("plain"), (INDICES, OFFSETS)) is not None


def test_inputs_that_are_given_up() -> None:
    module = Foreign("plain")
    for given in ((INDICES, OFFSETS, 2.0), (INDICES, nn.Parameter(OFFSETS, requires_grad=False))):
        assert plain_trace(module, given) is None
    bag = nn.Sequential(nn.EmbeddingBag(20, 4))
    assert plain_trace(bag, (INDICES.reshape(1, -1),)) is not None
    assert plain_trace(bag, (INDICES.reshape(1, -1).to_sparse(),)) is None


def functions(module: nn.Module, given: Any) -> Iterator[str]:
    found = plain_trace(module, given)
    assert found is not None
    return (node.name for node in found[0].graph.nodes)


def test_names_are_those_of_the_modules_parameters() -> None:
    assert list(functions(Model(), inputs()))[:3] == ["given_bags_0", "given_bags_1", "keys"]


def of_bags(bags: Tensor, rows: Tensor) -> Tensor:
    return torch.bmm(bags[:, :, None], bags[:, None])


def of_joined_rows(bags: Tensor, rows: Tensor) -> Tensor:
    pairs = torch.stack([bags, rows], 1)
    return torch.bmm(pairs, pairs.transpose(1, 2))


def of_rows(bags: Tensor, rows: Tensor) -> Tensor:
    return torch.bmm(rows.unsqueeze(1), (2 * rows).unsqueeze(2))


class Products(nn.Module):
    """Products of matrices of the results of bags and of gathers."""

    def __init__(self, form: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.bags, self.rows, self.form = nn.EmbeddingBag(20, 4, mode="sum"), nn.Embedding(20, 4), form

    def forward(self, indices: Tensor, offsets: Tensor, keys: Tensor) -> Tensor:
        return self.form(self.bags(indices, offsets), self.rows(keys))


@pytest.mark.parametrize(("form", "is_exported"), [(of_bags, False), (of_joined_rows, False), (of_rows, True)])
def test_products_that_may_be_scores_are_pytorchs_to_trace(
    form: Callable[[Tensor, Tensor], Tensor], is_exported: bool, exports: list[nn.Module]
) -> None:
    module, keys = Products(form), torch.tensor([1, 2, 3])
    with torch.no_grad(), daedal.Device.open("emulator", config="edge") as device:
        executable = daedal.compile(module, (INDICES, OFFSETS, keys), device=device)
        assert same_bits(executable(INDICES, OFFSETS, keys), module(INDICES, OFFSETS, keys))
    assert bool(exports) is is_exported
