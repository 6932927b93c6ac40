"""Gradients of tables, against PyTorch's, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

import daedal
from daedal.compiler.library import gradients
from daedal.compiler.library.segments import segments
from daedal.errors import UnsupportedOperation
from tests.compiler.kernels.kernel_support import floats, same_bits
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.training.training_support import Batch, batch, run, sorted_order

__all__ = ["ddr3"]

SIZES = [0, 17, 300]


def dense(rows: NDArray[np.int64], values: Any, shape: tuple[int, ...]) -> Any:
    """The rows of a gradient in a table of zeros."""
    whole = np.zeros(shape, np.float32)
    whole[rows] = values
    return whole


def of_table(given: Batch, loss: Callable[[torch.Tensor], torch.Tensor], grad: Any) -> Any:
    """PyTorch's gradient of a table."""
    table = torch.from_numpy(given.table).requires_grad_()
    loss(table).backward(torch.from_numpy(grad))
    assert table.grad is not None
    return table.grad


def bag(given: Batch, table: torch.Tensor, **more: Any) -> torch.Tensor:
    indices, offsets = torch.from_numpy(given.indices), torch.from_numpy(given.offsets)
    return functional.embedding_bag(indices, table, offsets, include_last_offset=True, **more)


@pytest.mark.parametrize("samples", [*SIZES, 16, 32767, 32768])
def test_embedding_bag(ddr3: daedal.Device, samples: int, rng: np.random.Generator) -> None:
    given = batch(rng, samples, width=5 if samples > 1000 else 12, bags=max(9, samples // 8))
    parts = segments(given.indices, sorted_order(given.indices))
    out, src = np.zeros((len(parts.rows), given.grad.shape[1]), np.float32), given.bags[parts.order]
    run(ddr3, gradients.summed, out, given.grad, parts.ends, src)
    wanted = of_table(given, lambda table: bag(given, table, mode="sum"), given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)
    wanted = of_table(given, lambda table: bag(given, table, mode="sum", sparse=True), given.grad).coalesce()
    run(ddr3, gradients.coalesced, out, given.grad, *parts.begun(src))
    assert same_bits(out, wanted.values().numpy()) and np.array_equal(parts.rows, wanted.indices()[0].numpy())
    if samples in (17, 32767):  # the order in which equal indices stand is not their own
        stable = segments(given.indices)
        run(ddr3, gradients.coalesced, out, given.grad, *stable.begun(given.bags[stable.order]))
        assert not same_bits(out, wanted.values().numpy())


@pytest.mark.parametrize("samples", SIZES)
@pytest.mark.parametrize("mode", ["mean", "weights"])
def test_weighed_bags(ddr3: daedal.Device, mode: str, samples: int, rng: np.random.Generator) -> None:
    given = batch(rng, samples)
    scale = given.reciprocals if mode == "mean" else given.weights
    more = {"mode": "mean"} if mode == "mean" else {"mode": "sum", "per_sample_weights": torch.from_numpy(scale)}
    parts = segments(given.indices, sorted_order(given.indices))
    out, src = np.zeros((len(parts.rows), given.grad.shape[1]), np.float32), given.bags[parts.order]
    run(ddr3, gradients.fused, out, given.grad, scale[parts.order], parts.ends, src)
    wanted = of_table(given, lambda table: bag(given, table, **more), given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)
    sparse = of_table(given, lambda table: bag(given, table, sparse=True, **more), given.grad)
    values = np.zeros((samples, given.grad.shape[1]), np.float32)
    run(ddr3, gradients.spread, values, given.grad, scale, given.bags)
    assert same_bits(values, sparse._values().numpy())
    order = np.arange(samples)[parts.order]
    run(ddr3, gradients.coalesced, out, values, *parts.begun(order))
    assert same_bits(out, sparse.coalesce().values().numpy())
    natural = segments(given.indices)
    run(ddr3, gradients.summed, out, values, natural.ends, natural.order)
    assert same_bits(dense(natural.rows, out, given.table.shape), sparse.to_dense().numpy())


@pytest.mark.parametrize("samples", SIZES)
def test_padding(ddr3: daedal.Device, samples: int, rng: np.random.Generator) -> None:
    given = batch(rng, samples)
    order = sorted_order(given.indices)
    order = order[given.indices[order] != 1]
    parts = segments(given.indices[order])
    assert np.array_equal(parts.order, np.arange(len(order)))
    out = np.zeros((len(parts.rows), given.grad.shape[1]), np.float32)
    run(ddr3, gradients.summed, out, given.grad, parts.ends, given.bags[order])
    wanted = of_table(given, lambda table: bag(given, table, mode="sum", padding_idx=1), given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)


@pytest.mark.parametrize("samples", SIZES)
def test_the_greatest(ddr3: daedal.Device, samples: int, rng: np.random.Generator) -> None:
    """Small integers, so that there are many ties."""
    given = batch(rng, samples)
    given.table[...] = rng.integers(-2, 3, given.table.shape)
    given.grad[0] = -0.0
    table = torch.from_numpy(given.table)
    indices, offsets = torch.from_numpy(given.indices), torch.from_numpy(given.offsets)
    *_, best = torch.embedding_bag(table, indices, offsets, False, 2, False, None, True)
    pairs = np.unique(np.stack([given.indices, given.bags]), axis=1)
    parts = segments(pairs[0])
    out = np.zeros((len(parts.rows), given.grad.shape[1]), np.float32)
    number = parts.rows.astype(np.float32)
    chosen = best.numpy()[:9].astype(np.float32)
    run(ddr3, gradients.greatest, out, given.grad, chosen, number, parts.ends, pairs[1][parts.order])
    wanted = of_table(given, lambda table: bag(given, table, mode="max"), given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)


@pytest.mark.parametrize("samples", [1, 17, 300])
def test_in_their_own_order(ddr3: daedal.Device, samples: int, rng: np.random.Generator) -> None:
    """Of lookups, gathers, messages and products of sparse matrices."""
    given, own, index = batch(rng, samples), floats(rng, samples, 12), torch.zeros(0)
    index = torch.from_numpy(given.indices)
    parts = segments(given.indices)
    out = np.zeros((len(parts.rows), 12), np.float32)
    run(ddr3, gradients.summed, out, own, parts.ends, parts.order)
    whole = dense(parts.rows, out, given.table.shape)
    for loss in (
        lambda table: functional.embedding(index, table),
        lambda table: table.index_select(0, index),
        lambda table: torch.gather(table, 0, index[:, None].expand(-1, 12)),
    ):
        assert same_bits(whole, of_table(given, loss, own).numpy())
    weights, bags, src = given.weights[parts.order], torch.from_numpy(given.bags), given.bags[parts.order]
    weight = torch.from_numpy(given.weights)
    run(ddr3, gradients.multiplied, out, given.grad, weights, parts.ends, src)

    def messages(table: torch.Tensor) -> torch.Tensor:
        return torch.zeros(9, 12).index_add(0, bags, table.index_select(0, index) * weight[:, None])

    wanted = of_table(given, messages, given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)
    run(ddr3, gradients.fused, out, given.grad, weights, parts.ends, src)
    matrix = torch.sparse_coo_tensor(torch.stack([bags, index]), weight, (9, len(given.table)), check_invariants=True)
    wanted = of_table(given, lambda table: torch.sparse.mm(matrix, table), given.grad).numpy()
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted)


def test_several_lookups_of_a_row(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """The gradient of a sum along a dimension."""
    indices, grad = rng.integers(0, 40, (20, 7)), floats(rng, 20, 12)
    parts, given = segments(indices), batch(rng, 160)
    out = np.zeros((len(parts.rows), 12), np.float32)
    run(ddr3, gradients.summed, out, grad, parts.ends, parts.order // 7)
    wanted = of_table(given, lambda table: functional.embedding(torch.from_numpy(indices), table).sum(1), grad)
    assert same_bits(dense(parts.rows, out, given.table.shape), wanted.numpy())


def test_means_of_segments(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = batch(rng, 200)
    out = np.zeros((200, 12), np.float32)
    run(ddr3, gradients.shared, out, given.grad, given.offsets)
    values = torch.from_numpy(floats(rng, 200, 12)).requires_grad_()
    found = torch.segment_reduce(values, "mean", lengths=torch.from_numpy(given.lengths))
    found.backward(torch.from_numpy(given.grad))
    assert values.grad is not None and same_bits(out, values.grad.numpy())


def test_orders_that_do_not_sort(rng: np.random.Generator) -> None:
    with pytest.raises(UnsupportedOperation, match="order must sort the indices, and does not: take what"):
        segments(np.array([3, 1, 3]), np.array([0, 1, 2]))
    with pytest.raises(UnsupportedOperation, match="order must have 3 elements, one for each index, not 2"):
        segments(np.array([3, 1, 3]), np.array([0, 1]))
