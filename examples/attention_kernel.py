"""An attention kernel: for each query the weighted sum of the values that its list of keys names, in one launch.

The weight of a key is the exponential of its product with the query less the greatest such product, so that none is too
large for f32: one loop finds that, the next one adds up. Run it as ``python examples/attention_kernel.py``.
"""

import numpy as np

import daedal
from daedal import f32, i64

Q, D, N, E = daedal.dims("Q D N E")


@daedal.kernel
def attention(
    out: f32[Q, D],
    queries: f32[Q, D],
    keys: f32[N, D],
    values: f32[N, D],
    ends: i64[Q + 1],
    named: i64[E],
):
    """Sparse attention, whose lists of keys lie behind each other in ``named``."""
    for q in range(Q):
        most = -1e30
        for e in range(ends[q], ends[q + 1]):
            most = max(most, daedal.dot(keys[named[e], :], queries[q, :]))
        row = daedal.zeros(D)
        total = 0.0
        for e in range(ends[q], ends[q + 1]):
            weight = daedal.exp(daedal.dot(keys[named[e], :], queries[q, :]) - most)
            total += weight
            for d in range(D):
                row[d] += weight * values[named[e], d]
        inverse = 1.0 / total
        for d in range(D):
            out[q, d] = row[d] * inverse


def main() -> None:
    """Run it, and compare it with NumPy in double precision."""
    random = np.random.default_rng(1)
    queries, keys, values = (random.standard_normal((rows, 32)).astype(np.float32) * 4 for rows in (20, 300, 300))
    lengths = random.integers(1, 12, 20)
    ends = np.concatenate([[0], lengths.cumsum()])
    named = random.integers(0, 300, ends[-1])
    out = np.zeros((20, 32), np.float32)
    with daedal.Device.open("emulator") as device:
        arguments = out, queries, keys, values, ends, named
        run = daedal.compile(attention, arguments, device=device)
        run(*arguments)
        for q in range(20):
            chosen = named[ends[q] : ends[q + 1]]
            products = keys[chosen].astype(float) @ queries[q]
            weights = np.exp(products - products.max())
            np.testing.assert_allclose(out[q], weights @ values[chosen] / weights.sum(), rtol=1e-3, atol=1e-3)
        assert run.stats.launches == 1
        print(run.explain().splitlines()[0])


if __name__ == "__main__":
    main()
