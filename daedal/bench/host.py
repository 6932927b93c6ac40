"""The same operation on this computer: PyTorch's, and FBGEMM's if it is there, against the bandwidth of its memory.

The yardstick is the triad ``a = b + 3 c`` over arrays that no cache holds. An operation's bytes are those it reads or
writes once: rows, indices, offsets, weights, results. Caches are swept by a triad before each run, so tables come from
memory. Both run with one thread and with as many as PyTorch takes; the best of several runs counts, for both. Other
work on the computer changes these figures by any factor: they mean something on an idle one.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from daedal.bench.workloads.made import Made
from daedal.bench.workloads.measured import Task

ELEMENTS = 1 << 24
"""Elements of an array of the triad: 64 MiB."""

TRIAD_BYTES = 3 * 4 * ELEMENTS
"""Bytes that a triad reads and writes, as it is usually counted: what a write reads first is left out."""

REPEATS = 7
"""Fewest runs with each number of threads; there are more as long as some of so many are quicker than all before."""

MOST_REPEATS = 70
"""Most of them, on a busy computer."""

QUICKER = 0.98
"""Part of the least time so far, or of the least triad, that is worth further runs."""

FBGEMM_COLUMNS = 4
"""FBGEMM takes tables whose columns are a multiple of this."""


@dataclass(frozen=True)
class HostRow:
    """What the host gave, GB/s and shares of the triad; None where there is nothing to measure."""

    triad: float
    torch: float
    fbgemm: float | None
    threads: int

    def as_row(self) -> dict[str, Any]:
        """The figures by the names that they have in a row."""
        return {
            "triad_gb_s": round(self.triad, 2),
            "torch_share": self.torch / self.triad,
            "fbgemm_share": None if self.fbgemm is None else self.fbgemm / self.triad,
            "threads": self.threads,
        }


class Host:
    """The computer that runs the bench; holds the triad's arrays."""

    def __init__(self) -> None:
        self._threads = torch.get_num_threads()
        self._arrays = [torch.zeros(ELEMENTS) for _ in range(3)]
        self._triad()

    def measure(self, made: Task) -> HostRow:
        """The workload's operation, and the triad around each of its runs."""
        return self.beside(made.in_torch(), fbgemm_operation(made), made.useful_bytes)

    def beside(self, ours: Callable[[], Any], fused: Callable[[], Any] | None, useful_bytes: int) -> HostRow:
        """PyTorch's operation and FBGEMM's, if there is one, which move so many bytes; the triad around each run."""
        triads: list[float] = []
        own = self._best(ours, triads)
        other = None if fused is None else useful_bytes / self._best(fused, triads) / 1e9
        triad = TRIAD_BYTES / min(triads) / 1e9
        return HostRow(triad, useful_bytes / own / 1e9, other, self._threads)

    def _best(self, operation: Callable[[], Any], triads: list[float]) -> float:
        """Seconds of the quickest of several runs, each behind a triad."""
        times: list[float] = []
        try:
            for threads in sorted({1, self._threads}):
                torch.set_num_threads(threads)
                with torch.no_grad():
                    operation()
                    self._repeat(operation, times, triads)
        finally:
            torch.set_num_threads(self._threads)
        return min(times)

    def _repeat(self, operation: Callable[[], Any], times: list[float], triads: list[float]) -> None:
        """Time the operation, each run behind a triad, until neither has become quicker for a while."""
        left = REPEATS
        for _ in range(MOST_REPEATS):
            known = min(times, default=0.0), min(triads, default=0.0)
            triads.append(self._triad())
            times.append(_timed(operation))
            is_quicker = times[-1] < QUICKER * known[0] or triads[-1] < QUICKER * known[1]
            left = REPEATS if is_quicker else left - 1
            if not left:
                return

    def _triad(self) -> float:
        result, first, second = self._arrays
        return _timed(lambda: torch.add(first, second, alpha=3.0, out=result))


def _timed(operation: Callable[[], Any]) -> float:
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def fbgemm_tables(
    shapes: Sequence[tuple[int, int]], *, is_mean: bool = False, optimizer: str = "EXACT_SGD", **options: float
) -> Any | None:
    """FBGEMM's tables of so many rows and columns, as one module that trains by this optimizer (with these options) in
    each backward pass; None if FBGEMM is not installed.
    """  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells of parts of its own that it lacks
            from fbgemm_gpu.split_embedding_configs import EmbOptimType
            from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
            from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
                ComputeDevice,
                SplitTableBatchedEmbeddingBagsCodegen,
            )
    except (ImportError, OSError):
        return None
    return SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, columns, EmbeddingLocation.HOST, ComputeDevice.CPU) for rows, columns in shapes],
        optimizer=getattr(EmbOptimType, optimizer),
        pooling_mode=PoolingMode.MEAN if is_mean else PoolingMode.SUM,
        **options,
    )


def fbgemm_operation(made: Task) -> Callable[[], Tensor] | None:
    """The bags as one call of FBGEMM, or None if it is not installed or has no such operation."""
    if not isinstance(made, Made) or made.workload.mode == "gather" or made.workload.dim % FBGEMM_COLUMNS:
        return None
    tables: Any = made.module.bags
    shapes = [(bag.num_embeddings, bag.embedding_dim) for bag in tables]
    fused = fbgemm_tables(shapes, is_mean=made.workload.mode == "mean")
    if fused is None:
        return None
    for ours, theirs in zip(tables, fused.split_embedding_weights(), strict=True):
        theirs.copy_(ours.weight)
    indices, offsets, weights = _together(made.inputs[0])
    result: nn.Module = fused
    return lambda: result(indices, offsets, per_sample_weights=weights)


def _together(inputs: list[tuple[Tensor, ...]]) -> tuple[Tensor, Tensor, Tensor | None]:
    """Indices, offsets (with the last end) and weights of all tables behind each other."""
    starts, total = [], 0
    for tensors in inputs:
        starts.append(tensors[1] + total)
        total += len(tensors[0])
    weights = torch.cat([tensors[2] for tensors in inputs]) if len(inputs[0]) > 2 else None
    return torch.cat([tensors[0] for tensors in inputs]), torch.cat([*starts, torch.tensor([total])]), weights
