"""Models of other people: the list, the elements that are counted, and a row of the suite."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from daedal.bench.published.counting import elements_of
from daedal.bench.published.listing import MODELS
from daedal.bench.published.model import Calls, Door, Made, Published
from daedal.bench.suite import Machine, Order
from daedal.bench.suites import published
from daedal.hw.config.core import Config

MACHINE = Machine(Config.preset("edge"))

ROWS = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
PLACES = torch.tensor([[3, 4, 4], [0, 19, 7]])
FLAT = PLACES.reshape(-1)
PACKAGES = {"torch-geometric", "torchrec", "pykeen", "deepctr-torch", "recbole", "transformers"}


def test_the_list_is_long_and_of_all_packages() -> None:
    assert len(MODELS) >= 30 and {model.package for model in MODELS} == PACKAGES
    assert len({model.name for model in MODELS}) == len(MODELS)


COUNTED: dict[str, tuple[Callable[[], Any], int]] = {
    "embedding": (lambda: functional.embedding(PLACES, ROWS), 36),
    "indices": (lambda: ROWS[PLACES], 36),
    "index_select": (lambda: ROWS.index_select(0, FLAT), 36),
    "index_select of columns": (lambda: ROWS.index_select(1, torch.tensor([1, 5])), 40),
    "gather": (lambda: torch.gather(ROWS, 1, PLACES[:, :1] % 6), 2),
    "bags": (lambda: functional.embedding_bag(PLACES, ROWS, mode="sum"), 36),
    "gather and sum": (lambda: torch.zeros(9, 6).index_add(0, FLAT % 9, ROWS[FLAT]), 72),
    "scatter in place": (lambda: torch.zeros(9, 6).scatter_add_(0, (FLAT % 9)[:, None].expand(6, 6), ROWS[:6]), 36),
    "segments": (lambda: torch.segment_reduce(ROWS, "sum", lengths=torch.tensor([5, 15])), 120),
    "integers and masks": (lambda: (FLAT[PLACES[0] % 6], ROWS[ROWS > 0], ROWS @ ROWS.t(), ROWS.sum(0)), 0),
}


@pytest.mark.parametrize("name", COUNTED)
def test_elements_are_counted_once(name: str) -> None:
    call, count = COUNTED[name]
    result, elements = elements_of(call, ())
    assert elements == count
    del result


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_elements_of_sparse_products(layout: torch.layout) -> None:
    matrix = torch.eye(20)[:7].to_sparse(layout=layout)
    result, elements = elements_of(lambda: matrix @ ROWS, (matrix, ROWS))
    assert elements == 7 * 6 and torch.equal(result, ROWS[:7])


class Half(nn.Module):
    """Half of what it gathers cannot be done on the device."""

    def forward(self, table: Tensor, places: Tensor) -> Any:
        return table[places], torch.gather(table, 0, places[:, None] * torch.ones(1, table.shape[1], dtype=torch.int64))


def _made(module: nn.Module) -> Callable[[], Made]:
    return lambda: (module, (torch.randn(20, 6), FLAT))


def _row(module: nn.Module, door: Door = Door.DYNAMO) -> dict[str, Any]:
    return published.measure(Published("tests: it", "torch", "torch", _made(module), door), MACHINE)


@pytest.mark.parametrize("door", Door)
def test_a_row_of_a_model_on_the_device(door: Door) -> None:
    two = Calls(nn.Identity(), lambda _, table, places: (table[places], table[places + 0] * 2))
    row = _row(two, door)
    assert row["share"] == 1 and row["elements"] == 72 and row["launches"] == row["fewest"] == 1
    assert row["bit_exact"] and not row["verdict"] and row["outcome"] == "reached"


@pytest.mark.parametrize("door", Door)
def test_a_row_of_a_model_half_of_which_stays(door: Door) -> None:
    row = _row(Half(), door)
    assert row["share"] == 0.5 and row["left"] == 36 and row["bit_exact"]
    assert row["outcome"].startswith("missed: PyTorch: ")


def test_a_model_that_fails_is_a_row() -> None:
    def fails(_: nn.Module, table: Tensor, places: Tensor) -> Any:
        raise ValueError("no such thing")

    row = _row(Calls(nn.Identity(), fails))
    assert row["bit_exact"] is False and row["verdict"] == "ValueError: 'no such thing'"


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Published("nobody's: it", "no-such-package", "no_such_package", _made(Half()))
    monkeypatch.setattr(published, "MODELS", (missing,))
    (row,) = published.run(Order(((MACHINE.config, "ideal"),)), lambda _: None)
    assert row["outcome"] == "left out: no package no-such-package; pip install no-such-package"
    assert not row.get("verdict") and "share" not in row
