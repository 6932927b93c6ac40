"""Steps of optimizers, against PyTorch's, bit for bit, over several steps."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.library import dense_updates, updates
from daedal.compiler.library.segments import segments
from tests.compiler.kernels.kernel_support import floats, same_bits
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.training.training_support import batch

__all__ = ["ddr3"]

RATE = 0.0123


def step(device: daedal.Device, kernel: KernelFunction, *arguments: Any) -> None:
    daedal.compile(kernel, arguments, device=device)(*arguments)


def sparse_grad(indices: Any, values: Any, shape: Any) -> torch.Tensor:
    index = torch.from_numpy(indices)[None]
    return torch.sparse_coo_tensor(index, torch.from_numpy(values), shape, check_invariants=True)


@pytest.mark.parametrize("samples", [0, 300])
@pytest.mark.parametrize("scaled", [False, True])
def test_sparse_sgd(ddr3: daedal.Device, scaled: bool, samples: int, rng: np.random.Generator) -> None:
    given = batch(rng, samples)
    table, parameter = given.table.copy(), torch.nn.Parameter(torch.from_numpy(given.table.copy()))
    optimizer = torch.optim.SGD([parameter], lr=RATE)
    parts = segments(given.indices)
    for _ in range(3):
        grad = floats(rng, *given.grad.shape)
        values = grad[given.bags] * given.weights[:, None] if scaled else grad[given.bags]
        parameter.grad = sparse_grad(given.indices, values, table.shape)
        optimizer.step()
        src, scale = given.bags[parts.order], given.weights[parts.order]
        if scaled:
            step(ddr3, updates.sgd_scaled, table, grad, scale, parts.rows, parts.ends, src, -RATE)
        else:
            step(ddr3, updates.sgd, table, grad, parts.rows, parts.ends, src, -RATE)
        assert same_bits(table, parameter.detach().numpy())


DENSE = {
    "all_rows": {}, "all_rows_decay": {"weight_decay": 0.037}, "momentum": {"momentum": 0.9, "dampening": 0.25},
    "momentum_decay": {"momentum": 0.9, "weight_decay": 0.037}, "nesterov": {"momentum": 0.9, "nesterov": True},
    "nesterov_decay": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.037},
}  # fmt: skip


@pytest.mark.parametrize("name", DENSE)
def test_dense_sgd(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    """Of a gradient for each row; rows and momentum are kept as they were, the first step's momentum is -0.0."""
    table, more = floats(rng, 30, 12), DENSE[name]
    parameter = torch.nn.Parameter(torch.from_numpy(table.copy()))
    optimizer = torch.optim.SGD([parameter], lr=RATE, **more)
    keep, buffer, kept = more.get("momentum", 0.0), np.full_like(table, -0.0), np.zeros_like(table)
    kept_buffer, done, scale = np.zeros_like(table), np.zeros(30, np.float32), np.ones(30, np.float32)
    decay = [more["weight_decay"]] if "weight_decay" in more else []
    for number in range(4):
        grad, before, buffer_before = floats(rng, *table.shape), table.copy(), buffer.copy()
        parameter.grad = torch.from_numpy(grad.copy())
        optimizer.step()
        take = [1 - more.get("dampening", 0.0) if number else 1.0] if keep and "nesterov" not in more else []
        arrays = [table, buffer, kept, kept_buffer, done] if keep else [table, kept, done]
        numbers = [*decay, *([keep] if keep else []), *take, number + 1.0, -RATE]
        step(ddr3, getattr(dense_updates, name), *arrays, grad, scale, np.arange(31), np.arange(30), *numbers)
        assert same_bits(table, parameter.detach().numpy())
        assert same_bits(kept, before) and (done == number + 1.0).all()
        if keep:
            assert same_bits(buffer, optimizer.state[parameter]["momentum_buffer"].numpy())
            assert same_bits(kept_buffer, buffer_before)


def fused(a: Any, b: Any, c: Any) -> NDArray[np.float32]:
    return np.asarray(daedal.fma(a, np.float32(b), c), np.float32)


@pytest.mark.parametrize("scaled", [False, True])
def test_exact_sgd(ddr3: daedal.Device, scaled: bool, rng: np.random.Generator) -> None:
    """FBGEMM's rule; tests/frameworks compares with FBGEMM itself."""
    given = batch(rng, 300)
    parts, table = segments(given.indices), given.table.copy()
    total = np.zeros_like(table)
    for p in parts.order:
        g, weight = given.grad[given.bags[p]], given.weights[p] if scaled else 1.0
        total[given.indices[p]] = fused(g, weight, total[given.indices[p]])
    wanted = table.copy()
    wanted[parts.rows] = fused(total, -RATE, table)[parts.rows]
    scale = [given.weights[parts.order]] if scaled else []
    kernel = updates.exact_sgd_scaled if scaled else updates.exact_sgd
    step(ddr3, kernel, table, given.grad, *scale, parts.rows, parts.ends, given.bags[parts.order], -RATE)
    assert same_bits(table, wanted)


def adagrad(table: Any, state: Any, total: Any, row: int) -> None:
    """FBGEMM's step for one row, as its loops are on the CPU."""
    partial = np.zeros(8, np.float32)
    for column, g in enumerate(total):
        partial[column % 8] += g * g
    pairs = partial[0::2] + partial[1::2]
    state[row] += ((pairs[0] + pairs[1]) + (pairs[2] + pairs[3])) / np.float32(len(total))
    table[row] += total * (np.float32(-RATE) / (np.sqrt(state[row]) + np.float32(1e-6)))


@pytest.mark.parametrize("width", [4, 12, 64])
@pytest.mark.parametrize("scaled", [False, True])
def test_rowwise_adagrad(ddr3: daedal.Device, scaled: bool, width: int, rng: np.random.Generator) -> None:
    """Over several steps, table and state; tests/frameworks compares with FBGEMM itself."""
    given = batch(rng, 300, width=width)
    parts, table, state = segments(given.indices), given.table.copy(), abs(floats(rng, len(given.table)))
    wanted, wanted_state = table.copy(), state.copy()
    kernel = updates.rowwise_adagrad_scaled if scaled else updates.rowwise_adagrad
    for _ in range(3):
        grad, total = floats(rng, *given.grad.shape), np.zeros_like(table)
        for p in parts.order:
            weight = given.weights[p] if scaled else 1.0
            total[given.indices[p]] = fused(grad[given.bags[p]], weight, total[given.indices[p]])
        for row in parts.rows:
            adagrad(wanted, wanted_state, total[row], row)
        scale = [given.weights[parts.order]] if scaled else []
        src = given.bags[parts.order]
        step(ddr3, kernel, table, state, grad, *scale, parts.rows, parts.ends, src, 1e-6, -RATE)
        assert same_bits(table, wanted) and same_bits(state, wanted_state)
