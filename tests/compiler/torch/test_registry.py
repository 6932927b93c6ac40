"""Operations as the registry has them, and requests that are made without PyTorch."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, fx
from torch._ops import OpOverload

import daedal
from daedal.compiler.frontends.requests.bags import bag_request
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.frontends.requests.lookups import lookup_request
from daedal.compiler.frontends.requests.reductions import coo_request, destination_request
from daedal.compiler.frontends.torch import docs, registry
from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.bags import Bags
from daedal.compiler.frontends.torch.ops.embedding_bag import EmbeddingBag
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.pipeline import compile_emb
from daedal.runtime.request import Request
from tests.compiler.layers.compiler_support import ddr3, run, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

ROOT = Path(__file__).resolve().parents[3]
REQUESTS = ROOT / "sw" / "compiler" / "frontends" / "requests"


def test_the_page_is_that_of_the_registry() -> None:
    module = docs.__name__
    text = (ROOT / "docs" / "pytorch-operations.md").read_text()
    assert text == docs.page(), f"write it anew: python -m {module} > docs/pytorch-operations.md"


def test_no_two_operations_have_a_target_in_common() -> None:
    targets = [target for kind in registry.OPERATIONS for target in kind.targets]
    assert len(set(targets)) == len(targets)
    for kind in registry.OPERATIONS:
        for target in kind.targets:
            assert registry.kind_of(fx.Graph().call_function(target)) is kind


def test_operators_of_another_namespace_are_others() -> None:
    """Of the same names and overloads, with the same schemas."""
    overloads = [each for kind in registry.OPERATIONS for each in kind.targets if isinstance(each, OpOverload)]
    library = torch.library.Library("registry_test", "DEF")
    for overload in overloads:
        schema = str(overload._schema).partition("::")[2]
        library.define(schema)
        packet = getattr(torch.ops.registry_test, overload._opname)
        for target in (packet, getattr(packet, overload._overloadname)):
            assert registry.kind_of(fx.Graph().call_function(target)) is None, schema
    library._destroy()


def test_requests_know_no_framework() -> None:
    modules = sorted(f"daedal.compiler.frontends.requests.{path.stem}" for path in REQUESTS.glob("[a-z]*.py"))
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# ---------------------------------------------------------------------- requests of arrays


def result_of(request: Request, device: daedal.Device) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What a device makes of a request, as an importer of another framework would have it done."""
    kernel = compile_emb(build(request.operation), device.config)
    out = (request.rows, int(request.table.shape[1]))
    buffers = {**request.buffers, "table": request.table, "out": out}
    found: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = run(
        device, kernel, values=dict(request.values), **buffers
    )
    return found.reshape(request.shape)


def test_requests_of_arrays(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table = wild_table(20, 8, rng).numpy()
    indices, offsets = rng.integers(0, 20, 30), np.array([0, 4, 4, 17])
    pooled = result_of(bag_request("bags", table, indices, offsets, None, mode="max"), ddr3)
    assert np.array_equal(pooled[3], table[indices[17:]].max(axis=0)) and not pooled[1].any()

    two = result_of(lookup_request("rows", table, indices.reshape(5, 6) - 20, wraps=True), ddr3)
    assert np.array_equal(two, table[indices.reshape(5, 6)])

    keys, weights = rng.integers(0, 7, 20), rng.standard_normal(20).astype(np.float32)
    sums = np.zeros((7, 8), np.float32)
    for row, key, weight in zip(table, keys, weights, strict=True):
        sums[key] += row * weight
    found = result_of(destination_request("sums", table, None, weights, keys, 7, "sum"), ddr3)
    assert np.array_equal(found, sums)

    product = result_of(coo_request("product", table, (keys, np.arange(20)), weights, 7), ddr3)
    places = torch.from_numpy(np.stack([keys, np.arange(20)]))
    matrix = torch.sparse_coo_tensor(places, torch.from_numpy(weights), (7, 20), check_invariants=True)
    assert same_bits(torch.from_numpy(product), torch.sparse.mm(matrix, torch.from_numpy(table)))


@pytest.mark.parametrize("bits", [32, 64])
def test_a_stable_order_of_destinations(bits: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    keys = rng.integers(0, 9, 500).astype(f"int{bits}")
    request = destination_request("sums", np.ones((500, 4), np.float32), None, None, keys, 9, "sum")
    assert np.array_equal(request.buffers["indices"], np.argsort(keys, kind="stable"))
    assert np.array_equal(np.diff(request.buffers["offsets"]), np.bincount(keys, minlength=9))


# ---------------------------------------------------------------------- one more operation


@torch.library.custom_op("registry_test_bags::first_is_padding", mutates_args=())
def first_is_padding(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
    """Sums of bags without row 0."""
    return torch.nn.functional.embedding_bag(indices, weight, offsets, mode="sum", padding_idx=0)


@first_is_padding.register_fake
def _(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
    return weight.new_empty(offsets.shape[0], weight.shape[1])


@dataclass(frozen=True)
class FirstIsPadding(Bags):
    targets = (torch.ops.registry_test_bags.first_is_padding.default,)
    line = Line("`first_is_padding`", "a bag", "always")

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | None:
        values = arguments_of(node, torch.ops.registry_test_bags.first_is_padding.default)
        return cls(node.name, values["weight"], values["indices"], values["offsets"], None, "sum", 0)

    def in_torch(self, table: Tensor, indices: Tensor, offsets: Tensor, weights: None) -> Tensor:
        return first_is_padding(table, indices, offsets)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With one operation more."""
    registry._kinds.cache_clear()
    monkeypatch.setattr(registry, "OPERATIONS", (*registry.OPERATIONS, FirstIsPadding))
    yield
    registry._kinds.cache_clear()


@pytest.mark.usefixtures("registered")
def test_an_operation_is_one_class(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """It runs on the device, together with others, and PyTorch does it for inputs that the machine cannot take."""
    tables = [wild_table(20, 8, rng), wild_table(9, 16, rng)]
    bags = torch.from_numpy(rng.integers(0, 9, 12)), torch.tensor([0, 3, 3])

    def layer(one: Tensor, two: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
        pooled = torch.nn.functional.embedding_bag(indices, two, offsets, mode="sum")
        return torch.cat([first_is_padding(one, indices, offsets), pooled], dim=1)

    executable = daedal.compile(Layer(layer), (*tables, *bags), device=ddr3)
    assert set(executable.offloaded) == {"first_is_padding", "embedding_bag"}
    assert same_bits(executable(*tables, *bags), layer(*tables, *bags)) and executable.stats.launches == 1
    wide = torch.zeros(20, 0)
    assert executable(wide, tables[1], *bags).shape == (3, 16)
    assert "first_is_padding: in PyTorch, because rows of the table" in executable.explain()
    assert docs.page((EmbeddingBag, FirstIsPadding)).endswith("| `first_is_padding` | a bag | always |\n")
