"""Reductions and sparse products of rows of 16-bit elements: each rounds where PyTorch does."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.test_narrow_bags import DTYPES, EDGE, TINY, same, table_of
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["fresh"]

Case = tuple[Callable[..., Tensor], tuple[Any, ...]]


@pytest.fixture(scope="module")
def halves() -> Iterator[daedal.Device]:
    """The golden model of a machine that has all converters."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def zeros(like: Tensor, rows: int) -> Tensor:
    return like.new_zeros(rows, like.shape[1])


def wide(keys: Tensor, rows: Tensor) -> Tensor:
    return keys[:, None].expand(-1, rows.shape[1])


def matrix(row: Tensor, column: Tensor, weights: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([row, column]), weights[:, 0], shape, check_invariants=True)


def cases(dtype: torch.dtype, rng: np.random.Generator, *, any_bits: bool, n: int | None = None) -> dict[str, Case]:
    """By name: a reduction of ``n`` rows, gathered or not, weighted or not, and its inputs."""
    n = int(rng.integers(1, 80)) if n is None else n
    rows, width = int(rng.integers(1, 12)), int(rng.choice([1, 2, 5, 8, 34, 63]))
    table, w = table_of(dtype, n, width, rng, any_bits=any_bits), table_of(dtype, n, 1, rng)
    keys, source = (torch.from_numpy(rng.integers(0, most, n)) for most in (rows, n))
    lengths = torch.from_numpy(np.bincount(keys, minlength=rows))
    free = torch.nan_to_num(table) + 0 * table.abs().nan_to_num() + 1e-3  # neither NaN nor zeros of both signs
    plain, gathered, weighted = (table, keys), (table, keys, source), (table, keys, source, w)
    from_end, segments = (table, keys - rows * (keys % 2)), (table, lengths, source, w)

    def by_key(reduce: str, rows: int) -> Callable[..., Tensor]:
        return lambda t, k: zeros(t, rows).scatter_reduce(0, wide(k, t), t, reduce, include_self=reduce == "sum")

    return {
        "index_add": (lambda t, k: zeros(t, rows).index_add(0, k, t), plain),
        "index_add in place": (lambda t, k: zeros(t, rows).index_add_(0, k, t), plain),
        "index_add of a gather": (lambda t, k, s: zeros(t, rows).index_add(0, k, t[s]), gathered),
        "index_add of products": (lambda t, k, s, w: zeros(t, rows).index_add(0, k, t[s] * w), weighted),
        "index_add to int32": (lambda t, k: zeros(t, rows).index_add(0, k, t), (table, keys.int())),
        "index_add in place to int32": (lambda t, k: zeros(t, rows).index_add_(0, k, t), (table, keys.int())),
        "index_add of products to int32": (
            lambda t, k, s, w: zeros(t, rows).index_add(0, k, t[s] * w), (table, keys.int(), source, w),
        ),
        "scatter_add": (lambda t, k: zeros(t, rows).scatter_add(0, wide(k, t), t), plain),
        "scatter_add of products": (lambda t, k, s, w: zeros(t, rows).scatter_add(0, wide(k, t), w * t[s]), weighted),
        "scatter_reduce sum": (by_key("sum", rows), plain),
        "scatter_reduce mean": (by_key("mean", rows), plain),
        "scatter_reduce amax": (by_key("amax", rows), (free, keys)),
        "index_put": (lambda t, k: zeros(t, rows).index_put((k,), t, accumulate=True), from_end),
        "index_put to int32": (
            lambda t, k: zeros(t, rows).index_put((k,), t, accumulate=True), (table, keys.int()),
        ),
        "index_put of products": (
            lambda t, k, s, w: zeros(t, rows).index_put_((k,), t[s] * w, accumulate=True), weighted,
        ),
        "segment_reduce sum": (lambda t, n: torch.segment_reduce(t, "sum", lengths=n), (table, lengths)),
        "segment_reduce mean": (lambda t, n: torch.segment_reduce(t, "mean", lengths=n), (table, lengths)),
        "segment_reduce max": (lambda t, n: torch.segment_reduce(t, "max", lengths=n), (free, lengths)),
        "segment_reduce of products": (
            lambda t, n, s, w: torch.segment_reduce(t[s] * w, "mean", lengths=n, initial=0), segments,
        ),
        "COO": (torch.sparse.mm, (matrix(keys, source, w, (rows, n)), table)),
        "COO, transposed": (lambda a, t: a.t() @ t, (matrix(source, keys, w, (n, rows)), table)),
    }  # fmt: skip


NAMES = list(cases(torch.float16, np.random.default_rng(1), any_bits=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_each_rounds_as_pytorch(name: str, dtype: str, halves: daedal.Device, rng: np.random.Generator) -> None:
    for number in range(4):
        layer, inputs = cases(DTYPES[dtype], rng, any_bits=number == 3)[name]
        executable = daedal.compile(Layer(layer), inputs, device=halves)
        assert same(executable(*inputs), layer(*inputs))
        assert executable.offloaded, executable.explain()


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_additions(dtype: str, halves: daedal.Device, rng: np.random.Generator) -> None:
    """Of more rows than the number of rows can be told in the type: such means are PyTorch's."""
    for name, (layer, inputs) in cases(DTYPES[dtype], rng, any_bits=False, n=3000).items():
        executable = daedal.compile(Layer(layer), inputs, device=halves)
        assert same(executable(*inputs), layer(*inputs)), name


def test_where_it_rounds(halves: daedal.Device) -> None:
    """Of 1, 2**-8 and 2**-8 in bfloat16: the sum is 1 if each addition is rounded, and 1 + 2**-7 if the last one is."""
    table = torch.tensor([[1.0, 1.0], [2.0**-8, 2.0**-8], [2.0**-8, 2.0**-8]], dtype=torch.bfloat16)
    keys, lengths = torch.zeros(3, dtype=torch.int64), torch.tensor([3])
    once: Case = (lambda t, k: t.new_zeros(1, 2).index_add(0, k, t), (table, keys))
    each: Case = (lambda t, n: torch.segment_reduce(t, "sum", lengths=n), (table, lengths))
    each_int32: Case = (once[0], (table, keys.int()))
    for (layer, inputs), expected in ((once, 1.0 + 2.0**-7), (each, 1.0), (each_int32, 1.0)):
        executable = daedal.compile(Layer(layer), inputs, device=halves)
        assert executable(*inputs).tolist() == [[expected] * 2] == layer(*inputs).tolist() and executable.offloaded


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [(1,), (6,), (2, 3)])
def test_index_add_rounds_by_type_of_destinations(
    dtype: str, inner: tuple[int, ...], halves: daedal.Device, rng: np.random.Generator
) -> None:
    """Whatever type the module was compiled with, and whether rows have dimensions of their own."""
    rows = torch.from_numpy(rng.standard_normal((7, *inner))).to(DTYPES[dtype])
    source, keys = (torch.from_numpy(rng.integers(0, most, 300)) for most in (7, 5))

    def layer(t: Tensor, k: Tensor, s: Tensor) -> Tensor:
        return t.new_zeros(5, *inner).index_add(0, k, t[s])

    fast = torch.compile(Layer(layer), backend="daedal", options={"device": halves})
    with torch.no_grad():
        expected = {kind: layer(rows, keys.to(kind), source) for kind in (torch.int64, torch.int32)}
        assert not torch.equal(*expected.values())
        for kind in expected:
            assert same(fast(rows, keys.to(kind), source), expected[kind])
            executable = daedal.compile(Layer(layer), (rows, keys.to(kind), source), device=halves)
            assert same(executable(rows, keys.to(kind), source), expected[kind]) and executable.offloaded


def kept(dtype: torch.dtype) -> dict[str, tuple[Callable[..., Tensor], tuple[Any, ...], str]]:
    """What stays in PyTorch, and why."""
    table, keys = torch.ones(6, 4, dtype=dtype), torch.tensor([0, 1, 1, 0, 2, 2])
    long = torch.ones(2051, 2, dtype=dtype)
    put = lambda t, k: t.new_zeros(3, t.shape[1]).index_put((k,), t)  # noqa: E731
    return {
        "alpha": (lambda t, k: zeros(t, 3).index_add(0, k, t, alpha=0.5), (table, keys), "alpha must be 1, not 0.5"),
        "no sum": (put, (table, keys), "accumulate must be True"),
        "a number that is none": (
            lambda t, n: torch.segment_reduce(t, "mean", lengths=n), (long, torch.tensor([2051])), "not of 2051",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", kept(torch.float16))
def test_what_stays_in_pytorch(name: str, dtype: str, halves: daedal.Device) -> None:
    layer, inputs, reason = kept(DTYPES[dtype])[name]
    fast = torch.compile(Layer(layer), backend="daedal", options={"device": halves})
    with torch.no_grad():
        assert same(fast(*inputs), layer(*inputs))
    assert reason in daedal.graphs(halves)[-1].explain()


def test_weights_of_another_type(halves: daedal.Device) -> None:
    """The product is of float32, and so is the sum: the machine adds what PyTorch has multiplied."""
    table, w, keys = torch.randn(6, 4).half(), torch.randn(6, 1), torch.tensor([0, 1, 1, 0, 2, 2])
    layer: Callable[..., Tensor] = lambda t, k, w: torch.zeros(3, 4).index_add(0, k, t[k] * w)  # noqa: E731
    executable = daedal.compile(Layer(layer), (table, keys, w), device=halves)
    assert torch.equal(executable(table, keys, w), layer(table, keys, w))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_are_pytorchs(mode: str, dtype: str, halves: daedal.Device, rng: np.random.Generator) -> None:
    """A table that needs one stays there, with the reason; the same table without is the device's."""
    module = nn.EmbeddingBag.from_pretrained(table_of(DTYPES[dtype], 9, 4, rng), mode=mode, freeze=False)
    indices, offsets = torch.tensor([1, 2, 2, 8]), torch.tensor([0, 3])
    fast = torch.compile(module, backend="daedal", options={"device": halves})
    fast(indices, offsets).float().sum().backward()
    found, module.weight.grad = module.weight.grad, None
    module(indices, offsets).float().sum().backward()
    assert found is not None and module.weight.grad is not None and same(found, module.weight.grad)
    assert "it needs a gradient, and gradients are PyTorch's" in daedal.graphs(halves)[-1].explain()
    with torch.no_grad():
        assert same(fast(indices, offsets), module(indices, offsets))
    assert daedal.graphs(halves)[-1].offloaded


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_rtl(dtype: str, rng: np.random.Generator) -> None:
    """Each case once, with answers of memory that come out of order."""
    with daedal.Device.open("verilator", config=TINY, memory="ideal:latency=30,stall=0.3,seed=5") as device:
        for name, (layer, inputs) in cases(DTYPES[dtype], rng, any_bits=False, n=40).items():
            executable = daedal.compile(Layer(layer), inputs, device=device)
            assert same(executable(*inputs), layer(*inputs)), name
            assert executable.offloaded, name
