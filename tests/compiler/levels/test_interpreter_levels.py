"""Every operation at every level and optimisation level gives PyTorch's bits: in the interpreter and on the machine."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves

import daedal
from daedal.compiler.frontends.torch.ops import csr_order
from daedal.compiler.interpreters import interpret
from daedal.compiler.opt_levels import OPT_LEVELS
from daedal.compiler.pipeline import compile_scf
from daedal.hw.isa.elements import BINARY32
from tests.compiler.kernels.kernel_support import same_bits as same
from tests.compiler.layers.compiler_support import ddr3, random_bags, same_bits, wild_table
from tests.compiler.layers.compiler_support import run as on_the_machine
from tests.compiler.layers.test_compiler_lists import Collection, bag, inputs_for
from tests.compiler.levels.interpreter_support import interpreted
from tests.compiler.scalars.scalar_kernels import (
    ACTIVATIONS,
    SCORES,
    Case,
    block_attention,
    block_gather,
    message_passing,
    triples,
)

__all__ = ["ddr3"]

LEVELS = ("scf", "slc", "slcv", "dlc")
Random = np.random.Generator


class Layer(nn.Module):
    """A function of a table and other tensors as a module."""

    def __init__(self, function: Callable[..., Any], table: Tensor) -> None:
        super().__init__()
        self.function, self.table = function, nn.Parameter(table, requires_grad=False)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self.table, *inputs)


def bags(**options: Any) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """``F.embedding_bag`` with such options; a function of what is random."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        types = (torch.int32, torch.int64) if rng.integers(2) else (torch.int64, torch.int32)
        indices, offsets = random_bags(len(table), int(rng.integers(1, 6)), rng, types=types)
        given = dict(options)
        if given.pop("padded", False):
            given["padding_idx"] = int(rng.integers(-len(table), len(table)))
        weights = [wild_table(1, len(indices), rng)[0]] if given.pop("weighted", False) else []

        def function(table: Tensor, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
            return functional.embedding_bag(
                indices, table, offsets, include_last_offset=True, per_sample_weights=weights, **given
            )

        return function, indices, offsets, *weights

    return layer


def pooled_rows(mode: str, **options: Any) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """``F.embedding_bag`` of 2-D indices."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        shape = tuple(rng.integers(1, 6, 2))
        indices = torch.from_numpy(rng.integers(0, len(table), shape))
        return lambda table, indices: functional.embedding_bag(indices, table, mode=mode, **options), indices

    return layer


def pooled_lookups(mode: str, longest: int) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """``F.embedding`` with a sum or mean over dim 1."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        shape = int(rng.integers(1, 4)), int(rng.integers(max(1, longest // 2), longest + 1))
        indices = torch.from_numpy(rng.integers(0, len(table), shape))
        return lambda table, indices: getattr(functional.embedding(indices, table), mode)(1), indices

    return layer


def sparse(layout: str) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """A sparse matrix times the table."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        shape = int(rng.integers(1, 7)), len(table)
        dense = wild_table(*shape, rng) * torch.from_numpy((rng.random(shape) < 0.4).astype(np.float32))
        matrix = dense.to_sparse_csr() if layout == "csr" else dense.to_sparse_coo()
        return lambda table, matrix: torch.sparse.mm(matrix, table), matrix

    return layer


def edges(function: Callable[..., Tensor]) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """A function of a table, sources, destinations and weights of edges."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        count = int(rng.integers(1, 30))
        ends = torch.from_numpy(rng.integers(0, len(table), (2, count)))
        return function, ends[0], ends[1], wild_table(1, count, rng)[0]

    return layer


def scattered(x: Tensor, source: Tensor, to: Tensor, weight: Tensor) -> Tensor:
    message = weight.view(-1, 1) * x.index_select(0, source)
    return torch.zeros_like(x).scatter_add_(0, to.view(-1, 1).expand_as(message), message)


def reduced(kind: str) -> Callable[..., Tensor]:
    def function(x: Tensor, source: Tensor, to: Tensor, weight: Tensor) -> Tensor:
        index = to.view(-1, 1).expand(-1, x.size(1))
        message = x.abs().index_select(0, source) if kind in ("amax", "amin") else x.index_select(0, source)
        return torch.zeros_like(x).scatter_reduce(0, index, message, kind, include_self=False)

    return function


def segments(kind: str) -> Callable[..., Tensor]:
    def function(x: Tensor, source: Tensor, to: Tensor, weight: Tensor) -> Tensor:
        lengths = torch.bincount(to, minlength=len(x))
        return torch.segment_reduce(x.index_select(0, source), kind, lengths=lengths)

    return function


def gathers(function: Callable[..., Tensor]) -> Callable[[Random, Tensor], tuple[Any, ...]]:
    """Rows of a table."""

    def layer(rng: Random, table: Tensor) -> tuple[Any, ...]:
        return function, torch.from_numpy(rng.integers(0, len(table), int(rng.integers(1, 9))))

    return layer


MODULES: dict[str, Callable[[Random, Tensor], tuple[Any, ...]]] = {
    **{f"bags {mode}": bags(mode=mode) for mode in ("sum", "mean", "max")},
    **{f"bags {mode} padded": bags(mode=mode, padded=True) for mode in ("sum", "mean", "max")},
    "bags weighted": bags(mode="sum", weighted=True),
    "bags weighted padded": bags(mode="sum", weighted=True, padded=True),
    **{f"rows {mode}": pooled_rows(mode) for mode in ("sum", "mean", "max")},
    "rows mean padded": pooled_rows("mean", padding_idx=0),
    **{f"lookups {mode} {n}": pooled_lookups(mode, n) for mode in ("sum", "mean") for n in (16, 60)},
    "CSR": sparse("csr"),
    "COO": sparse("coo"),
    "scatter_add": edges(scattered),
    "index_add": edges(lambda x, source, to, weight: torch.zeros_like(x).index_add(0, to, x[source])),
    "scatter_reduce mean": edges(reduced("mean")),
    "scatter_reduce amax": edges(reduced("amax")),
    "scatter_reduce amin": edges(reduced("amin")),
    **{f"segment_reduce {kind}": edges(segments(kind)) for kind in ("sum", "mean", "max", "min")},
    "index_select": gathers(lambda x, index: x.index_select(0, index)),
    "index": gathers(lambda x, index: x[index]),
    "gather": gathers(lambda x, index: torch.gather(x, 0, index.view(-1, 1).expand(-1, x.size(1)))),
    "embedding": gathers(lambda x, index: functional.embedding(index.view(-1, 1), x)),
}
"""Operations of PyTorch by name: a function of a table and its other inputs, from what is random."""


def cases(dim: int) -> dict[str, Callable[[Random], Case]]:
    """Operations that PyTorch has no name for, from loops."""
    return {
        **{f"message passing {name}": lambda rng, n=name: message_passing(rng, n, dim) for name in ACTIVATIONS},
        **{f"score {name}": lambda rng, n=name: triples(rng, n, dim) for name in SCORES},
        "block attention": lambda rng: block_attention(rng, dim),
        "block gather": lambda rng: block_gather(rng, dim),
    }


@pytest.fixture
def rng(request: pytest.FixtureRequest, seed: int) -> Random:
    """Other data and shapes for each operation and optimisation level."""
    return np.random.default_rng([seed, crc32(request.node.name.encode())])


def width_of_row(rng: Random) -> int:
    """Half of the rows are at most two lines long."""
    return int(rng.integers(1, 9) if rng.integers(2) else rng.integers(9, 40))


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")  # PyTorch calls its CSR support new
def test_operations_of_pytorch(ddr3: daedal.Device, name: str, opt: int, rng: Random) -> None:
    width = int(rng.choice([4, 32])) if name.startswith("lookups") else width_of_row(rng)
    if name == "CSR" and not csr_order.order_of(width):
        width = 33
    if name == "CSR" and not csr_order.order_of(width):
        pytest.skip("on this processor the product is PyTorch's")
    table = wild_table(int(rng.integers(1, 20)), width, rng)
    function, *inputs = MODULES[name](rng, table)
    module = Layer(function, table)
    executable, expected = daedal.compile(module, tuple(inputs), device=ddr3, opt=opt), module(*inputs)
    assert executable.offloaded
    for level in ("emb", *LEVELS):
        assert same_bits(interpreted(executable, level, inputs), expected), level
    assert same_bits(executable(*inputs), expected)


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("ending", ["concatenated", "tuple"])
def test_collections(ddr3: daedal.Device, ending: str, opt: int, rng: Random) -> None:
    options: list[dict[str, Any]] = [{}, {"padding_idx": 1}, {"mode": "mean"}, {"mode": "max"}, {}, {"mode": "mean"}]
    width = int(rng.integers(1, 12))
    layers = [bag(int(rng.integers(2, 20)), width if n % 2 else 3, rng, **each) for n, each in enumerate(options)]
    module = Collection(layers, ending)
    inputs = inputs_for(module, int(rng.integers(1, 4)), rng, weighted=(4,))
    executable, expected = daedal.compile(module, (inputs,), device=ddr3, opt=opt), tree_leaves(module(inputs))
    for level in ("emb", *LEVELS):
        found = tree_leaves(interpreted(executable, level, [inputs]))
        assert all(same_bits(a, b) for a, b in zip(found, expected, strict=True)), level
    assert all(same_bits(a, b) for a, b in zip(tree_leaves(executable(inputs)), expected, strict=True))
    assert executable.stats.launches == 1


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("name", cases(1))
def test_operations_from_loops(ddr3: daedal.Device, name: str, opt: int, rng: Random) -> None:
    width = width_of_row(rng)
    if name.startswith("block"):  # rows of blocks are not apart: each has to start at a line
        width = -(-width * BINARY32.bytes // ddr3.config.bus_bytes) * ddr3.config.bus_bytes // BINARY32.bytes
    case = cases(width)[name](rng)
    kernel = compile_scf(case.text, ddr3.config, opt)
    buffers = {n: np.zeros(b, np.float32) if isinstance(b, tuple) else b for n, b in case.buffers.items()}
    for level in LEVELS:
        assert same(interpret(kernel.ir(level), buffers, case.values)["out"], np.asarray(case.expected)), level
    assert same(on_the_machine(ddr3, kernel, values=case.values, **case.buffers), np.asarray(case.expected))
