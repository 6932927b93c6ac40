"""A recommender of Keras: trained in TensorFlow, saved, and served with its look-ups on the device.

It needs ``pip install 'daedal[tensorflow]'``. Run it with ``python examples/keras_recommender.py``.
"""

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

import daedal

USERS, ITEMS, HISTORY, WIDTH = 1000, 2000, 8, 32


def model() -> Any:
    """A user and what it saw last, against an item; a bias for each user and item."""
    user, item = keras.Input((), dtype="int32", name="user"), keras.Input((), dtype="int32", name="item")
    history = keras.Input((HISTORY,), dtype="int32", name="history")
    items = layers.Embedding(ITEMS, WIDTH, name="items")
    seen = ops.mean(items(history), axis=1)
    hidden = layers.Concatenate()([layers.Embedding(USERS, WIDTH, name="users")(user), seen])
    taste = layers.Dense(WIDTH)(layers.Dense(64, activation="relu")(hidden))
    biases = [layers.Embedding(USERS, 1, name="user_bias")(user), layers.Embedding(ITEMS, 1, name="item_bias")(item)]
    score = ops.sum(taste * items(item), axis=-1, keepdims=True) + biases[0] + biases[1]
    return keras.Model({"user": user, "item": item, "history": history}, layers.Activation("sigmoid")(score))


def batch(samples: int, rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Users like items of about their number."""
    user, item = rng.integers(0, USERS, samples), rng.integers(0, ITEMS, samples)
    given = {"user": user, "item": item, "history": rng.integers(0, ITEMS, (samples, HISTORY))}
    return {key: each.astype(np.int32) for key, each in given.items()}, (np.abs(2 * user - item) < ITEMS / 3)[:, None]


def main() -> None:
    """Train, save, load, serve, compare."""
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    recommender = model()
    recommender.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy", jit_compile=False)
    losses = [float(recommender.train_on_batch(*batch(256, rng))) for _ in range(30)]
    print(f"loss {losses[0]:.3f}, after {len(losses)} batches {losses[-1]:.3f}")

    with tempfile.TemporaryDirectory() as folder, daedal.Device.open("emulator", config="ddr3") as device:
        recommender.save(path := Path(folder) / "recommender.keras")
        served = keras.models.load_model(path)
        exe = daedal.tensorflow.compile(served, device=device)
        specs = {key: tf.TensorSpec([None, *each.shape[1:]], each.dtype) for key, each in batch(1, rng)[0].items()}
        expected = tf.function(lambda given: served(given), input_signature=[specs])
        for samples in (1, 7, 64):
            given, _ = batch(samples, rng)
            scores = exe(given)
            assert np.array_equal(scores, expected({key: tf.constant(each) for key, each in given.items()}))
            print(f"{samples} samples: {exe.stats.rows} rows, the bits of TensorFlow")
        print(exe.explain().splitlines()[0])


if __name__ == "__main__":
    main()
