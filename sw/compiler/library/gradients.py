"""Gradients of a table: the rows of an output's gradient, added up by the row of the table that each sample is of.

A sample is an index of a bag, an edge or an entry of a sparse matrix. ``grad`` has the gradient's rows and ``src`` says
which of them a sample takes: that of its bag, or its own. Samples come by row (``segments``): row u of the result is of
those from ``seg[u]`` to ``seg[u + 1]``. The order in which they stand is the order of the additions. Results have a row
for each segment, and are as wide as ``grad``. Which rule is whose:

=============== ================================================================================================
``coalesced``   ``coalesce()``, in the order of ``indices.sort()``; samples as ``Segments.begun`` has them
``summed``      EmbeddingBag (sum), in that order; in their own Embedding, ``index_select``, ``gather``,
                ``embedding.sum(1)`` and ``to_dense()``
``fused``       EmbeddingBag with weights, or with the reciprocals of the bags' sizes for a mean, in the order of
                ``indices.sort()``; in their own the product of a COO matrix
``multiplied``  messages times weights, added up by ``index_add``, in their own order
``greatest``    EmbeddingBag (max), in the order of the bags
``spread``      values of a sparse gradient of EmbeddingBag with weights, or for a mean
``shared``      ``segment_reduce`` (mean), a row for each sample
=============== ================================================================================================
"""

from daedal.compiler.frontends.python.function import kernel
from daedal.compiler.frontends.python.names import dims, f32, fma, i64, zeros

B, D, P, U = dims("B D P U")


@kernel
def coalesced(out: f32[U, D], grad: f32[B, D], first: i64[U], seg: i64[U + 1], src: i64[P]) -> None:
    """Sums of samples that begin with the first of them, ``first``; ``seg`` and ``src`` have the others."""
    for u in range(U):
        total = zeros(D)
        for d in range(D):
            total[d] = grad[first[u], d]
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        for d in range(D):
            out[u, d] = total[d]


@kernel
def summed(out: f32[U, D], grad: f32[B, D], seg: i64[U + 1], src: i64[P]) -> None:
    """Sums of samples that begin with 0.0."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        for d in range(D):
            out[u, d] = total[d]


@kernel
def fused(out: f32[U, D], grad: f32[B, D], scale: f32[P], seg: i64[U + 1], src: i64[P]) -> None:
    """Sums of samples times a number each, both rounded at once."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            out[u, d] = total[d]


@kernel
def multiplied(out: f32[U, D], grad: f32[B, D], scale: f32[P], seg: i64[U + 1], src: i64[P]) -> None:
    """Sums of samples times a number each, products rounded first."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d] * scale[p]
        for d in range(D):
            out[u, d] = total[d]


@kernel
def greatest(out: f32[U, D], grad: f32[B, D], best: f32[B, D], number: f32[U], seg: i64[U + 1], src: i64[P]) -> None:
    """Sums of those columns of samples whose maximum is a row: ``best`` has the number of the row that won, and
    ``number`` that of each segment's row. A row is once among the samples of a bag, however often it is in the bag.
    """
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d] if best[src[p], d] == number[u] else 0.0
        for d in range(D):
            out[u, d] = total[d]


@kernel
def spread(out: f32[P, D], grad: f32[B, D], scale: f32[P], src: i64[P]) -> None:
    """The samples themselves, times a number each."""
    for p in range(P):
        for d in range(D):
            out[p, d] = grad[src[p], d] * scale[p]


@kernel
def shared(out: f32[P, D], grad: f32[U, D], seg: i64[U + 1]) -> None:
    """Rows of ``grad``, divided by the number of their segment's samples, once for each sample."""
    for u in range(U):
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                out[p, d] = grad[u, d] / max(seg[u + 1] - seg[u], 1)
