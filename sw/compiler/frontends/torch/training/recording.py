"""What backward passes leave for an optimizer: the samples of a table, and the rows of the output's gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """The samples of an operation on a table.

    Attributes
    ----------
    rows
        The row of each, as PyTorch sorts them: integers[P].
    sources
        Which row of the output each is in: int64[P].
    scale
        What its row is multiplied with: float32[P]; None for nothing.
    padding
        The row of samples that have no gradient; None if there is none.
    is_sparse
        Whether PyTorch's gradient is sparse.
    is_sorted
        Whether PyTorch adds in the order of ``indices.sort()``; if not, in that of the samples.
    gradient
        PyTorch's gradient of the table for one of the output, which may be differentiable.
    """

    rows: Array
    sources: Array
    scale: Array | None
    padding: int | None
    is_sparse: bool
    is_sorted: bool
    gradient: Callable[[Tensor], Tensor]

    def gradient_of(self, grad: Tensor) -> Tensor:
        """``gradient``."""
        return self.gradient(grad)


@dataclass(frozen=True)
class Pair:
    """Samples, and the gradient of the rows that they are in: float32[B, D]. ``task`` is the backward pass.

    ``shape`` and ``strides`` are those with which the gradient came.
    """

    samples: Samples
    grad: Tensor
    task: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, samples: Samples, grad: Tensor) -> "Pair":
        """Samples and a copy of the gradient that the backward pass at work has for their rows."""
        kept = grad.detach().reshape(-1, grad.shape[-1]).clone(memory_format=torch.contiguous_format)
        return cls(samples, kept, torch._C._current_graph_task_id(), tuple(grad.shape), grad.stride())

    def gradient(self) -> Tensor:
        """PyTorch's gradient of the table."""
        return self.samples.gradient(self._as_it_came())

    def _as_it_came(self) -> Tensor:
        """The gradient with its strides: PyTorch adds sparse gradients in an order that depends on them."""
        rows = self.grad.view(self.shape)
        if rows.stride() == self.strides:
            return rows
        for dim, stride in enumerate(self.strides):
            if stride == 0:
                rows = rows.narrow(dim, 0, min(1, rows.shape[dim]))
        return torch.empty_strided(rows.shape, self.strides).copy_(rows).expand(self.shape)


def accumulated(pairs: Sequence[Pair], total: Tensor | None = None) -> Tensor | None:
    """PyTorch's gradient of a table after these backward passes, added to that which it has."""
    by_pass: dict[int, Tensor] = {}
    with torch.no_grad():
        for pair in pairs:
            before = by_pass.get(pair.task)
            by_pass[pair.task] = pair.gradient() if before is None else pair.gradient() + before
        for gradient in by_pass.values():
            first = gradient.clone() if gradient.is_sparse else gradient  # values then are contiguous, as PyTorch's
            total = first if total is None else total + gradient
    return total


class Recorded(torch.autograd.Function):
    """Rows that a device has looked up in a table: their gradient is recorded where the table's would be."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, rows: Tensor, samples: Samples, record: Callable[[Samples, Tensor], Any], *kept: Tensor
    ) -> Tensor:
        """The rows, which are filled by now or later. PyTorch watches ``kept`` for changes."""
        ctx.samples, ctx.record = samples, record
        ctx.save_for_backward(*kept)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """No gradient for the table, or PyTorch's where that is wanted."""
        kept: Sequence[Tensor] = ctx.saved_tensors  # raises if one was changed, or freed by another backward pass
        record = ctx.record if _is_accumulated(ctx.next_functions[0][0]) else Samples.gradient_of
        return (record(ctx.samples, grad), None, None, None, *[None] * len(kept))


def _is_accumulated(leaf: Any) -> bool:
    """Whether a backward pass accumulates what comes to a leaf, and not ``torch.autograd.grad`` asks for it."""
    try:
        return bool(torch._C._will_engine_execute_node(leaf))
    except RuntimeError:  # PyTorch does not say it of leaves in torch.autograd.grad
        return False
