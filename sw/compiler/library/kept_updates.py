"""Steps of optimizers as in ``updates``, which keep what they change: a launch that fails can be undone.

``kept`` takes each row as it was, ``kept_h`` the number of state that belongs to it, and ``done`` a ``tag`` that no
launch before had. Stores come to memory in the order of the loops. So a row of the table has not changed unless its
``done`` is the tag, and if it is, all of what was kept of the row is there.
"""

from daedal.compiler.frontends.python.function import kernel
from daedal.compiler.frontends.python.names import dims, dot, f32, fma, i64, sqrt, zeros

B, D, N, P, U = dims("B D N P U")


@kernel
def sgd(
    w: f32[N, D], kept: f32[U, D], done: f32[U], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P],
    tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``w = fma(g, rate, w)`` for each sample."""
    for u in range(U):
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        done[u] = tag
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                w[rows[u], d] = fma(grad[src[p], d], rate, w[rows[u], d])


@kernel
def sgd_scaled(
    w: f32[N, D], kept: f32[U, D], done: f32[U], grad: f32[B, D], scale: f32[P], rows: i64[U], seg: i64[U + 1],
    src: i64[P], tag: f32, rate: f32,
) -> None:  # fmt: skip
    """The same of samples times a number each, which is rounded."""
    for u in range(U):
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        done[u] = tag
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                w[rows[u], d] = fma(grad[src[p], d] * scale[p], rate, w[rows[u], d])


@kernel
def exact_sgd(
    w: f32[N, D], kept: f32[U, D], done: f32[U], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P],
    tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``w = fma(sum, rate, w)``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        done[u] = tag
        for d in range(D):
            w[rows[u], d] = fma(total[d], rate, w[rows[u], d])


@kernel
def exact_sgd_scaled(
    w: f32[N, D], kept: f32[U, D], done: f32[U], grad: f32[B, D], scale: f32[P], rows: i64[U], seg: i64[U + 1],
    src: i64[P], tag: f32, rate: f32,
) -> None:  # fmt: skip
    """The same of samples times a number each, added up by ``fma``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        done[u] = tag
        for d in range(D):
            w[rows[u], d] = fma(total[d], rate, w[rows[u], d])


@kernel
def rowwise_adagrad(
    w: f32[N, D], h: f32[N], kept: f32[U, D], kept_h: f32[U], done: f32[U], grad: f32[B, D], rows: i64[U],
    seg: i64[U + 1], src: i64[P], tag: f32, eps: f32, rate: f32,
) -> None:  # fmt: skip
    """``h += dot(sum, sum) / D``, and ``w += sum * (rate / (sqrt(h) + eps))``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] += grad[src[p], d]
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        kept_h[u] = h[rows[u]]
        done[u] = tag
        h[rows[u]] += dot(total, total, partial_sums=8) / D
        step = rate / (sqrt(h[rows[u]]) + eps)
        for d in range(D):
            w[rows[u], d] += total[d] * step


@kernel
def rowwise_adagrad_scaled(
    w: f32[N, D], h: f32[N], kept: f32[U, D], kept_h: f32[U], done: f32[U], grad: f32[B, D], scale: f32[P],
    rows: i64[U], seg: i64[U + 1], src: i64[P], tag: f32, eps: f32, rate: f32,
) -> None:  # fmt: skip
    """The same of samples times a number each, added up by ``fma``."""
    for u in range(U):
        total = zeros(D)
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        kept_h[u] = h[rows[u]]
        done[u] = tag
        h[rows[u]] += dot(total, total, partial_sums=8) / D
        step = rate / (sqrt(h[rows[u]]) + eps)
        for d in range(D):
            w[rows[u], d] += total[d] * step


@kernel
def keep(kept: f32[U, D], done: f32[U], w: f32[N, D], rows: i64[U], tag: f32) -> None:
    """Nothing but keeping rows, in a launch before that of a step of ``updates``: for rows longer than registers."""
    for u in range(U):
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        done[u] = tag


@kernel
def keep_with_state(
    kept: f32[U, D], kept_h: f32[U], done: f32[U], w: f32[N, D], h: f32[N], rows: i64[U], tag: f32
) -> None:
    """The same with their numbers of state."""
    for u in range(U):
        for d in range(D):
            kept[u, d] = w[rows[u], d]
        kept_h[u] = h[rows[u]]
        done[u] = tag
