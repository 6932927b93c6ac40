"""Recommenders as Keras has them: wide & deep, two towers, DLRM."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.frameworks.tensorflow.comparing import table, with_negative_zeros

Data = Callable[[int, int], dict[str, Any]]
"""A batch of so many samples, by a seed."""

FEATURES = 26
LONGEST = 40
"""Rows of the longest bag of wide & deep."""


def fill(model: Any, *, negative_zeros: bool = False) -> None:
    """Numbers of many magnitudes for the tables, some of them -0.0."""
    for number, weight in enumerate(model.weights):
        if weight.shape[0] >= 50:
            values = table(*weight.shape, seed=number) / 2**8
            weight.assign(with_negative_zeros(values) if negative_zeros else values)


def dlrm() -> tuple[Any, Data]:
    """A table for each of 26 features, and products of all pairs of rows."""
    import keras
    from keras import layers, ops

    number = keras.Input((13,), name="numbers")
    features = [keras.Input((), dtype="int64", name=f"c{n}") for n in range(FEATURES)]
    rows = [layers.Embedding(100 + n, 16, name=f"table{n}")(each) for n, each in enumerate(features)]
    bottom = layers.Dense(16, activation="relu")(layers.Dense(32, activation="relu")(number))
    stacked = ops.stack([bottom, *rows], axis=1)
    pairs = layers.Flatten()(ops.matmul(stacked, ops.transpose(stacked, (0, 2, 1))))
    score = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([pairs, bottom]))
    model = keras.Model({"numbers": number, **{f"c{n}": each for n, each in enumerate(features)}}, score)

    def data(samples: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        given: dict[str, Any] = {f"c{n}": rng.integers(0, 100 + n, samples) for n in range(FEATURES)}
        return given | {"numbers": rng.standard_normal((samples, 13)).astype(np.float32)}

    return model, data


def two_towers() -> tuple[Any, Data]:
    """A user and the items of a history, looked up in tables that two inputs share, and their scalar product."""
    import keras
    from keras import layers, ops

    user, item = keras.Input((), dtype="int32", name="user"), keras.Input((), dtype="int32", name="item")
    history = keras.Input((6,), dtype="int32", name="history")
    users, items = layers.Embedding(200, 32, name="users"), layers.Embedding(300, 32, name="items")
    seen = ops.mean(items(history), axis=1)
    left = layers.Dense(16)(layers.Concatenate()([users(user), seen]))
    score = ops.sum(left * layers.Dense(16)(items(item)), axis=-1)
    model = keras.Model({"user": user, "item": item, "history": history}, score)

    def data(samples: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        return {
            "user": rng.integers(-5, 200, samples).astype(np.int32),  # Keras counts negative ones from the end
            "item": rng.integers(0, 300, samples).astype(np.int32),
            "history": rng.integers(0, 300, (samples, 6)).astype(np.int32),
        }

    return model, data


def wide_and_deep(longest: int = LONGEST) -> tuple[Any, Data]:
    """Bags of up to ``longest`` ids, pooled in each way that TensorFlow has, one with weights."""
    import keras
    import tensorflow as tf

    class Pooled(keras.layers.Layer):  # type: ignore[misc]
        """A table, and how bags of it are pooled."""

        def __init__(self, rows: int, width: int, combiner: str, **options: Any) -> None:
            super().__init__(**options)
            self.rows, self.width, self.combiner = rows, width, combiner

        def build(self, shape: Any) -> None:
            self.table = self.add_weight(shape=(self.rows, self.width), initializer="random_normal", name="table")

        def call(self, ids: Any, weights: Any = None) -> Any:
            ids = ids.with_values(ids.values % self.rows)
            return tf.nn.embedding_lookup_sparse(self.table.value, ids, weights, combiner=self.combiner)

    class WideAndDeep(keras.Model):  # type: ignore[misc]
        """Its inputs are a dictionary."""

        def __init__(self) -> None:
            super().__init__()
            self.one = keras.layers.Embedding(1000, 16)
            self.pooled = [Pooled(500 + n, 16, each) for n, each in enumerate(("sum", "mean", "sqrtn"))]
            self.wide, self.last = Pooled(2000, 8, "sum"), Pooled(700, 16, "mean")
            self.dense, self.score = keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)

        def call(self, given: Any) -> Any:
            ids, weights = (
                tf.SparseTensor(given["places"], each, given["shape"]) for each in (given["ids"], given["weights"])
            )
            deep = [self.one(given["one"]), *(layer(ids) for layer in self.pooled), self.last(ids, weights)]
            hidden = self.dense(tf.concat([*deep, given["numbers"]], 1))
            return self.score(hidden) + tf.reduce_sum(self.wide(ids), 1, keepdims=True)

    def data(samples: int, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, longest + 1, samples)
        lengths[-1:] = longest  # the last bag is not empty: TensorFlow has as many rows as that says
        return _bags(lengths, rng)

    model = WideAndDeep()
    model(data(2, 0))
    return model, data


def _bags(lengths: NDArray[Any], rng: np.random.Generator) -> dict[str, Any]:
    samples, total = len(lengths), int(lengths.sum())
    places = np.stack([np.repeat(np.arange(samples), lengths), np.zeros(total, np.int64)], 1)
    return {
        "one": rng.integers(0, 1000, samples),
        "places": places,
        "ids": rng.integers(0, 5000, total),
        "weights": rng.standard_normal(total).astype(np.float32),
        "shape": np.array([samples, 1], np.int64),
        "numbers": rng.standard_normal((samples, 8)).astype(np.float32),
    }


MODELS: dict[str, Callable[[], tuple[Any, Data]]] = {
    "dlrm": dlrm,
    "two_towers": two_towers,
    "wide_and_deep": wide_and_deep,
    "short": lambda: wide_and_deep(longest=9),
}
"""The last has bags that are added up one row after the other."""


def signature(data: dict[str, Any]) -> dict[str, Any]:
    """What a batch is of, of any number of samples."""
    import tensorflow as tf

    sizes = {"places": [None, 2], "shape": [2]}
    return {name: tf.TensorSpec(sizes.get(name, [None, *each.shape[1:]]), each.dtype) for name, each in data.items()}
