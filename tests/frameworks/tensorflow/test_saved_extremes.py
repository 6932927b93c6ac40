"""Reductions of rows that only a call tells NumPy to take, of a saved model: TensorFlow's bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import same_bits

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

LENGTHS = (1, 2, 15, 16, 17, 40)
NUMBERS = {
    "NaN": [np.nan, -1.5, 2.0, np.nan, 3.0],
    "zeros": [0.0, -0.0],
    "infinities": [np.inf],
    "negative infinities": [-np.inf],
    "all": [np.nan, 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf],
}


def loaded(function: Callable[[Any, Any, Any], Any], rows: Any, folder: Path, device: daedal.Device) -> Any:
    """The saved function of a table, ids and segments, and TensorFlow's."""
    import tensorflow as tf

    model = tf.Module()
    model.v = tf.Variable(rows)
    specs = [tf.TensorSpec([None], tf.int64, name=name) for name in "is"]
    model.call = tf.function(lambda i, s: {"out": function(model.v, i, s)}, input_signature=specs)
    tf.saved_model.save(model, str(folder), signatures=model.call)
    return daedal.tensorflow.load(folder, device=device), model.call


def alike(found: Any, wanted: Any) -> bool:
    """The same bits, but for those of a NaN."""
    plain = [np.where(np.isnan(each), np.float32(np.nan), np.asarray(each)) for each in (found, wanted)]
    return same_bits(*plain)


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("width", [3, 8, 9])
@pytest.mark.parametrize("order", ["segment", "unsorted_segment", "reduce"])
def test_extremes(order: str, width: int, numbers: str, tmp_path: Path, device: daedal.Device) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(width)
    rows = rng.choice(NUMBERS[numbers], (60, width)).astype(np.float32)

    def function(v: Any, i: Any, s: Any) -> Any:
        if order == "reduce":
            return tf.stack([tf.reduce_max(tf.gather(v, i[None]), -2), tf.reduce_min(tf.gather(v, i[None]), -2)])
        more = [len(LENGTHS) + 1] if order.startswith("unsorted") else []
        return tf.stack([getattr(tf.math, f"{order}_{kind}")(tf.gather(v, i), s, *more) for kind in ("max", "min")])

    exe, wanted = loaded(function, rows, tmp_path, device)
    segments = np.repeat(range(len(LENGTHS)), LENGTHS)
    ids = rng.integers(0, 60, len(segments))
    lengths = [len(ids)] if order != "reduce" else LENGTHS
    for length in lengths:
        i, s = ids[:length], segments[:length]
        assert alike(exe(i=i, s=s)["out"], wanted(tf.constant(i), tf.constant(s))["out"]), length


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_prod", "segment_prod"])
def test_long_bags(name: str, tmp_path: Path, device: daedal.Device) -> None:
    import tensorflow as tf

    rows = np.random.default_rng(0).standard_normal((60, 9)).astype(np.float32)

    def function(v: Any, i: Any, s: Any) -> Any:
        if name == "segment_prod":
            return tf.math.segment_prod(tf.gather(v, i), s)
        return getattr(tf, name)(tf.gather(v, i[None]), -2)

    exe, wanted = loaded(function, rows, tmp_path, device)
    i, s = np.arange(40) % 23, np.zeros(40, np.int64)
    assert alike(exe(i=i, s=s)["out"], wanted(tf.constant(i), tf.constant(s))["out"])
    assert "device: 0 of 1" in exe.explain()
