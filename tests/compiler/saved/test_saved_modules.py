"""Modules as files: all that ``daedal.compile`` makes of them gives the same bits when it is loaded again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import device
from tests.compiler.layers.test_narrow_bags import EDGE as HALVES
from tests.compiler.layers.test_quantised_bags import EDGE as QUANTISED
from tests.compiler.saved.saved_support import check_same, load, round_trip, state_of
from tests.compiler.torch.dynamo_support import Layer, fresh
from tests.compiler.torch.test_quantised_modules import quantised_bag

__all__ = ["device", "fresh"]

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per")


@pytest.fixture(scope="module")
def halves() -> Iterator[daedal.Device]:
    """The golden model of a machine that has all converters."""
    with daedal.Device.open("emulator", config=HALVES) as opened:
        yield opened


def integers(rng: np.random.Generator, most: int, *shape: int) -> Tensor:
    return torch.from_numpy(rng.integers(0, most, shape))


class Recommender(nn.Module):
    """Bags side by side, gathers, and moves of data between inputs, launches and results."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleDict(
            {name: nn.EmbeddingBag(30, 16, mode=name, padding_idx=3) for name in ("sum", "mean", "max")}
        )
        self.user, self.item = nn.Embedding(20, 12), nn.Embedding(9, 5, dtype=torch.float64)
        self.register_buffer("first", torch.tensor([0, 4, 8]))

    def forward(self, ids: Tensor, offsets: Tensor, pair: Tensor) -> dict[str, Any]:
        pooled = torch.cat([bag(ids, offsets) for bag in self.bags.values()], dim=1)
        first = self.get_buffer("first")
        rows = [self.user(pair[:, 0]), self.item(pair[:, 1:])]
        return {"pooled": pooled.view(-1, 3, 16), "rows": rows, "moved": self.user(pair[:, :1] + first).flatten(1)}


@pytest.mark.parametrize("sizes", [[0, 3, 3, 9], [0] * 4, [0, 1, 2, 3], [0]])
def test_bags_and_gathers_of_any_sizes(
    device: daedal.Device, sizes: list[int], rng: np.random.Generator, tmp_path: Path
) -> None:
    """One file for all sizes and lengths of bags, in one launch."""
    module, pair = Recommender(), integers(rng, 9, 4, 3)
    examples = integers(rng, 30, 12), torch.tensor([0, 5, 7]), pair
    executable, loaded = round_trip(module, examples, device, tmp_path / "model.daedal")
    for count in (12, 900):
        inputs = integers(rng, 30, count), torch.tensor(sizes) * (count // 12), pair
        check_same(executable, loaded, inputs)
    assert loaded.explain().startswith("device: 6 of 6 operations, in 1 launch")


def messages(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    rows = x.index_select(0, edges[0]) * weights.view(-1, 1)
    return torch.zeros(x.shape[0], x.shape[1]).index_add(0, edges[1], rows)


def heads(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    rows = x.view(-1, 2, 8)[edges[0]] * weights.view(-1, 1, 1)
    return torch.zeros(x.shape[0], 2, 8).index_add(0, edges[1], rows)


def two_hops(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    return messages(messages(x, edges, weights), edges, weights)


def most(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    keys = edges[1].view(-1, 1).expand(-1, x.shape[1])
    return torch.zeros_like(x).scatter_reduce(0, keys, x[edges[0]], "amax", include_self=False)


def aggregated(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    """Several reductions of the same messages, which are one launch."""
    keys, rows = edges[1].view(-1, 1).expand(-1, x.shape[1]), x[edges[0]]
    parts = [
        torch.zeros_like(x).scatter_reduce(0, keys, rows, reduce, include_self=reduce == "sum")
        for reduce in ("sum", "mean", "amax", "amin")
    ]
    return torch.cat(parts, -1)


def put(x: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
    return torch.zeros_like(x).index_put((edges[1] - 20,), x[edges[0]], accumulate=True)


@pytest.mark.parametrize("function", [messages, heads, two_hops, most, aggregated, put])
def test_messages(device: daedal.Device, function: Any, rng: np.random.Generator, tmp_path: Path) -> None:
    def given(nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
        x, weights = rng.uniform(1, 2, (nodes, 16)), rng.standard_normal(edges)
        return torch.from_numpy(x).float(), integers(rng, nodes, 2, edges), torch.from_numpy(weights).float()

    executable, loaded = round_trip(Layer(function), given(20, 40), device, tmp_path / "model.daedal")
    check_same(executable, loaded, given(20, 700))


class Segments(nn.Module):
    def forward(self, x: Tensor, source: Tensor, lengths: Tensor) -> Tensor:
        return torch.segment_reduce(x[source], "mean", lengths=lengths)


def test_segments(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """A segment without rows gives NaN, as PyTorch's."""
    x = torch.randn(9, 16)
    inputs = x, integers(rng, 9, 30), torch.tensor([11, 0, 19])
    round_trip(Segments(), inputs, device, tmp_path / "model.daedal")


class SegmentsOfTable(nn.Module):
    def __init__(self, reduce: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.reduce, self.rows = reduce, nn.Parameter(torch.randn(9, 16).to(dtype), requires_grad=False)

    def forward(self, source: Tensor, lengths: Tensor) -> Tensor:
        return torch.segment_reduce(self.rows[source], self.reduce, lengths=lengths)


@pytest.mark.parametrize("reduce", ["mean", "max"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_segments_of_halves(
    halves: daedal.Device, reduce: str, dtype: torch.dtype, rng: np.random.Generator, tmp_path: Path
) -> None:
    """A segment without rows gives NaN, or what is less than any number."""
    inputs = integers(rng, 9, 30), torch.tensor([11, 0, 19])
    _, loaded = round_trip(SegmentsOfTable(reduce, dtype), inputs, halves, tmp_path / "model.daedal")
    found = loaded(*inputs)[1]
    assert bool((found.isnan() if reduce == "mean" else found == -torch.inf).all())


class History(nn.Module):
    """Sums of looked-up rows, in PyTorch's order, masked and not."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(40, 32)

    def forward(self, history: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.items(history) * weights.unsqueeze(-1)
        return rows.sum(1), functional.embedding(history + 1, self.items.weight).mean(1)


def test_histories_of_any_length(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """Rows that are added up in blocks take another program than fewer rows: the file has both, that of several sums at
    once if they ran so.
    """
    module, path = History(), tmp_path / "model.daedal"
    examples = integers(rng, 39, 3, 5), torch.randn(3, 5)
    executable, loaded = round_trip(module, examples, device, path)
    for length in (1, 16, 17, 50, 200):
        launches = 2 if length > 16 else 1
        check_same(executable, loaded, (integers(rng, 39, 3, length), torch.randn(3, length)), launches=launches)
    executable.save(path)
    loaded = load(path, device, state_of(module))
    for length in (1, 200):
        check_same(executable, loaded, (integers(rng, 39, 3, length), torch.randn(3, length)), launches=1)


class Weighted(nn.Module):
    """Inputs by name, nested, and a number that the trace is for."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 24, mode="sum")

    def forward(self, batch: dict[str, Any], scale: int = 2, *, weights: Tensor) -> Any:
        return self.bag(batch["ids"] * scale, per_sample_weights=weights), (batch["other"][0],)


def test_inputs_by_name(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    batch = {"ids": integers(rng, 15, 4, 3), "other": [torch.arange(3)]}
    given = {"weights": torch.randn(4, 3)}
    _, loaded = round_trip(Weighted(), (batch, 2), device, tmp_path / "model.daedal", given)
    with pytest.raises(daedal.UnsupportedOperation, match="input 'scale' must be 2, not 3"):
        loaded(batch, 3, **given)
    with pytest.raises(daedal.UnsupportedOperation, match="input 'weights' must be given"):
        loaded(batch, 2)
    with pytest.raises(daedal.UnsupportedOperation, match="must have the keys ids, other, not"):
        loaded({"ids": batch["ids"], "another": 1}, 2, **given)


def test_other_kinds_of_inputs(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """A file has all the traces that the executable had by then, and no other."""
    module = Layer(lambda table, ids: table[ids])
    table = torch.randn(20, 8)
    executable = daedal.compile(module, (table, integers(rng, 20, 4)), device=device)
    executable(table, integers(rng, 20, 4, 2))
    executable.save(tmp_path / "model.daedal")
    loaded = load(tmp_path / "model.daedal", device)
    for shape in ((5,), (2, 3)):
        check_same(executable, loaded, (table, integers(rng, 20, *shape)))
    with pytest.raises(daedal.UnsupportedOperation, match="int64 with 2 dimensions, not of int64 with 3"):
        loaded(table.numpy(), rng.integers(0, 20, (2, 2, 2)))
    with pytest.raises(daedal.UnsupportedOperation, match="int64 with 2 dimensions, not of int32"):
        loaded(table.numpy(), rng.integers(0, 20, (2, 2)).astype(np.int32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(halves: daedal.Device, dtype: torch.dtype, rng: np.random.Generator, tmp_path: Path) -> None:
    """Arrays have bfloat16 as the integers that are its bits."""
    module = nn.EmbeddingBag(30, 17, mode="sum", dtype=dtype)
    inputs = integers(rng, 30, 4, 9), None, torch.randn(4, 9).to(dtype)
    executable = daedal.compile(module, inputs, device=halves)
    executable.save(tmp_path / "model.daedal")
    check_same(executable, load(tmp_path / "model.daedal", halves, state_of(module)), inputs)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_halves_by_destination(
    halves: daedal.Device, kind: torch.dtype, rng: np.random.Generator, tmp_path: Path
) -> None:
    """The file says whether each addition is rounded, which the type of destinations decides."""
    layer = Layer(lambda x, keys: x.new_zeros(3, 4).index_add(0, keys, x))
    x = torch.from_numpy(rng.standard_normal((60, 4))).half()
    round_trip(layer, (x, integers(rng, 3, 60).to(kind)), halves, tmp_path / "model.daedal")


def test_quantised_tables(rng: np.random.Generator, tmp_path: Path) -> None:
    """The table of a quantised module is the rows of bytes that it was traced with."""
    with daedal.Device.open("emulator", config=QUANTISED) as quantised:
        bag = quantised_bag(20, 24, 4)
        inputs = integers(rng, 20, 30), torch.tensor([0, 0, 7])
        executable = daedal.compile(bag, inputs, device=quantised)
        executable.save(tmp_path / "model.daedal")
        check_same(executable, load(tmp_path / "model.daedal", quantised, executable.tables()), inputs)


@pytest.mark.usefixtures("fresh")
def test_graphs_of_torch_compile(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """Parameters, which Dynamo hands to a graph as inputs, are tables, and sizes are found out anew."""
    module = Recommender()
    inputs = integers(rng, 30, 12), torch.tensor([0, 5, 7]), integers(rng, 9, 4, 3)
    fast = torch.compile(module, backend="daedal", dynamic=True, options={"device": device})
    with torch.no_grad():
        fast(*inputs)
        (graph,) = daedal.graphs(device)
        graph.save(tmp_path / "model.daedal")
        loaded = load(tmp_path / "model.daedal", device, state_of(module))
        more = integers(rng, 30, 77), torch.tensor([0, 5, 70, 77]), integers(rng, 9, 6, 3)
        expected = fast(*more)
    found = loaded(*more)
    named = (expected["pooled"], *expected["rows"], expected["moved"])
    assert all(any(torch.equal(wanted, each) for each in found) for wanted in named)


def test_exported_programs(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    module = nn.Sequential(nn.EmbeddingBag(30, 16, mode="mean"))
    example = integers(rng, 30, 4, 3)
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},))
    executable = daedal.compile(program, (example,), device=device)
    executable.save(tmp_path / "model.daedal")
    loaded = load(tmp_path / "model.daedal", device, [module[0].weight])
    check_same(executable, loaded, (integers(rng, 30, 7, 3),))
    with pytest.raises(daedal.UnsupportedOperation, match="what the module asks of sizes must be True"):
        loaded(integers(rng, 30, 7, 4))


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_integers_keep_their_type(
    device: daedal.Device, kind: torch.dtype, rng: np.random.Generator, tmp_path: Path
) -> None:
    """A tensor without dimensions does not widen another one, and sums wrap."""
    table = nn.Embedding(30, 8)

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = table

        def forward(self, index: Tensor) -> Any:
            return self.table(index), index.to(kind) + index[0], index.to(kind) * (index[1] * (1 << 30))

    saved, loaded = round_trip(Mixed(), (integers(rng, 20, 3) + 1,), device, tmp_path / "x.daedal")
    check_same(saved, loaded, (integers(rng, 20, 5) + 1,))
