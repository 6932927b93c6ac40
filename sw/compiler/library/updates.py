"""Steps of optimizers, which change a table in place.

``rate`` is the negative learning rate. Steps that are given samples by row (``segments``) change the rows in ``rows``,
of which none may be there twice; samples are as in ``gradients``: sample p takes row ``src[p]`` of ``grad``, times
``scale[p]`` where there is one. In the order of ``indices.sort(stable=True)`` they are as PyTorch and FBGEMM take them.

=============================== ================================================================================
``sgd``, ``sgd_scaled``         ``torch.optim.SGD`` with a sparse gradient: each sample by itself, nothing coalesced
``exact_sgd``, ``…_scaled``     FBGEMM's EXACT_SGD: samples are added up first
``rowwise_adagrad``, …          FBGEMM's EXACT_ROWWISE_ADAGRAD: the same, then a number of state for each row
=============================== ================================================================================
"""

from daedal.compiler.frontends.python.function import kernel
from daedal.compiler.frontends.python.names import dims, dot, f32, fma, i64, sqrt, zeros

B, D, N, P, U = dims("B D N P U")


@kernel
def sgd(w: f32[N, D], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P], rate: f32) -> None:
    """``w = fma(g, rate, w)`` for each sample."""
    for u in range(U):
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                w[rows[u], d] = fma(grad[src[p], d], rate, w[rows[u], d])


@kernel
def sgd_scaled(
    w: f32[N, D], grad: f32[B, D], scale: f32[P], rows: i64[U], seg: i64[U + 1], src: i64[P], rate: f32
) -> None:
    """The same of samples times a number each, which is rounded: weights, or reciprocals of bags' sizes."""
    for u in range(U):
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                w[rows[u], d] = fma(grad[src[p], d] * scale[p], rate, w[rows[u], d])


@kernel
def exact_sgd(w: f32[N, D], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P], rate: f32) -> None:
    """``w = fma(sum, rate, w)``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        for d in range(D):
            w[rows[u], d] = fma(total[d], rate, w[rows[u], d])


@kernel
def exact_sgd_scaled(
    w: f32[N, D], grad: f32[B, D], scale: f32[P], rows: i64[U], seg: i64[U + 1], src: i64[P], rate: f32
) -> None:
    """The same of samples times a number each, added up by ``fma``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            w[rows[u], d] = fma(total[d], rate, w[rows[u], d])


@kernel
def rowwise_adagrad(
    w: f32[N, D], h: f32[N], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P], eps: f32, rate: f32,
) -> None:  # fmt: skip
    """``h += dot(sum, sum) / D``, and ``w += sum * (rate / (sqrt(h) + eps))``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        h[rows[u]] += dot(total, total, partial_sums=8) / D
        step = rate / (sqrt(h[rows[u]]) + eps)
        for d in range(D):
            w[rows[u], d] += total[d] * step


@kernel
def rowwise_adagrad_scaled(
    w: f32[N, D], h: f32[N], grad: f32[B, D], scale: f32[P], rows: i64[U], seg: i64[U + 1], src: i64[P],
    eps: f32, rate: f32,
) -> None:  # fmt: skip
    """The same of samples times a number each, added up by ``fma``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        h[rows[u]] += dot(total, total, partial_sums=8) / D
        step = rate / (sqrt(h[rows[u]]) + eps)
        for d in range(D):
            w[rows[u], d] += total[d] * step
