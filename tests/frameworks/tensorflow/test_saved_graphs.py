"""Graphs around look-ups, with sparse and ragged inputs: saved by TensorFlow, computed by NumPy and the device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import ROWS, same_bits, table

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

LENGTHS = [2, 0, 3, 1]

Graph = Callable[..., Any]

SPARSE: dict[str, Graph] = {
    "sum": lambda tf, v, s: tf.nn.embedding_lookup_sparse(v, s, None, combiner="sum"),
    "safe mean": lambda tf, v, s: tf.nn.safe_embedding_lookup_sparse(v, s),
    "dense": lambda tf, v, s: tf.reduce_sum(tf.gather(v, tf.sparse.to_dense(s)), axis=1),
    "in order": lambda tf, v, s: tf.nn.embedding_lookup_sparse(v, tf.sparse.reorder(s), None, combiner="mean"),
    "sparse": lambda tf, v, s: [tf.nn.safe_embedding_lookup_sparse(v, s), s],
}

RAGGED: dict[str, Graph] = {
    "look-up": lambda tf, v, r: tf.nn.embedding_lookup_sparse(v, r, None, combiner="sum"),
    **{
        kind: lambda tf, v, r, name=f"reduce_{kind}": getattr(tf, name)(tf.nn.embedding_lookup(v, r), axis=1)
        for kind in ("sum", "mean", "max", "min", "prod")
    },
    "dense": lambda tf, v, r: tf.gather(v, r).to_tensor(),
    "dense of a shape": lambda tf, v, r: tf.gather(v, r.to_tensor(default_value=7, shape=[None, 2])),
    "masked": lambda tf, v, r: tf.reduce_sum(
        tf.gather(v, r.to_tensor()) * tf.cast(tf.sequence_mask(r.row_lengths()), tf.float32)[:, :, None], axis=1
    ),
    "ragged": lambda tf, v, r: [tf.gather(v, r)],
}

DENSE: dict[str, Graph] = {
    "batch_dims": lambda tf, v, i: tf.gather(tf.gather(v, i), i % 2, batch_dims=1),
    "gather_nd": lambda tf, v, i: tf.gather_nd(v, i[:, :1]) + tf.gather(v, i[:, 1]),
    "of dense ids": lambda tf, v, i: tf.nn.safe_embedding_lookup_sparse(v, tf.sparse.from_dense(i), combiner="sum"),
    "one hot": lambda tf, v, i: tf.gather(v, tf.argmax(tf.one_hot(i[:, 0], ROWS), 1)),
    "one hot in front": lambda tf, v, i: [tf.gather(v, i), tf.one_hot(i, 60, axis=1)],
    "halves": lambda tf, v, i: tf.concat(tf.split(tf.gather(v, i), 2, axis=2)[::-1], 2),
    "the best": lambda tf, v, i: tf.math.top_k(tf.round(tf.gather(v, i) / 256), k=5),
    "running": lambda tf, v, i: tf.cumsum(tf.gather(v, i), 1, exclusive=True, reverse=True),
    "padded": lambda tf, v, i: tf.reverse(tf.pad(tf.gather(v, i), [[0, 0], [1, 0], [0, 0]]), [1]),
    "counted": lambda tf, v, i: [tf.gather(v, i), tf.math.bincount(i, minlength=60, maxlength=60, axis=-1)],
    "several segments": lambda tf, v, i: [
        getattr(tf.math, f"unsorted_segment_{kind}")(tf.gather(v, i[:, 0]), i[:, 1], ROWS)
        for kind in ("sum", "mean", "max", "min", "prod")
    ],
}

CLOSE: dict[str, Graph] = {
    "rows of a norm": lambda tf, v, i: tf.nn.embedding_lookup_sparse(
        v, tf.sparse.from_dense(i), None, combiner="sqrtn", max_norm=1.0
    ),
    "scores": lambda tf, v, i: tf.einsum("bld,bmd->blm", tf.gather(v, i), tf.gather(v, i)),
    "activations": lambda tf, v, i: [
        getattr(tf.nn, name)(tf.gather(v, i) / 256)
        for name in ("gelu", "swish", "leaky_relu", "elu", "selu", "softplus", "relu6", "log_softmax")
    ],
    "powers": lambda tf, v, i: tf.cos(tf.gather(v, i)) ** 2.0 + tf.sin(tf.gather(v, i)),
    "norms": lambda tf, v, i: tf.math.l2_normalize(tf.gather(v, i), axis=2),
}
"""Of which last bits may be others."""

CASES = {
    **{f"sparse: {name}": each for name, each in SPARSE.items()},
    **{f"ragged: {name}": each for name, each in RAGGED.items()},
    **{f"dense: {name}": each for name, each in DENSE.items()},
    **{f"close: {name}": each for name, each in CLOSE.items()},
}


def input_of(kind: str) -> tuple[Any, Any]:
    """What a graph takes, and an input."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    ids = rng.integers(0, ROWS, sum(LENGTHS))
    match kind:
        case "sparse":
            places = np.stack([np.repeat(range(4), LENGTHS), [0, 1, 0, 1, 2, 0]], 1)
            return tf.SparseTensorSpec([None, None], tf.int64), tf.SparseTensor(places, ids, [4, 3])
        case "ragged":
            return tf.RaggedTensorSpec([None, None], tf.int64), tf.RaggedTensor.from_row_lengths(ids, LENGTHS)
        case _:
            return tf.TensorSpec([None, 2], tf.int64), tf.constant(rng.integers(1, ROWS, (5, 2)))


@pytest.mark.parametrize("name", CASES)
def test_a_graph(name: str, tmp_path: Path, device: daedal.Device) -> None:
    import tensorflow as tf

    kind = name.split(":")[0]
    spec, given = input_of(kind)
    model = tf.Module()
    model.v = tf.Variable(table())

    def outputs(x: Any) -> dict[str, Any]:
        found = CASES[name](tf, model.v, x)
        found = list(found) if isinstance(found, list) or hasattr(found, "_fields") else [found]
        return {f"out{number}": each for number, each in enumerate(found)}

    model.call = tf.function(outputs, input_signature=[spec])
    tf.saved_model.save(model, str(tmp_path), signatures=model.call)
    exe = daedal.tensorflow.load(tmp_path, device=device)
    parts = {
        "sparse": lambda: [given.indices, given.values, given.dense_shape],
        "ragged": lambda: [given.values, given.row_splits],
    }.get(kind, lambda: [given])()
    found = exe({f"x_{number}" if number else "x": np.asarray(each) for number, each in enumerate(parts)})
    wanted = {
        f"{key}_{number}" if number else key: np.asarray(each)
        for key, value in model.call(given).items()
        for number, each in enumerate(tf.nest.flatten(value, expand_composites=True))
    }
    assert sorted(found) == sorted(wanted)
    for key, each in wanted.items():
        if kind == "close":
            np.testing.assert_allclose(found[key], each, rtol=1e-5, atol=1e-5, err_msg=key)
        else:
            assert same_bits(found[key], each), key
    assert exe.stats.launches <= 2
    assert ("last bits may be others" in exe.explain()) or kind != "close"
