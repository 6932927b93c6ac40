"""The suite ``training``: gradients of a table and steps of optimizers on the machine, beside PyTorch and FBGEMM here.

Bags of one row each, some of the same row. Kernels are those of ``daedal.compiler.library``; results are compared with
PyTorch's, and those of FBGEMM's optimizers with their rules in NumPy. Steps that can be undone after a fault are those
of ``daedal.optim``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import daedal
from daedal.bench.host import Host, fbgemm_tables
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, against, at_most, machines_of, one_thread
from daedal.bench.suites.single_layers import figures
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.library import gradients, kept_updates, updates
from daedal.compiler.library.segments import segments

DIM, SAMPLES, ROWS = 64, 1000, 1000
RATE, EPS = 0.0123, 1e-6

IDEAL, DRAM = 0.97, 0.90
"""Least shares of the memory port's lines on ``ideal`` and on a DRAM, of what memory bounds."""

ADAGRAD = 140
"""Most cycles of a row."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Batch:
    """Samples of a table: the row of each, and a row of gradient for each."""

    table: Array
    grad: Array
    indices: NDArray[np.int64]

    @staticmethod
    def drawn(seed: int, samples: int) -> "Batch":
        """So many samples of as many rows."""
        rng = np.random.default_rng(seed)
        table, grad = (rng.standard_normal((samples, DIM), dtype=np.float32) for _ in range(2))
        return Batch(table, grad, rng.integers(0, samples, samples))

    def sorted_by_torch(self) -> NDArray[np.int64]:
        """The order in which PyTorch adds up what is of one row."""
        found: NDArray[np.int64] = torch.from_numpy(self.indices).sort()[1].numpy()
        return found

    def sparse(self) -> Tensor:
        """The gradient of the table, a row for each sample."""
        index, values = torch.from_numpy(self.indices)[None], torch.from_numpy(self.grad)
        return torch.sparse_coo_tensor(index, values, self.table.shape, check_invariants=True)


@dataclass(frozen=True)
class Step:
    """A kernel on a batch: its arguments, the first of which it changes, what that is to be, and who else does it."""

    kernel: KernelFunction
    arguments: tuple[Any, ...]
    expected: Array
    in_torch: Callable[[], Any] | None = None
    in_fbgemm: Callable[[], Any] | None = None
    most_cycles: int | None = None
    is_memory_bound: bool = True


def sgd(batch: Batch) -> Step:
    """``torch.optim.SGD`` with a sparse gradient."""
    parts, parameter = segments(batch.indices), nn.Parameter(torch.from_numpy(batch.table.copy()))
    parameter.grad = batch.sparse()
    optimizer = torch.optim.SGD([parameter], lr=RATE)
    optimizer.step()
    expected = parameter.detach().numpy().copy()
    arguments = (batch.table.copy(), batch.grad, parts.rows, parts.ends, parts.order, -RATE)
    return Step(updates.sgd, arguments, expected, optimizer.step)


def summed(batch: Batch) -> Step:
    """The dense gradient of an ``EmbeddingBag``, of the rows that have one."""
    parts = segments(batch.indices, batch.sorted_by_torch())
    weight = torch.from_numpy(batch.table).clone().requires_grad_()
    offsets = torch.arange(len(batch.indices))
    result = nn.functional.embedding_bag(torch.from_numpy(batch.indices), weight, offsets, mode="sum")

    def backward() -> Tensor:
        return torch.autograd.grad(result, weight, torch.from_numpy(batch.grad), retain_graph=True)[0]

    expected = backward().numpy()[parts.rows]
    return Step(gradients.summed, (np.zeros_like(expected), batch.grad, parts.ends, parts.order), expected, backward)


def coalesced(batch: Batch) -> Step:
    """``coalesce()`` of a sparse gradient."""
    parts = segments(batch.indices, batch.sorted_by_torch())
    expected = batch.sparse().coalesce().values().numpy()
    arguments = (np.zeros_like(expected), batch.grad, *parts.begun(parts.order))
    return Step(gradients.coalesced, arguments, expected, lambda: batch.sparse().coalesce())


def greatest(batch: Batch) -> Step:
    """The gradient of maxima, of bags of one row each."""
    parts, offsets = segments(batch.indices), torch.arange(len(batch.indices))
    weight = torch.from_numpy(batch.table).clone().requires_grad_()
    indices = torch.from_numpy(batch.indices)
    result = nn.functional.embedding_bag(indices, weight, offsets, mode="max")
    best = np.repeat(batch.indices.astype(np.float32)[:, None], DIM, 1)

    def backward() -> Tensor:
        return torch.autograd.grad(result, weight, torch.from_numpy(batch.grad), retain_graph=True)[0]

    expected = backward().numpy()[parts.rows]
    arguments = (np.zeros_like(expected), batch.grad, best, parts.rows.astype(np.float32), parts.ends, parts.order)
    return Step(gradients.greatest, arguments, expected, backward, is_memory_bound=False)


def exact_sgd(batch: Batch) -> Step:
    """FBGEMM's EXACT_SGD."""
    parts, table = segments(batch.indices), nn.Parameter(torch.from_numpy(batch.table.copy()))
    table.grad = torch.from_numpy(_sums(batch))
    torch.optim.SGD([table], lr=RATE).step()  # of a dense gradient: rounded once, as FBGEMM's
    expected = np.where(_is_read(batch), table.detach().numpy(), batch.table)
    arguments = (batch.table.copy(), batch.grad, parts.rows, parts.ends, parts.order, -RATE)
    return Step(updates.exact_sgd, arguments, expected, in_fbgemm=_in_fbgemm(batch, "EXACT_SGD"), is_memory_bound=False)


def rowwise_adagrad(batch: Batch) -> Step:
    """FBGEMM's EXACT_ROWWISE_ADAGRAD, with a state that is 0."""
    parts, sums = segments(batch.indices), _sums(batch)
    partial = np.zeros((len(sums), 8), np.float32)
    for eight in np.split(sums * sums, DIM // 8, axis=1):
        partial += eight
    while partial.shape[1] > 1:
        partial = partial[:, ::2] + partial[:, 1::2]
    state = partial[:, 0] / np.float32(DIM)
    step = np.float32(-RATE) / (np.sqrt(state) + np.float32(EPS))
    expected = np.where(_is_read(batch), batch.table + sums * step[:, None], batch.table)
    arguments = (
        batch.table.copy(), np.zeros(len(sums), np.float32), batch.grad, parts.rows, parts.ends, parts.order, EPS, -RATE
    )  # fmt: skip
    return Step(
        updates.rowwise_adagrad, arguments, expected, in_fbgemm=_in_fbgemm(batch, "EXACT_ROWWISE_ADAGRAD"),
        most_cycles=ADAGRAD, is_memory_bound=False,
    )  # fmt: skip


def _undoable(make: Callable[[Batch], Step], kernel: KernelFunction) -> Callable[[Batch], Step]:
    """The same step by a kernel that keeps each row, its state and a tag before the row changes."""

    def made(batch: Batch) -> Step:
        step = make(batch)
        rows = len(np.unique(batch.indices))
        state = step.arguments[1:2] if kernel is kept_updates.rowwise_adagrad else ()
        rest = step.arguments[1 + len(state) :]
        kept = (np.zeros((rows, DIM), np.float32), *(np.zeros(rows, np.float32) for _ in state))
        arguments = (step.arguments[0], *state, *kept, np.zeros(rows, np.float32), *rest[:4], 1.0, *rest[4:])
        return replace(step, kernel=kernel, arguments=arguments, in_torch=None, in_fbgemm=None, is_memory_bound=False)

    return made


STEPS: dict[str, Callable[[Batch], Step]] = {
    "sparse SGD": sgd,
    "sparse SGD, undoable": _undoable(sgd, kept_updates.sgd),
    "gradient of sums": summed,
    "coalesce": coalesced,
    "gradient of maxima": greatest,
    "EXACT_SGD": exact_sgd,
    "EXACT_SGD, undoable": _undoable(exact_sgd, kept_updates.exact_sgd),
    "EXACT_ROWWISE_ADAGRAD": rowwise_adagrad,
    "EXACT_ROWWISE_ADAGRAD, undoable": _undoable(rowwise_adagrad, kept_updates.rowwise_adagrad),
}
"""Name -> what makes it of a batch."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each kernel, each on a machine of its own."""
    with one_thread():
        host = Host() if order.host else None
        for machine in machines_of(order):
            for name in STEPS:
                say(f"training: {name} on {machine.memory}")
                yield measure(name, machine, host)


def measure(name: str, machine: Machine, host: Host | None) -> Row:
    """Run a kernel, compare what it did, and put its figures together."""
    batch = Batch.drawn(machine.seed, 64 if machine.quick else SAMPLES)
    step, rows = STEPS[name](batch), len(np.unique(batch.indices))
    with daedal.Device.open(machine.target, config=machine.config, memory=machine.memory) as device:
        executable = daedal.compile(step.kernel, step.arguments, device=device)
        executable(*step.arguments)
        row = figures(executable.stats, machine)
    equal = np.array_equal(step.arguments[0].view(np.uint32), step.expected.view(np.uint32))
    per_row = row["cycles"] / rows if row["cycles"] else None
    goal: str | None = None
    if machine.config.name == "ddr3" and row["cycles"] and not machine.quick:
        if step.most_cycles:
            goal = at_most(per_row, step.most_cycles)
        elif step.is_memory_bound:
            goal = against(row["line_share"], IDEAL if machine.memory.startswith("ideal") else DRAM)
    shares: Row = {}
    if host is not None:
        useful = executable.stats.bytes_read + executable.stats.bytes_written
        shares = _beside(host, step, useful)
    return {
        "workload": name, **machine.facts(), "seed": machine.seed, "dim": DIM, "samples": len(batch.indices),
        "table_rows": rows, **row, "cycles_per_row": per_row, "outcome": goal, "bit_exact": equal, **shares,
        "verdict": "" if equal else NOT_EQUAL,
    }  # fmt: skip


def _beside(host: Host, step: Step, useful_bytes: int) -> Row:
    """Shares of the triad that the same bytes reach here in PyTorch's or FBGEMM's step."""
    ours = step.in_torch or step.in_fbgemm
    if ours is None:
        return {}
    with torch.enable_grad():
        found = host.beside(ours, None, useful_bytes).as_row()
    share = found.pop("torch_share")
    return {**found, "torch_share" if step.in_torch else "fbgemm_share": share}


def _sums(batch: Batch) -> Array:
    """The gradient of each row of the table: its samples in their own order, from 0."""
    found = np.zeros_like(batch.table)
    np.add.at(found, batch.indices, batch.grad)
    return found


def _is_read(batch: Batch) -> NDArray[np.bool_]:
    """Which rows have samples, as a column."""
    found = np.zeros((len(batch.table), 1), bool)
    found[batch.indices] = True
    return found


def _in_fbgemm(batch: Batch, optimizer: str) -> Callable[[], Any] | None:
    """FBGEMM's backward step of one-row bags, or None if it is not installed."""
    fused = fbgemm_tables([batch.table.shape], optimizer=optimizer, learning_rate=RATE, eps=EPS)
    if fused is None:
        return None
    with torch.enable_grad():
        result = fused(torch.from_numpy(batch.indices), torch.arange(len(batch.indices) + 1))
    return lambda: result.backward(torch.from_numpy(batch.grad), retain_graph=True)


NAME = "training"

SUITE = Suite(
    name=NAME,
    title="Training: gradients of a table and steps of optimizers",
    columns=(
        column("step", "workload"), column("memory", "memory"), column("cycles", "cycles", ",.0f"),
        column("cycles a row", "cycles_per_row", ".1f"), column("of lines", "line_share", ".3f"),
        column("main stall", "main_stall"), column("equal", "bit_exact"),
        column("PyTorch, of triad", "torch_share", ".2f"), column("FBGEMM, of triad", "fbgemm_share", ".2f"),
        column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
