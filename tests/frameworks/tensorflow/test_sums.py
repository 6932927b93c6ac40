"""A thousand bags of 0 to 513 rows for each of TensorFlow's sums: its bits are the rules', and the device's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.requests.orders import Order, ordered_request
from tests.compiler.orders.order_support import run
from tests.frameworks.tensorflow.comparing import table, tf, with_negative_zeros
from tests.reference.tensorflow_sums import bags, by_blocks, by_lanes, divided, mean_of_segment

pytestmark = pytest.mark.frameworks

Array = NDArray[Any]

BAGS, ROWS = 1000, 60


class Given(NamedTuple):
    """Bags: the rows that each looks up, one after the other, the bag of each, and its weight."""

    table: Array
    indices: Array
    segments: Array
    weights: Array
    lengths: Array

    @property
    def rows(self) -> Array:
        return self.table[self.indices]


def _product(given: Given) -> Any:
    places = np.stack([given.segments, given.indices], 1)
    matrix = tf.SparseTensor(places, given.weights, [BAGS, ROWS])
    return tf.sparse.sparse_dense_matmul(matrix, given.table)


Rule = Callable[[Array], Array]
SPARSE = {"sum": "segment_sum", "mean": "segment_mean", "sqrtn": "segment_sqrt_n"}

CASES: dict[str, tuple[Order, str, bool, Callable[[Given], Any], Rule]] = {
    **{
        f"sparse segment {mode}{end}": (
            Order.BLOCKS,
            mode,
            False,
            lambda g, mode=mode, more=more: getattr(tf.sparse, SPARSE[mode])(g.table, g.indices, g.segments, **more),
            lambda rows, mode=mode: by_blocks(rows, mode),
        )
        for mode in SPARSE
        for end, more in (("", {}), (" with a number", {"num_segments": BAGS}))
    },
    "segment sum": (Order.LANES, "sum", False, lambda g: tf.math.segment_sum(g.rows, g.segments), by_lanes),
    "segment sum, weighted": (
        Order.LANES,
        "sum",
        True,
        lambda g: tf.math.segment_sum(g.rows * g.weights[:, None], g.segments),
        by_lanes,
    ),
    "segment mean": (Order.SEGMENT, "mean", False, lambda g: tf.math.segment_mean(g.rows, g.segments), mean_of_segment),
    "unsorted segment sum": (
        Order.CHAIN,
        "sum",
        False,
        lambda g: tf.math.unsorted_segment_sum(g.rows, g.segments, BAGS),
        lambda rows: divided(rows, "sum"),
    ),
    "unsorted segment mean": (
        Order.CHAIN,
        "mean",
        False,
        lambda g: tf.math.unsorted_segment_mean(g.rows, g.segments, BAGS),
        lambda rows: divided(rows, "mean"),
    ),
    "sparse times dense": (Order.CHAIN, "sum", True, _product, lambda rows: divided(rows, "sum")),
}
"""Order, mode, whether rows are weighted, TensorFlow's operator, and the rule."""


@pytest.mark.parametrize("width", [8, 17])
@pytest.mark.parametrize("name", CASES)
def test_a_thousand_bags(device: daedal.Device, name: str, width: int) -> None:
    order, mode, is_weighted, operator, rule = CASES[name]
    rng = np.random.default_rng([len(name), width])
    lengths = np.concatenate([np.arange(70), rng.integers(0, 514, BAGS - 72), [513]])
    lengths = np.concatenate([rng.permutation(lengths), [5]])  # what has no number of segments ends with a bag
    rows = with_negative_zeros(table(ROWS, width, seed=width))
    segments, ends = np.repeat(np.arange(BAGS), lengths), lengths.cumsum()
    indices = rng.integers(0, ROWS, len(segments))
    for bag in range(0, BAGS, 9):  # of nothing but -0.0
        indices[ends[bag] - lengths[bag] : ends[bag]] = 5 * rng.integers(0, ROWS // 5, lengths[bag])
    weights = rng.standard_normal(len(segments)).astype(np.float32)
    given = Given(rows, indices, segments, weights, lengths)
    expected = np.asarray(operator(given))
    values = given.rows * weights[:, None] if is_weighted else given.rows
    summed = [rule(each) if len(each) else np.zeros(width, np.float32) for each in bags(values, [0, *ends])]
    assert np.stack(summed).tobytes() == expected.tobytes()
    request = ordered_request(name, rows, indices, weights if is_weighted else None, segments, BAGS, mode, order)
    (result,) = run(device, request)
    assert result.tobytes() == expected.tobytes()


def test_subnormal_numbers_are_flushed_by_tensorflow_only(device: daedal.Device) -> None:
    """The one difference that the docs name."""
    small = np.full((4, 8), 1e-40, np.float32)
    keys = np.zeros(3, np.int64)
    assert not np.asarray(tf.sparse.segment_sum(small, [0, 1, 2], keys)).any()
    (result,) = run(device, ordered_request("op", small, np.arange(3), None, keys, 1, "sum", Order.BLOCKS))
    assert (result == small[:1] + small[:1] + small[:1]).all()
