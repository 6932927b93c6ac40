"""Bags of 0 to 513 rows, in each order in which TensorFlow adds: its bits, on the device alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import ROWS, same_bits, table, with_negative_zeros

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

BAGS = 1000
OPERATORS = ("sum", "mean", "sqrtn", "segment_sum", "weighted", "segment_mean", "unsorted", "product")


def lengths(rng: np.random.Generator) -> Any:
    """Of all magnitudes, the last one not empty."""
    found = np.minimum(np.exp2(rng.random(BAGS) * 9.2).astype(np.int64) - 1, 513)
    found[:4], found[-1] = (513, 0, 512, 0), 3
    return found


def operator(name: str, v: Any) -> tuple[Callable[..., Any], int]:
    """A function of ids, bags and weights, and the number of those that it takes."""
    import tensorflow as tf

    if name in ("sum", "mean", "sqrtn"):
        reduce = {"sum": tf.sparse.segment_sum, "mean": tf.sparse.segment_mean, "sqrtn": tf.sparse.segment_sqrt_n}[name]
        return lambda i, s: reduce(v, i, s, num_segments=BAGS + 1), 2
    if name == "segment_sum":
        return lambda i, s: tf.math.segment_sum(tf.gather(v, i), s), 2
    if name == "segment_mean":
        return lambda i, s: tf.math.segment_mean(tf.gather(v, i), s), 2
    if name == "unsorted":
        return lambda i, s: tf.math.unsorted_segment_sum(tf.gather(v, i), tf.reverse(s, [0]), BAGS), 2
    if name == "weighted":
        return lambda i, s, w: tf.math.segment_sum(tf.gather(v, i) * tf.reshape(w, [-1, 1]), s), 3

    def product(i: Any, s: Any, w: Any) -> Any:
        return tf.sparse.sparse_dense_matmul(tf.SparseTensor(tf.stack([s, i], 1), w, [BAGS, ROWS]), v)

    return product, 3


@pytest.mark.parametrize("negative_zeros", [False, True], ids=["normal", "with -0.0"])
@pytest.mark.parametrize("width", [17, 64])
@pytest.mark.parametrize("name", OPERATORS)
def test_bags(name: str, width: int, negative_zeros: bool, device: daedal.Device) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(width)
    values = table(ROWS, width, seed=width)
    v = tf.Variable(with_negative_zeros(values) if negative_zeros else values)
    each = lengths(rng)
    i, s = rng.integers(0, ROWS, each.sum()), np.repeat(np.arange(BAGS), each)
    function, count = operator(name, v)
    signature = [tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.float32)]
    inputs = [tf.constant(given) for given in (i, s, rng.standard_normal(len(i)).astype(np.float32))][:count]
    exe = daedal.tensorflow.compile(function, signature[:count], device=device)
    assert same_bits(exe(*inputs), tf.function(function, input_signature=signature[:count])(*inputs))
    assert exe.stats.launches == 1
    assert exe.explain().startswith("device: 1 of 1 operation, in 1 launch")
