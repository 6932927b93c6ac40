"""Each of TensorFlow's operators: its bits, its launches, and the rows that the device fetches for it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import ROWS, WIDTH, same_bits, sparse, table

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

LENGTHS = [0, 1, 5, 9, 3, 0, 2]
COUNT = sum(LENGTHS)


class Case(NamedTuple):
    """A function of TensorFlow's, what it takes, and what the device has to do for it."""

    function: Callable[..., Any]
    signature: list[Any]
    inputs: tuple[Any, ...]
    rows: int = COUNT
    launches: int = 1


def cases() -> dict[str, Case]:
    """Made where TensorFlow is."""
    import tensorflow as tf

    rng = np.random.default_rng(3)
    v = tf.Variable(table(), name="table")
    deep = tf.Variable(table(ROWS, 6).reshape(ROWS, 2, 3))
    frozen = tf.constant(table(seed=2))
    ints, rows = tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, WIDTH], tf.float32)
    matrix_of_ids = tf.TensorSpec([None, None], tf.int64)
    ids_spec = tf.SparseTensorSpec([None, None], tf.int64)
    weights_spec = tf.SparseTensorSpec([None, None], tf.float32)
    ragged_spec = tf.RaggedTensorSpec([None, None], tf.int64)
    ids, weights = sparse(LENGTHS, rng)
    ragged = tf.RaggedTensor.from_row_lengths(ids.values, LENGTHS)
    i = tf.constant(rng.integers(0, ROWS, COUNT))
    ordered = tf.constant(np.sort(rng.integers(0, 7, COUNT)))
    mixed = tf.constant(rng.integers(0, 7, COUNT))
    narrow = tf.cast(i, tf.int32)
    places = np.stack([ordered.numpy(), i.numpy()], 1)
    matrix = tf.SparseTensor(places, weights.values, [7, ROWS])
    turned = tf.SparseTensor(places[:, ::-1], weights.values, [ROWS, 7])
    filled = COUNT + LENGTHS.count(0)
    nn, math = tf.nn, tf.math
    return {
        "gather": Case(lambda i: tf.gather(v, i), [ints], (i,)),
        "gather of int32": Case(lambda i: tf.gather(v, i), [tf.TensorSpec([None], tf.int32)], (narrow,)),
        "gather of a constant": Case(lambda i: tf.gather(frozen, i), [ints], (i,)),
        "gather of an input": Case(lambda x, i: tf.gather(x, i), [rows, ints], (table(), i)),
        "gather of rows of rows": Case(lambda i: tf.gather(deep, i), [ints], (i,)),
        "embedding_lookup": Case(
            lambda i: nn.embedding_lookup(v, i), [tf.TensorSpec([None, None], tf.int64)], (tf.reshape(i, (4, 5)),)
        ),
        "ragged look-up": Case(lambda r: nn.embedding_lookup(v, r), [ragged_spec], (ragged,)),
        "ragged sum": Case(lambda r: tf.reduce_sum(nn.embedding_lookup(v, r), axis=1), [ragged_spec], (ragged,)),
        "ragged mean": Case(lambda r: tf.reduce_mean(nn.embedding_lookup(v, r), axis=1), [ragged_spec], (ragged,)),
        "embedding_lookup_sparse": Case(
            lambda s: nn.embedding_lookup_sparse(v, s, None, combiner="sum"), [ids_spec], (ids,)
        ),
        "embedding_lookup_sparse of ragged": Case(
            lambda r: nn.embedding_lookup_sparse(v, r, None, combiner="sum"), [ragged_spec], (ragged,)
        ),
        "mean": Case(lambda s: nn.embedding_lookup_sparse(v, s, None, combiner="mean"), [ids_spec], (ids,)),
        "sqrtn": Case(lambda s: nn.embedding_lookup_sparse(v, s, None, combiner="sqrtn"), [ids_spec], (ids,)),
        "weighted": Case(
            lambda s, w: nn.embedding_lookup_sparse(v, s, w, combiner="sum"), [ids_spec, weights_spec], (ids, weights)
        ),
        "weighted mean": Case(
            lambda s, w: nn.embedding_lookup_sparse(v, s, w, combiner="mean"), [ids_spec, weights_spec], (ids, weights)
        ),
        "weighted sqrtn": Case(
            lambda s, w: nn.embedding_lookup_sparse(v, s, w, combiner="sqrtn"), [ids_spec, weights_spec], (ids, weights)
        ),
        "safe": Case(lambda s: nn.safe_embedding_lookup_sparse(v, s, combiner="sum"), [ids_spec], (ids,), filled),
        "safe mean": Case(lambda s: nn.safe_embedding_lookup_sparse(v, s), [ids_spec], (ids,), filled),
        "safe and weighted": Case(
            lambda s, w: nn.safe_embedding_lookup_sparse(v, s, w, combiner="sum", default_id=3),
            [ids_spec, weights_spec],
            (ids, weights),
            filled,
        ),
        "sparse.segment_sum": Case(lambda i, s: tf.sparse.segment_sum(v, i, s), [ints, ints], (i, ordered)),
        "sparse.segment_sum into more": Case(
            lambda i, s: tf.sparse.segment_sum(v, i, s, num_segments=9), [ints, ints], (i, ordered)
        ),
        "segment_sum": Case(lambda i, s: math.segment_sum(tf.gather(v, i), s), [ints, ints], (i, ordered)),
        "segment_sum of rows": Case(lambda x, s: math.segment_sum(x * 2, s), [rows, ints], (tf.gather(v, i), ordered)),
        "segment_mean": Case(lambda i, s: math.segment_mean(tf.gather(v, i), s), [ints, ints], (i, ordered)),
        "unsorted_segment_sum": Case(
            lambda i, s: math.unsorted_segment_sum(tf.gather(v, i), s, 8), [ints, ints], (i, mixed)
        ),
        "unsorted_segment_mean": Case(
            lambda i, s: math.unsorted_segment_mean(tf.gather(v, i), s, 8), [ints, ints], (i, mixed)
        ),
        "unsorted without some": Case(
            lambda i, s: math.unsorted_segment_sum(tf.gather(v, i), s - 2, 8),
            [ints, ints],
            (i, mixed),
            int((mixed.numpy() >= 2).sum()),
        ),
        "unsorted_segment_sqrt_n": Case(
            lambda i, s: math.unsorted_segment_sqrt_n(tf.gather(v, i), s, 8), [ints, ints], (i, mixed)
        ),
        **{
            f"{order}_{kind}": Case(
                lambda i, s, name=f"{order}_{kind}", more=more: getattr(math, name)(tf.gather(v, i), s, *more),
                [ints, ints],
                (i, ordered),
            )
            for order, more in (("segment", ()), ("unsorted_segment", (8,)))
            for kind in ("max", "min", "prod")
        },
        **{
            f"reduce_{kind}": Case(
                lambda i, name=f"reduce_{kind}": getattr(tf, name)(tf.gather(v, i), axis=1),
                [matrix_of_ids],
                (tf.reshape(i, (4, 5)),),
            )
            for kind in ("mean", "max", "min", "prod")
        },
        "dense sum": Case(lambda i: tf.reduce_sum(tf.gather(v, i), axis=1), [matrix_of_ids], (tf.reshape(i, (4, 5)),)),
        "dense sum of one": Case(
            lambda i: tf.reduce_sum(tf.gather(v, i), axis=-2, keepdims=True), [matrix_of_ids], (tf.reshape(i, (20, 1)),)
        ),
        "dense sum of many": Case(lambda i: tf.reduce_sum(tf.gather(v, i), axis=[1]), [matrix_of_ids], (i[None],)),
        "sparse times dense": Case(lambda m: tf.sparse.sparse_dense_matmul(m, v), [weights_spec], (matrix,)),
        "transposed": Case(lambda m: tf.sparse.sparse_dense_matmul(m, v, adjoint_a=True), [weights_spec], (turned,)),
        "two at once": Case(lambda i: (tf.gather(v, i), tf.gather(frozen, i + 1)), [ints], (i % 40,), 2 * COUNT),
        "one behind the other": Case(
            lambda i: tf.gather(v, tf.cast(tf.abs(tf.gather(frozen, i)[:, 0]), tf.int64) % ROWS),
            [ints],
            (i,),
            2 * COUNT,
            2,
        ),
        "in a function": Case(lambda i: tf.function(lambda k: tf.gather(v, k) * 2)(i) + 1, [ints], (i,)),
    }


NAMES = [
    "gather", "gather of int32", "gather of a constant", "gather of an input", "gather of rows of rows",
    "embedding_lookup", "ragged look-up", "ragged sum", "ragged mean", "embedding_lookup_sparse",
    "embedding_lookup_sparse of ragged", "mean", "sqrtn", "weighted", "weighted mean", "weighted sqrtn", "safe",
    "safe mean", "safe and weighted",
    "sparse.segment_sum", "sparse.segment_sum into more", "segment_sum", "segment_sum of rows", "segment_mean",
    "unsorted_segment_sum", "unsorted_segment_mean", "unsorted without some",
    "unsorted_segment_sqrt_n", "segment_max", "segment_min", "segment_prod", "unsorted_segment_max",
    "unsorted_segment_min", "unsorted_segment_prod", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
    "dense sum", "dense sum of one", "dense sum of many", "sparse times dense", "transposed",
    "two at once", "one behind the other", "in a function",
]  # fmt: skip


@pytest.fixture(scope="module")
def made() -> dict[str, Case]:
    return cases()


def test_all_are_named(made: dict[str, Case]) -> None:
    assert list(made) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_operator(name: str, made: dict[str, Case], device: daedal.Device) -> None:
    import tensorflow as tf

    case = made[name]
    exe = daedal.tensorflow.compile(case.function, case.signature, device=device)
    found = exe(*case.inputs)
    assert same_bits(found, tf.function(case.function, input_signature=case.signature)(*case.inputs))
    assert (exe.stats.launches, exe.stats.rows, exe.stats.lookups) == (case.launches, case.rows, case.rows)
    assert exe.fewest_launches == case.launches
    assert not any("TensorFlow:" in line for line in exe.explain().splitlines())


@pytest.mark.parametrize("name", ["gather", "ragged sum", "embedding_lookup_sparse", "weighted", "sparse times dense"])
def test_nothing_at_all(name: str, made: dict[str, Case], device: daedal.Device) -> None:
    import tensorflow as tf

    case = made[name]
    inputs = {
        "gather": (tf.zeros([0], tf.int64),),
        "ragged sum": (tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int64), [0, 0]),),
        "embedding_lookup_sparse": sparse([0, 0], np.random.default_rng(0))[:1],
        "weighted": sparse([0], np.random.default_rng(0)),
        "sparse times dense": (tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), [3, ROWS]),),
    }[name]
    exe = daedal.tensorflow.compile(case.function, case.signature, device=device)
    assert same_bits(exe(*inputs), tf.function(case.function, input_signature=case.signature)(*inputs))
