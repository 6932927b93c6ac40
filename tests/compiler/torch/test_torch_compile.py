"""``torch.compile(backend="daedal")``: what runs on the device, in how many launches, equal to eager PyTorch."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import ddr3, device, same_bits, wild_table
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "device", "fresh"]


class Recommender(nn.Module):
    """A DLRM: dense features, bags over tables, interactions of all pairs, and layers on top."""

    def __init__(self, tables: int, dim: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(wild_table(7 + 3 * n, dim, rng), mode="sum", freeze=False)
            for n in range(tables)
        )
        self.bottom = nn.Sequential(nn.Linear(5, dim), nn.ReLU())
        self.top = nn.Linear(dim + tables * (tables + 1) // 2, 1)

    @property
    def bags(self) -> list[nn.EmbeddingBag]:
        return [table for table in self.tables if isinstance(table, nn.EmbeddingBag)]

    def forward(self, dense: Tensor, indices: list[Tensor], offsets: list[Tensor]) -> Tensor:
        x = self.bottom(dense)
        rows = [table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)]
        features = torch.stack([x, *rows], 1)
        low, high = torch.tril_indices(len(rows) + 1, len(rows) + 1, -1).unbind()
        pairs = (features @ features.transpose(1, 2))[:, low, high]
        return torch.sigmoid(self.top(torch.cat([x, pairs], 1)))


def batch(model: Recommender, bags: int, pooling: int, rng: np.random.Generator) -> tuple[Any, ...]:
    offsets = [torch.arange(0, bags * pooling, pooling) for _ in model.tables]
    indices = [torch.from_numpy(rng.integers(0, len(table.weight), bags * pooling)) for table in model.bags]
    return torch.from_numpy(rng.standard_normal((bags, 5)).astype(np.float32)), indices, offsets


def compiled(model: Any, device: daedal.Device, *, dynamic: bool | None = True, **options: Any) -> Callable[..., Any]:
    result: Callable[..., Any] = torch.compile(
        model, backend="daedal", fullgraph=True, dynamic=dynamic, options={"device": device, **options}
    )
    return result


def bag_nodes(graph: Any) -> int:
    return sum("embedding_bag" in name for name in graph.offloaded)


def test_pytorch_knows_the_backend() -> None:
    assert "daedal" in torch._dynamo.list_backends()


def test_a_recommender_of_26_tables_is_one_graph_and_one_launch_for_every_batch(
    ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    model = Recommender(26, 16, rng)
    fast = compiled(model, ddr3)
    for bags, pooling in ((4, 3), (7, 2), (2, 9), (30, 4)):
        inputs = batch(model, bags, pooling, rng)
        with torch.no_grad():
            assert same_bits(fast(*inputs), model(*inputs))
        (graph,) = daedal.graphs(ddr3)
        assert bag_nodes(graph) == 26 == len(graph.offloaded)
        assert graph.stats.launches == 1
        assert graph.stats.rows == 26 * bags * pooling
        assert graph.explain().count("on the device") == 26


def test_marked_sizes_and_automatic_ones(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag.from_pretrained(wild_table(20, 8, rng), mode="mean")

    def inputs(bags: int) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(rng.integers(0, 20, 3 * bags)), torch.arange(0, 3 * bags, 3)

    fast = compiled(model, ddr3, dynamic=None)
    indices, offsets = inputs(4)
    torch._dynamo.mark_dynamic(indices, 0)
    torch._dynamo.mark_dynamic(offsets, 0)
    assert same_bits(fast(indices, offsets), model(indices, offsets))
    for bags in (2, 11):
        again = inputs(bags)
        assert same_bits(fast(*again), model(*again))
    assert len(daedal.graphs(ddr3)) == 1
    torch._dynamo.reset()
    fast = compiled(model, ddr3, dynamic=None)
    for bags in (3, 5, 6, 7):
        again = inputs(bags)
        assert same_bits(fast(*again), model(*again))
    assert len(daedal.graphs(ddr3)) <= 2, "the second size makes PyTorch leave sizes open"


def test_changed_tables_count(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = nn.Embedding.from_pretrained(wild_table(20, 8, rng))
    fast = compiled(model, ddr3)
    indices = torch.tensor([[3, 4, 5], [0, 19, 3]])
    for _ in range(2):
        assert same_bits(fast(indices), model(indices))
        with torch.no_grad():
            model.weight.mul_(3)
    (graph,) = daedal.graphs(ddr3)
    assert graph.offloaded == ("embedding",) and graph.stats.launches == 1


def test_copies_of_a_model_share_the_device(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag(9, 6, mode="sum")
    fast, indices = compiled(model, ddr3), torch.from_numpy(rng.integers(0, 9, (4, 3)))
    with torch.no_grad():
        fast(indices)
        other: Any = copy.deepcopy(fast)
        other.weight.mul_(2.0)
        assert same_bits(fast(indices), model(indices))
        assert same_bits(other(indices), 2 * model(indices))
    with pytest.raises(TypeError, match="a Device, and what was compiled for it, cannot be pickled"):
        pickle.dumps(fast)


def test_threads_take_turns(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag(9, 6, mode="sum")
    batches = [torch.from_numpy(rng.integers(0, 9, (1 + n % 4, 3))) for n in range(24)]
    fast = compiled(model, ddr3)

    def call(batch: Tensor) -> bool:
        with torch.no_grad():
            return same_bits(fast(batch), model(batch))

    assert call(batches[0])
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(call, batches))


def test_training_is_pytorchs(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def steps(model: nn.Module, run: Callable[..., Tensor], inputs: Any) -> list[Tensor]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            run(*inputs).sum().backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()]

    model, twin = (Recommender(3, 4, np.random.default_rng(5)) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    inputs = batch(model, 4, 3, rng)
    fast = compiled(model, ddr3)
    trained = steps(model, fast, inputs)
    (graph,) = daedal.graphs(ddr3)
    assert graph.offloaded == () and graph.stats.launches == 0
    assert graph.explain().count("in PyTorch, because it needs a gradient") == 3
    for ours, theirs in zip(trained, steps(twin, twin, inputs), strict=True):
        assert same_bits(ours, theirs)
    with torch.no_grad():  # what was trained is served from the device, in a graph of its own
        assert same_bits(fast(*inputs), twin(*inputs))
    assert daedal.graphs(ddr3)[-1].stats.launches == 1


def test_frozen_tables_are_offloaded_while_the_rest_trains(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = Recommender(3, 4, rng)
    for table in model.bags[:2]:
        table.weight.requires_grad_(False)
    inputs = batch(model, 4, 3, rng)
    expected = model(*inputs)
    expected.sum().backward()
    wanted = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    result = compiled(model, ddr3)(*inputs)
    result.sum().backward()
    assert same_bits(result, expected)
    found = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    assert wanted.keys() == found.keys() and all(same_bits(found[name], wanted[name]) for name in wanted)
    (graph,) = daedal.graphs(ddr3)
    assert bag_nodes(graph) == 2 and graph.stats.launches == 1
    assert graph.explain().count("in PyTorch, because it needs a gradient") == 1


def test_gradients_inside_of_a_graph(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table = wild_table(10, 4, rng).requires_grad_()

    def model(indices: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            rows = functional.embedding(indices, table)
        return rows, rows + 1

    with torch.no_grad():
        rows, _ = compiled(model, ddr3)(torch.tensor([1, 2]))
    assert rows.requires_grad
    rows.sum().backward()
    assert table.grad is not None and table.grad.sum() == 8


def test_what_stays_in_pytorch_is_named(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    double = wild_table(10, 4, rng).double()
    single = wild_table(10, 4, rng)

    def model(indices: Tensor) -> tuple[Tensor, ...]:
        return (
            functional.embedding_bag(indices, double, mode="sum"),
            functional.embedding_bag(indices, single, mode="sum"),
            functional.embedding(indices, single.clone(), max_norm=1.0),
        )

    indices = torch.tensor([[1, 2], [9, 0]])
    expected = model(indices)
    for ours, theirs in zip(compiled(model, ddr3)(indices), expected, strict=True):
        assert torch.equal(ours, theirs)
    (graph,) = daedal.graphs(ddr3)
    assert graph.offloaded == ("embedding_bag_1",) and graph.stats.launches == 1
    known = "torch.float32 or torch.float16 or torch.bfloat16"
    assert f"embedding_bag: in PyTorch, because the table must be of {known}, not torch.float64" in graph.explain()
    assert "max_norm must be None, not 1.0: it changes the table" in graph.explain()
    layer = nn.Embedding(10, 4, max_norm=1.0)  # an attribute: an input of the graph
    compiled(layer, ddr3)(indices)
    assert "max_norm must be None: it changes the table" in daedal.graphs(ddr3)[-1].explain()


def test_a_graph_without_embeddings_is_pytorchs(ddr3: daedal.Device) -> None:
    model = nn.Linear(3, 2)
    x = torch.ones(2, 3)
    assert same_bits(compiled(model, ddr3)(x), model(x))
    (graph,) = daedal.graphs(ddr3)
    assert graph.executable is None and graph.offloaded == () and graph.stats.launches == 0
    assert graph.explain().startswith("nothing to offload") and "linear" in graph.explain()
    assert graph.stats.launches == 0


def test_another_backend_for_the_rest(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = Recommender(3, 4, rng)
    fast = compiled(model, ddr3, backend="aot_eager")
    for bags in (4, 6):
        inputs = batch(model, bags, 2, rng)
        with torch.no_grad():
            torch.testing.assert_close(fast(*inputs), model(*inputs))
    (graph,) = daedal.graphs(ddr3)
    assert bag_nodes(graph) == 3 and graph.stats.launches == 1
    assert "not compiled by PyTorch" not in graph.explain(), graph.explain()
    assert graph.executable is not None and graph.executable.code.count("daedal_rest_") >= 2
    assert "linear(" not in graph.executable.code


def test_errors_are_those_of_the_device(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag.from_pretrained(wild_table(20, 8, rng), mode="sum")
    fast = compiled(model, ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index 20 is out of range.*the table has 20 rows"):
        fast(torch.tensor([0, 20, 1]), torch.tensor([0, 2]))
    with pytest.raises(daedal.InvalidOffsets, match="the first offset must be 0, not 1"):
        fast(torch.tensor([0, 2, 1]), torch.tensor([1, 2]))
    good = torch.tensor([0, 19, 1]), torch.tensor([0, 2])
    assert same_bits(fast(*good), model(*good))
    lenient = compiled(model, ddr3, bounds="warn")
    with pytest.warns(daedal.BoundsWarning, match="index"):
        result = lenient(torch.tensor([0, 20, 1]), torch.tensor([0, 2]))
    assert same_bits(result, model(torch.tensor([0, 0, 1]), torch.tensor([0, 2])))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"speed": 3}, "ValueError", "must be one of device, bounds, .*, exact, not 'speed'"),
        ({"device": "emulator"}, "TypeError", "must be what daedal.Device.open or System.open gives, not 'emulator'"),
        ({"bounds": "soft"}, "ValueError", "bounds must be one of fatal, .*, not 'soft'"),
        ({"backend": "daedal"}, "ValueError", "must be another backend .*, not 'daedal'"),
        ({"backend": "nonsense"}, "ValueError", "must be another backend .*, not 'nonsense'"),
    ],
)
def test_bad_options(options: dict[str, Any], kind: str, message: str, ddr3: daedal.Device) -> None:
    fast: Any = torch.compile(nn.Embedding(4, 2), backend="daedal", options={"device": ddr3, **options})
    with pytest.raises(BackendCompilerFailed, match=f"{kind}: .*{message}"):
        fast(torch.tensor([1]))


def test_a_closed_device_and_a_mode(rng: np.random.Generator) -> None:
    model = nn.Embedding.from_pretrained(wild_table(4, 2, rng))
    with daedal.Device.open("emulator", config="edge") as dev:
        fast = compiled(model, dev)
        assert same_bits(fast(torch.tensor([1, 2])), model(torch.tensor([1, 2])))
    with pytest.raises(daedal.DeviceClosed):
        fast(torch.tensor([1, 2]))
    with pytest.raises(BackendCompilerFailed, match="mode must be left out"):
        torch.compile(model, backend="daedal", mode="max-autotune")(torch.tensor([1]))


def test_without_a_device_one_emulator_serves_all(rng: np.random.Generator) -> None:
    models = [nn.Embedding.from_pretrained(wild_table(4, width, rng)) for width in (2, 3)]
    for model in models:
        fast: Any = torch.compile(model, backend="daedal")
        assert same_bits(fast(torch.tensor([1, 2, 3])), model(torch.tensor([1, 2, 3])))
    *_, first, second = daedal.graphs()
    assert first.device is second.device and first.device.config.name == "ddr3"
    assert first.stats.launches == 1 == second.stats.launches
    assert daedal.graphs(first.device)[-2:] == [first, second]


@pytest.mark.rtl
def test_on_rtl(rng: np.random.Generator) -> None:
    model = Recommender(3, 4, rng)
    with daedal.Device.open("verilator", config="edge") as dev:
        fast = compiled(model, dev)
        for bags in (2, 3):
            inputs = batch(model, bags, 2, rng)
            with torch.no_grad():
                assert same_bits(fast(*inputs), model(*inputs))
            (graph,) = daedal.graphs(dev)
            assert graph.stats.launches == 1 and graph.stats.cycles > 0 and bag_nodes(graph) == 3
