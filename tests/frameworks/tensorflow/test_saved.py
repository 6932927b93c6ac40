"""SavedModels that TensorFlow has just written, loaded without it, against TensorFlow's own signatures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from tests.frameworks.tensorflow.comparing import same_bits, table, tf

pytestmark = pytest.mark.frameworks


def looks_of_all_kinds() -> Any:
    """A module with look-ups of every kind in one signature, ``looks``."""

    class Looks(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags, self.rows = tf.Variable(table(300, 16)), tf.Variable(table(70, 5, seed=1))

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([], tf.int64),
                tf.TensorSpec([None], tf.float32),
                tf.TensorSpec([None, 3], tf.int32),
            ]
        )
        def looks(self, ids: Any, bag: Any, count: Any, weights: Any, items: Any) -> dict[str, Any]:
            shape = tf.stack([count, tf.constant(600, tf.int64)])
            places = tf.stack([bag, tf.zeros_like(bag)], 1)
            sparse, weighted = tf.SparseTensor(places, ids, shape), tf.SparseTensor(places, weights, shape)
            found = {
                combiner: tf.nn.safe_embedding_lookup_sparse(self.bags, sparse, combiner=combiner)
                for combiner in ("sum", "mean", "sqrtn")
            }
            return found | {
                "weighted": tf.nn.safe_embedding_lookup_sparse(self.bags, sparse, weighted, combiner="sum"),
                "items": tf.gather(self.rows, items),
                "first": tf.nn.embedding_lookup(self.rows, items[:, 0] % 70),
            }

    return Looks()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "looks"
    model = looks_of_all_kinds()
    tf.saved_model.save(model, str(folder), signatures=model.looks)
    return Path(folder)


def batch(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Bags of 0 to 60 rows, a third of them empty."""
    lengths = rng.integers(0, 61, count) * (rng.random(count) > 0.3)
    bag = np.repeat(np.arange(count), lengths)
    return {
        "ids": rng.integers(0, 300, len(bag)),
        "bag": bag,
        "count": np.int64(count),
        "weights": np.abs(rng.standard_normal(len(bag))).astype(np.float32) + np.float32(0.1),
        "items": rng.integers(0, 70, (count, 3)).astype(np.int32),
    }


def test_batches_of_different_sizes(device: daedal.Device, saved: Path) -> None:
    exe = daedal.tensorflow.load(saved, device=device)
    reference = tf.saved_model.load(str(saved)).signatures["serving_default"]
    rng = np.random.default_rng(2)
    for count in (1, 4, 17, 3, 40, 17):
        given = batch(rng, count)
        expected = reference(**{name: tf.constant(value) for name, value in given.items()})
        results = exe(**given)
        assert sorted(results) == sorted(expected)
        for name, result in results.items():
            assert same_bits(result, expected[name]), (count, name)


def test_tables_in_slices(device: daedal.Device, tmp_path: Path) -> None:
    """A checkpoint in several files, of which TensorFlow cuts a table."""
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=4096)
    options = tf.saved_model.SaveOptions(experimental_sharding_callback=policy)
    model = looks_of_all_kinds()
    tf.saved_model.save(model, str(tmp_path), signatures=model.looks, options=options)
    assert len(list((tmp_path / "variables").glob("*.data-*"))) > 4
    given = batch(np.random.default_rng(6), 30)
    expected = model.looks(**{name: tf.constant(value) for name, value in given.items()})
    for name, result in daedal.tensorflow.load(tmp_path, device=device)(given).items():
        assert same_bits(result, expected[name]), name


def test_keras_models(device: daedal.Device, tmp_path: Path) -> None:
    """Exported by Keras, and saved by TensorFlow: look-ups in one launch, and layers of NumPy's."""
    keras = tf.keras
    keras.utils.set_random_seed(1)
    user, history = keras.Input((), dtype="int32", name="user"), keras.Input((5,), dtype="int64", name="history")
    numbers = keras.Input((4,), name="numbers")
    rows = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(60, 16)(history))
    joined = keras.layers.Concatenate()([keras.layers.Embedding(40, 16)(user), rows, numbers])
    score = keras.layers.Dense(1, activation="sigmoid")(keras.layers.Dense(32, activation="relu")(joined))
    model = keras.Model([user, history, numbers], score)
    rng = np.random.default_rng(4)
    given = {
        "user": rng.integers(0, 40, 7).astype(np.int32),
        "history": rng.integers(0, 60, (7, 5)),
        "numbers": rng.standard_normal((7, 4)).astype(np.float32),
    }
    model.export(str(tmp_path / "exported"), verbose=False)
    tf.saved_model.save(model, str(tmp_path / "saved"))
    for folder in ("exported", "saved"):
        exe = daedal.tensorflow.load(tmp_path / folder, device=device)
        names = tf.saved_model.load(str(tmp_path / folder)).signatures["serving_default"].structured_input_signature[1]
        by_shape = {(*value.shape[1:], value.dtype.name): value for value in given.values()}
        inputs = {name: by_shape[(*spec.shape[1:], spec.dtype.name)] for name, spec in names.items()}
        np.testing.assert_allclose(exe(inputs)["output_0"], model(list(given.values())), rtol=1e-5)
        assert exe.stats.launches == 1
