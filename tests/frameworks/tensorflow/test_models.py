"""Recommenders of Keras: the bits of TensorFlow, one launch, the same program for all batches."""

from typing import Any

import pytest

import daedal
from tests.frameworks.tensorflow.comparing import same_bits
from tests.frameworks.tensorflow.models import MODELS, fill, signature

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

BATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 127, 128, 0)
"""Samples."""


@pytest.mark.parametrize("negative_zeros", [False, True], ids=["normal", "with -0.0"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model(name: str, negative_zeros: bool, device: daedal.Device) -> None:
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    model, data = MODELS[name]()
    fill(model, negative_zeros=negative_zeros)
    specs = signature(data(2, 0))
    exe = daedal.tensorflow.compile(model, [specs], device=device)
    expected = tf.function(lambda given: model(given, training=False), input_signature=[specs])
    for samples in BATCHES:
        if not samples and name in ("wide_and_deep", "short"):
            continue  # TensorFlow has no row for an empty bag at the end
        given = data(samples, samples)
        assert same_bits(exe(given), expected({key: tf.constant(each) for key, each in given.items()})), samples
        assert exe.stats.launches <= 1
    assert not any(line.startswith("TensorFlow: ") for line in exe.explain().splitlines())


@pytest.mark.parametrize("name", ["dlrm", "two_towers"])
def test_a_model_says_what_it_takes(name: str, device: daedal.Device) -> None:
    import tensorflow as tf

    model, data = MODELS[name]()
    exe = daedal.tensorflow.compile(model, device=device)
    summary = exe.explain().splitlines()[0]
    given = {key: tf.constant(each) for key, each in data(5, 1).items()}
    assert same_bits(exe(given), tf.function(model)(given))
    assert exe.explain().splitlines()[0] == summary
    count = {"dlrm": 26, "two_towers": 3}[name]
    assert summary == f"device: {count} of {count} operations, in 1 launch"


def test_a_sequential_model_says_what_it_takes(device: daedal.Device) -> None:
    import keras
    import tensorflow as tf
    from keras import layers

    model = keras.Sequential([keras.Input((3,), dtype="int32"), layers.Embedding(50, 8), layers.Flatten()])
    exe = daedal.tensorflow.compile(model, device=device)
    ids = tf.constant([[1, 2, 3], [4, 0, 49]])
    assert same_bits(exe(ids), model(ids)) and exe.stats.rows == 6


def test_tables_have_the_names_of_the_model(device: daedal.Device) -> None:
    model, _ = MODELS["two_towers"]()
    exe = daedal.tensorflow.compile(model, device=device)
    assert sorted(exe.tables()) == ["items/embeddings", "users/embeddings"]


def test_keras_files_and_saved_models(tmp_path: Any, device: daedal.Device) -> None:
    import keras
    import tensorflow as tf

    model, data = MODELS["two_towers"]()
    given = {key: tf.constant(each) for key, each in data(9, 2).items()}
    model.save(tmp_path / "model.keras")
    again = daedal.tensorflow.compile(keras.models.load_model(tmp_path / "model.keras"), device=device)
    assert same_bits(again(given), model(given))
    model.export(tmp_path / "saved", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "saved")
    exe = daedal.tensorflow.compile(loaded.serve, [signature(data(1, 0))], device=device)
    assert same_bits(exe(given), model(given))
    assert exe.stats.launches == 1
    assert exe.explain().startswith("device: 3 of 3 operations, in 1 launch")
