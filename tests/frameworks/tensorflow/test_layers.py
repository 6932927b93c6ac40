"""Layers of Keras around look-ups: strings, recurrent layers, attention, half types, random numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import same_bits

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

IDS = np.random.default_rng(0).integers(0, 10, (4, 5))
WORDS = np.array([["a"], ["z"], ["g"]])


def of_ids(make: Callable[[Any], Any], **options: Any) -> Any:
    """A model of five ids."""
    import keras

    given = keras.Input((5,), dtype="int64")
    return keras.Model(given, make(keras.layers.Embedding(10, 8, **options)(given)))


def of_words(numbers: Callable[[Any], Any]) -> Any:
    """A model of one word."""
    import keras

    given = keras.Input((1,), dtype="string")
    rows = keras.layers.Embedding(20, 8)(numbers(given))
    return keras.Model(given, keras.layers.Dense(2)(keras.layers.Flatten()(rows)))


def made(name: str) -> tuple[Any, Any]:
    """A model, and what it is called with."""
    import keras
    from keras import layers

    match name:
        case "vocabulary":
            return of_words(layers.StringLookup(vocabulary=list("abcdefg"))), WORDS
        case "hashing":
            return of_words(layers.Hashing(20)), WORDS
        case "masked LSTM":
            return of_ids(layers.LSTM(8), mask_zero=True), IDS
        case "masked mean":
            return of_ids(layers.GlobalAveragePooling1D(), mask_zero=True), IDS
        case "attention":
            return of_ids(lambda rows: layers.MultiHeadAttention(2, 8)(rows, rows)), IDS
        case "bfloat16":
            return of_ids(layers.Flatten(), dtype=keras.DTypePolicy("bfloat16")), IDS
        case _:
            return of_ids(layers.Flatten(), dtype=keras.DTypePolicy("mixed_float16")), IDS


@pytest.mark.parametrize(
    "name", ["vocabulary", "hashing", "masked LSTM", "masked mean", "attention", "bfloat16", "mixed_float16"]
)
def test_a_layer(name: str, device: daedal.Device) -> None:
    import tensorflow as tf

    model, given = made(name)
    tensor = tf.constant(given)
    spec = tf.TensorSpec([None, given.shape[1]], tensor.dtype)
    exe = daedal.tensorflow.compile(model, [spec], device=device)
    expected = tf.function(lambda each: model(each, training=False), input_signature=[spec])
    gradients = []
    for call in (exe, expected):
        with tf.GradientTape() as tape:
            result = call(tensor)
        found = tape.gradient(result, model.trainable_variables)
        gradients.append([result, *map(tf.convert_to_tensor, found)])
    assert all(same_bits(a, b) for a, b in zip(*gradients, strict=True))
    assert exe.explain().startswith("device: 1 of 1 operation, in 1 launch")
    assert exe.stats.launches == 1 and exe.stats.rows == given.size


def test_random_numbers_are_drawn_once(device: daedal.Device) -> None:
    import tensorflow as tf

    v = tf.Variable(tf.random.normal([10, 8]))

    def model(i: Any) -> Any:
        noise = tf.random.uniform([10], 0, 9, tf.int64)
        return noise, tf.gather(v, tf.gather(noise, i)), noise

    exe = daedal.tensorflow.compile(model, [tf.TensorSpec([None], tf.int64)], device=device)
    first, rows, again = exe([3, 7])
    assert same_bits(first, again)
    assert same_bits(rows, tf.gather(v, tf.gather(first, [3, 7])))
