"""An attention kernel: for each query the weighted sum of the values that its list of keys names, in one launch.

The weight of a key is the exponential of its product with the query. The kernel gives the sum of the weights too, by
which the host divides: the machine divides rows by counts only. Run it as ``python examples/attention_kernel.py``.
"""

import numpy as np

import daedal
from daedal import f32, i64

Q, D, N, E = daedal.dims("Q D N E")


@daedal.kernel
def attention(
    out: f32[Q, D],
    totals: f32[Q],
    queries: f32[Q, D],
    keys: f32[N, D],
    values: f32[N, D],
    ends: i64[Q + 1],
    named: i64[E],
):
    """Sparse attention, whose lists of keys lie behind each other in ``named``."""
    for q in range(Q):
        row = daedal.zeros(D)
        total = 0.0
        for e in range(ends[q], ends[q + 1]):
            weight = daedal.exp(daedal.dot(keys[named[e], :], queries[q, :]))
            total += weight
            for d in range(D):
                row[d] += weight * values[named[e], d]
        for d in range(D):
            out[q, d] = row[d]
        totals[q] = total


def main() -> None:
    """Run it, and compare it with NumPy in double precision."""
    random = np.random.default_rng(1)
    queries, keys, values = (random.standard_normal((rows, 32)).astype(np.float32) / 4 for rows in (20, 300, 300))
    lengths = random.integers(1, 12, 20)
    ends = np.concatenate([[0], lengths.cumsum()])
    named = random.integers(0, 300, ends[-1])
    out, totals = np.zeros((20, 32), np.float32), np.zeros(20, np.float32)
    with daedal.Device.open("emulator") as device:
        arguments = out, totals, queries, keys, values, ends, named
        run = daedal.compile(attention, arguments, device=device)
        run(*arguments)
        out /= totals[:, None]
        for q in range(20):
            chosen = named[ends[q] : ends[q + 1]]
            weights = np.exp(keys[chosen].astype(float) @ queries[q])
            np.testing.assert_allclose(out[q], weights @ values[chosen] / weights.sum(), rtol=1e-4, atol=1e-5)
        assert run.stats.launches == 1
        print(run.explain().splitlines()[0])


if __name__ == "__main__":
    main()
