"""Steps of SGD that change all rows of a table, with the gradient of an embedding: dense, as PyTorch has it.

Segment n has the samples of row n, and may be empty. A row of ``grad`` is multiplied by its sample's ``scale``; both
are added up by ``fma``: with a scale of 1.0 it is a sum. Rows and momentum are kept as in ``kept_updates``. A momentum
of -0.0 with a ``take`` of 1.0 becomes the gradient, as that of PyTorch's first step.

=============================== ================================================================================
``all_rows``, ``…_decay``       ``w = fma(g, rate, w)``, where weight decay makes ``g = fma(w, decay, g)``
``momentum``, ``…_decay``       ``m = fma(g, take, m * keep)``, ``w = fma(m, rate, w)``
``nesterov``, ``…_decay``       ``m = m * keep + g``, ``w = fma(fma(m, keep, g), rate, w)``
=============================== ================================================================================
"""

from daedal.compiler.frontends.python.function import kernel
from daedal.compiler.frontends.python.names import dims, f32, fma, i64, zeros

B, D, N, P = dims("B D N P")


@kernel
def all_rows(
    w: f32[N, D], kept: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``w = fma(g, rate, w)``."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        done[n] = tag
        for d in range(D):
            w[n, d] = fma(total[d], rate, w[n, d])


@kernel
def all_rows_decay(
    w: f32[N, D], kept: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], decay: f32, tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``w = fma(g, rate, w)``, with weight decay."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        done[n] = tag
        for d in range(D):
            total[d] = fma(w[n, d], decay, total[d])
        for d in range(D):
            w[n, d] = fma(total[d], rate, w[n, d])


@kernel
def momentum(
    w: f32[N, D], m: f32[N, D], kept: f32[N, D], kept_m: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], keep: f32, take: f32, tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``m = fma(g, take, m * keep)``, ``w = fma(m, rate, w)``."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        for d in range(D):
            kept_m[n, d] = m[n, d]
        done[n] = tag
        for d in range(D):
            m[n, d] = fma(total[d], take, m[n, d] * keep)
        for d in range(D):
            w[n, d] = fma(m[n, d], rate, w[n, d])


@kernel
def momentum_decay(
    w: f32[N, D], m: f32[N, D], kept: f32[N, D], kept_m: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], decay: f32, keep: f32, take: f32, tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``m = fma(g, take, m * keep)``, ``w = fma(m, rate, w)``, with weight decay."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        for d in range(D):
            kept_m[n, d] = m[n, d]
        done[n] = tag
        for d in range(D):
            total[d] = fma(w[n, d], decay, total[d])
        for d in range(D):
            m[n, d] = fma(total[d], take, m[n, d] * keep)
        for d in range(D):
            w[n, d] = fma(m[n, d], rate, w[n, d])


@kernel
def nesterov(
    w: f32[N, D], m: f32[N, D], kept: f32[N, D], kept_m: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], keep: f32, tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``m = m * keep + g``, ``w = fma(fma(m, keep, g), rate, w)``."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        for d in range(D):
            kept_m[n, d] = m[n, d]
        done[n] = tag
        for d in range(D):
            m[n, d] = m[n, d] * keep + total[d]
        for d in range(D):
            w[n, d] = fma(fma(m[n, d], keep, total[d]), rate, w[n, d])


@kernel
def nesterov_decay(
    w: f32[N, D], m: f32[N, D], kept: f32[N, D], kept_m: f32[N, D], done: f32[N],
    grad: f32[B, D], scale: f32[P], seg: i64[N + 1], src: i64[P], decay: f32, keep: f32, tag: f32, rate: f32,
) -> None:  # fmt: skip
    """``m = m * keep + g``, ``w = fma(fma(m, keep, g), rate, w)``, with weight decay."""
    for n in range(N):
        total = zeros(D)
        for p in range(seg[n], seg[n + 1]):
            for d in range(D):
                total[d] = fma(grad[src[p], d], scale[p], total[d])
        for d in range(D):
            kept[n, d] = w[n, d]
        for d in range(D):
            kept_m[n, d] = m[n, d]
        done[n] = tag
        for d in range(D):
            total[d] = fma(w[n, d], decay, total[d])
        for d in range(D):
            m[n, d] = m[n, d] * keep + total[d]
        for d in range(D):
            w[n, d] = fma(fma(m[n, d], keep, total[d]), rate, w[n, d])
