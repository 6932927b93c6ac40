"""The samples of operations on tables whose gradients are recorded, and why others are PyTorch's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from daedal.compiler.frontends.torch.ops.embedding_bag import EmbeddingBag
from daedal.compiler.frontends.torch.ops.lookups import Embedding
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.training.recording import Array, Samples
from daedal.runtime.request import Request


def why_no_samples(operation: Operation) -> str | None:
    """Why the gradient of an operation is PyTorch's whatever it is given; None if the device may have it."""
    if not isinstance(operation, EmbeddingBag | Embedding):
        return "gradients are the device's of nn.Embedding and nn.EmbeddingBag, and PyTorch's of other operations"
    if operation.is_scaled:
        return "scale_grad_by_freq scales its gradient, which is PyTorch's"
    if isinstance(operation, EmbeddingBag) and operation.mode == "max":
        return "the gradient of a maximum is PyTorch's"
    return None


def samples_of(operation: Operation, request: Request, sources: Sequence[Any]) -> Samples:
    """The samples of an operation that was asked for with these values of its sources."""
    rows, bags, scale = request.buffers["indices"].reshape(-1).copy(), request.rows, None
    assert isinstance(operation, EmbeddingBag | Embedding)
    if isinstance(operation, EmbeddingBag):
        lengths, rows = _lengths(request, rows)
        places = np.repeat(np.arange(bags), lengths)
        if operation.mode == "mean":
            scale = _reciprocals(places, rows, bags, operation.padding)
        elif "weights" in request.buffers:
            scale = request.buffers["weights"].reshape(-1)[: len(rows)].astype(np.float32)
    else:
        places = np.arange(len(rows))
    padding = operation.padding
    if padding is not None and padding < 0:
        padding += len(request.table)

    is_sorted = isinstance(operation, EmbeddingBag) and not operation.is_sparse

    def gradient(grad: Tensor) -> Tensor:
        table, *others = sources
        leaf = torch.empty(table.shape, dtype=table.dtype, requires_grad=True)
        with torch.enable_grad():
            output = operation.in_torch(leaf, *others)
            (found,) = torch.autograd.grad(output, leaf, grad.view(output.shape), create_graph=grad.requires_grad)
        return found

    return Samples(rows, places, scale, padding, operation.is_sparse, is_sorted, gradient)


def _lengths(request: Request, rows: Array) -> tuple[Array, Array]:
    """How many samples each bag has, and those that bags have."""
    offsets = request.buffers.get("offsets")
    if offsets is None:
        return np.full(request.rows, request.values["length"]), rows
    return np.diff(offsets.astype(np.int64)), rows[: int(offsets[-1]) if request.rows else 0]


def _reciprocals(places: Array, rows: Array, bags: int, padding: int | None) -> Array:
    """One by the number of samples of each one's bag that count."""
    counted = places if padding is None else places[rows != padding]
    counts = np.bincount(counted, minlength=bags)[places]
    return (1.0 / np.maximum(counts, 1)).astype(np.float32)
