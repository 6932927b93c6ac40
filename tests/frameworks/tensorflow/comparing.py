"""Numbers for tests with TensorFlow, and whether results have the same bits."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS, WIDTH = 50, 8


class _TensorFlow:
    """TensorFlow, imported when a test runs: these are collected where it is not."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("tensorflow"), name)


tf: Any = _TensorFlow()


def table(rows: int = ROWS, width: int = WIDTH, *, seed: int = 0) -> NDArray[np.float32]:
    """Normal numbers of many magnitudes."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, width)) * np.exp2(rng.integers(-12, 12, (rows, width)))).astype(np.float32)


def with_negative_zeros(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same, a fifth of them -0.0, and each fifth row nothing else."""
    changed = values.copy()
    changed[np.random.default_rng(1).random(values.shape) < 0.2] = -0.0
    changed[::5] = -0.0
    return changed


def flat(nested: Any) -> list[Any]:
    """Arrays of a result, of sparse and ragged tensors those that they are made of."""
    import tensorflow as tf

    return [np.asarray(each) for each in tf.nest.flatten(nested, expand_composites=True)]


def same_bits(found: Any, expected: Any) -> bool:
    """Whether two results have the same types, shapes and bits."""
    pairs = list(zip(flat(found), flat(expected), strict=True))
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def sparse(lengths: list[int], rng: np.random.Generator, rows: int = ROWS) -> tuple[Any, Any]:
    """Sparse ids and weights of bags of these lengths."""
    import tensorflow as tf

    bag = np.repeat(np.arange(len(lengths)), lengths)
    place = np.concatenate([np.arange(length) for length in lengths]) if bag.size else bag
    places = np.stack([bag, place], 1).astype(np.int64)
    shape = [len(lengths), max([1, *lengths])]
    ids = tf.SparseTensor(places, rng.integers(0, rows, len(bag)), shape)
    return ids, tf.SparseTensor(places, rng.standard_normal(len(bag)).astype(np.float32), shape)
