"""Gradients through an executable, and variables that change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import ROWS, WIDTH, same_bits, sparse, table
from tests.frameworks.tensorflow.models import dlrm, two_towers, wide_and_deep

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam"])
@pytest.mark.parametrize("make", [dlrm, two_towers, wide_and_deep], ids=lambda make: make.__name__)
def test_training_is_that_of_the_model(make: Callable[[], Any], optimizer: str, device: daedal.Device) -> None:
    import keras
    import tensorflow as tf

    from tests.frameworks.tensorflow.models import signature

    def train(on_device: bool) -> tuple[list[Any], list[Any]]:
        keras.utils.set_random_seed(5)
        model, data = make()
        specs = [signature(data(2, 0))]
        call = model
        if on_device:
            call = daedal.tensorflow.compile(model, specs, device=device, training=True)
        steps, losses = getattr(keras.optimizers, optimizer)(0.05), []
        for step in range(3):
            given = {key: tf.constant(each) for key, each in data(8, step).items()}
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((call(given) - 1.0) ** 2)
            steps.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            losses.append(loss)
        return losses, [each.value for each in model.trainable_variables]

    found, expected = train(True), train(False)
    for a, b in zip(found[0] + found[1], expected[0] + expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_are_sparse_and_equal(device: daedal.Device) -> None:
    import tensorflow as tf

    v = tf.Variable(table())
    ids, weights = sparse([3, 0, 5, 1], np.random.default_rng(0))
    specs = [tf.SparseTensorSpec([None, None], tf.int64), tf.SparseTensorSpec([None, None], tf.float32)]

    def look_up(ids: Any, weights: Any) -> Any:
        return tf.nn.embedding_lookup_sparse(v, ids, weights, combiner="sum")

    exe = daedal.tensorflow.compile(look_up, specs, device=device)
    gradients = []
    for call in (exe, look_up):
        with tf.GradientTape() as tape:
            tape.watch(weights.values)
            loss = tf.reduce_sum(call(ids, weights) ** 2)
        gradients.append(tape.gradient(loss, [v, weights.values]))
    (rows, factors), (wanted, others) = gradients
    assert isinstance(rows, tf.IndexedSlices)
    assert same_bits([rows.indices, rows.values, factors], [wanted.indices, wanted.values, others])


def test_in_a_function_of_the_user(device: daedal.Device) -> None:
    import tensorflow as tf

    v = tf.Variable(table())
    exe = daedal.tensorflow.compile(lambda i: tf.gather(v, i), [tf.TensorSpec([None], tf.int64)], device=device)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])  # type: ignore[untyped-decorator]
    def step(i: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(exe(i) ** 2)
        return loss, tape.gradient(loss, v)

    i = tf.constant([3, 1, 3], tf.int64)
    for _ in range(2):
        loss, gradient = step(i)
        assert same_bits(loss, tf.reduce_sum(tf.gather(v, i) ** 2))
        assert exe.stats.launches == 1
        v.scatter_sub(gradient)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 50 is out of range"):
        step(tf.constant([0, ROWS], tf.int64))


def test_changed_variables_are_noticed(device: daedal.Device) -> None:
    import tensorflow as tf

    v = tf.Variable(table())
    exe = daedal.tensorflow.compile(lambda i: tf.gather(v, i), [tf.TensorSpec([None], tf.int64)], device=device)
    i = tf.range(5, dtype=tf.int64)
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: v.assign(table(seed=4)),
        lambda: v.assign_add(tf.ones([ROWS, WIDTH])),
        lambda: v.scatter_update(tf.IndexedSlices(tf.ones([1, WIDTH]), tf.constant([2]))),
        lambda: v.scatter_add(tf.IndexedSlices(tf.ones([2, WIDTH]), tf.constant([2, 3]))),
        lambda: v[4].assign(tf.zeros([WIDTH])),
        lambda: v.assign(table()),
    ]
    for number, change in enumerate(changes):
        change()
        assert same_bits(exe(i), tf.gather(v, i)), number
        before = device.table_uploads
        exe(i)
        assert device.table_uploads == before, number
