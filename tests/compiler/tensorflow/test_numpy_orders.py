"""TensorFlow's reductions of rows in NumPy; ``tests/frameworks/tensorflow`` holds them against TensorFlow."""

import numpy as np
import pytest

from daedal.compiler.frontends.tensorflow.ops import numpy_orders
from tests.reference.tensorflow_sums import by_lanes


@pytest.mark.parametrize("width", [3, 8, 9, 17])
def test_sums_are_by_lanes(width: int) -> None:
    for count in (0, 1, 15, 16, 17, 40):
        bags = np.random.default_rng(count).standard_normal((3, count, width)).astype(np.float32)
        assert numpy_orders.sums(bags).tobytes() == np.stack([by_lanes(rows) for rows in bags]).tobytes()


def test_infinities_of_unsorted_segments() -> None:
    rows, largest = np.full((1, 2, 2), np.inf, np.float32), np.finfo(np.float32).max
    assert np.array_equal(numpy_orders.unsorted_extremes("min")(rows), [[largest] * 2])
    assert np.array_equal(numpy_orders.unsorted_extremes("max")(-rows), [[-largest] * 2])


def test_nan_in_vectors_and_behind_them() -> None:
    rows = np.tile(np.array([1, np.nan, 2], np.float32)[None, :, None], (1, 1, 9))
    assert numpy_orders.extremes("min")(rows)[0].tolist() == [1] * 8 + [2]
    assert np.isnan(numpy_orders.extremes_along_axis("min")(rows)).all()


def test_segments_of_all_lengths() -> None:
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = numpy_orders.by_segment(rows, np.array([2, 0, 2, 2]), 3, numpy_orders.extremes("max"), 0.0)
    assert found.tolist() == [[2, 3], [0, 0], [6, 7]]
