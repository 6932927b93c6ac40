"""Maxima, minima and products of looked-up rows, by segment and along an axis; means along an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import ROWS, same_bits, table, with_negative_zeros

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

BAGS = 300
KINDS = ("max", "min", "prod")


def near_one(width: int) -> Any:
    """Rows whose products stay normal numbers."""
    rng = np.random.default_rng(width)
    return (rng.choice([-1, 1], (ROWS, width)) * np.exp2(rng.uniform(-0.05, 0.05, (ROWS, width)))).astype(np.float32)


def lengths(longest: int) -> Any:
    """Bags of all lengths, the first and some others empty."""
    rng = np.random.default_rng(longest)
    found = rng.integers(0, longest + 1, BAGS)
    found[:3], found[-1] = (0, longest, 1), 2
    return found


def by_segment(name: str, values: Any) -> Callable[[Any, Any], Any]:
    """A function of ids and segments."""
    import tensorflow as tf

    reduce = getattr(tf.math, name)
    if name.startswith("unsorted"):
        return lambda i, s: reduce(tf.gather(values, i), (7 * s) % BAGS - 2, BAGS)
    return lambda i, s: reduce(tf.gather(values, i), s)


@pytest.mark.parametrize("width", [2, 7, 17, 64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["segment", "unsorted_segment"])
def test_segments(order: str, kind: str, width: int, device: daedal.Device) -> None:
    import tensorflow as tf

    name = f"{order}_{kind}"
    v = tf.Variable(near_one(width) if kind == "prod" else table(ROWS, width))
    each = lengths(15 if name == "segment_prod" and width >= 8 else 100)
    rng = np.random.default_rng(width)
    i, s = tf.constant(rng.integers(0, ROWS, each.sum())), tf.constant(np.repeat(np.arange(BAGS), each))
    specs = [tf.TensorSpec([None], tf.int64)] * 2
    function = by_segment(name, v)
    exe = daedal.tensorflow.compile(function, specs, device=device)
    assert same_bits(exe(i, s), tf.function(function, input_signature=specs)(i, s))
    assert exe.explain().startswith("device: 1 of 1 operation, in 1 launch"), exe.explain()
    assert same_bits(exe(i[:0], s[:0]), tf.function(function, input_signature=specs)(i[:0], s[:0]))


@pytest.mark.parametrize("order", ["segment", "unsorted_segment"])
def test_several_are_one_launch(order: str, device: daedal.Device) -> None:
    """Also with segments without rows, of which each kind makes something else."""
    import tensorflow as tf

    v, each = tf.Variable(near_one(16)), lengths(9)
    rng = np.random.default_rng(1)
    i, s = tf.constant(rng.integers(0, ROWS, each.sum())), tf.constant(np.repeat(np.arange(BAGS), each))

    def function(i: Any, s: Any) -> Any:
        return [by_segment(f"{order}_{kind}", v)(i, s) for kind in ("sum", *KINDS)]

    specs = [tf.TensorSpec([None], tf.int64)] * 2
    exe = daedal.tensorflow.compile(function, specs, device=device)
    assert same_bits(exe(i, s), tf.function(function, input_signature=specs)(i, s))
    assert exe.explain().startswith("device: 4 of 4 operations, in 1 launch")


ROWS_THAT_STAY: dict[str, tuple[list[list[float]], str]] = {
    "segment_max": ([[np.nan, 1], [2, np.nan]], "rows must be free of NaN for a maximum"),
    "segment_min": ([[0.0, -0.0], [-0.0, 0.0]], r"rows must not have \+0.0 and -0.0 for a minimum"),
    "unsorted_segment_max": ([[-np.inf, 1], [-np.inf, 2]], "rows must be finite for a maximum"),
    "unsorted_segment_min": ([[0.0, -0.0], [-0.0, 0.0]], r"rows must not have \+0.0 and -0.0 for a minimum"),
}


@pytest.mark.parametrize("name", ROWS_THAT_STAY)
def test_rows_of_which_tensorflow_makes_something_else(name: str, device: daedal.Device) -> None:
    import tensorflow as tf

    rows, reason = ROWS_THAT_STAY[name]
    v = tf.Variable(np.tile(np.array(rows, np.float32), (1, 5)))
    specs = [tf.TensorSpec([None], tf.int64)] * 2
    function = by_segment(name, v)
    exe = daedal.tensorflow.compile(function, specs, device=device)
    i, s = tf.constant([0, 1, 0], tf.int64), tf.constant([0, 1, 1], tf.int64)
    assert same_bits(exe(i, s), tf.function(function, input_signature=specs)(i, s))
    assert reason.replace("\\", "") in exe.explain()


def test_a_long_product_is_tensorflows(device: daedal.Device) -> None:
    import tensorflow as tf

    v = tf.Variable(near_one(8))
    specs = [tf.TensorSpec([None], tf.int64)] * 2
    exe = daedal.tensorflow.compile(by_segment("segment_prod", v), specs, device=device)
    i = tf.range(16, dtype=tf.int64)
    assert same_bits(exe(i, i * 0), tf.math.segment_prod(v[:16], i * 0))
    assert "segments must have at most 15 rows for a product" in exe.explain()
    assert same_bits(exe(i[1:], i[1:] * 0), tf.math.segment_prod(v[1:16], i[1:] * 0))
    assert exe.explain().startswith("device: 1 of 1 operation, in 1 launch")


@pytest.mark.parametrize("width", [2, 7, 16, 20])
@pytest.mark.parametrize("kind", ["sum", "mean", *KINDS])
def test_along_an_axis(kind: str, width: int, device: daedal.Device) -> None:
    """Of any number of rows; where the order is another one TensorFlow does it."""
    import tensorflow as tf

    values = near_one(width) if kind == "prod" else table(ROWS, width)
    v = tf.Variable(with_negative_zeros(values) if kind in ("sum", "mean") else values)

    def function(i: Any) -> Any:
        return getattr(tf, f"reduce_{kind}")(tf.gather(v, i), axis=-2)

    specs = [tf.TensorSpec([None, None], tf.int64)]
    exe, expected = (
        daedal.tensorflow.compile(function, specs, device=device),
        tf.function(function, input_signature=specs),
    )
    rng = np.random.default_rng(width)
    for samples, length in ((9, 1), (5, 2), (7, 15), (6, 16), (1, 513), (30, 33), (0, 3), (4, 0)):
        i = tf.constant(rng.integers(0, ROWS, (samples, length)))
        found, wanted = exe(i), expected(i)
        assert same_bits(found, wanted) or (np.isnan(found).all() and np.isnan(wanted).all()), length
        is_other = length > 15 and width in {"sum": (20,), "mean": (20,), "prod": (16, 20)}.get(kind, ())
        is_nothing = not length and kind not in ("sum", "prod")
        assert exe.explain().startswith("device: 0 of 1" if is_other or is_nothing else "device: 1 of 1"), length
