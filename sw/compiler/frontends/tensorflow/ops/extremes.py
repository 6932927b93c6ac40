"""Maxima, minima and products of rows by segment."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daedal.compiler.frontends.requests.extremes import extreme_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node
from daedal.compiler.frontends.tensorflow.ops.messages import message_of
from daedal.compiler.frontends.tensorflow.ops.numpy_orders import (
    Reduce,
    by_segment,
    extremes,
    products,
    unsorted_extremes,
    unsorted_products,
)
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables, check_range, integers_of
from daedal.compiler.frontends.tensorflow.ops.reductions import Reduction, segments_of, unsorted_segments_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.strands import MOST_IN_ORDER, VECTOR
from daedal.runtime.request import Array, Request

_MODES = {"Max": "max", "Min": "min", "Prod": "prod"}
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Extremes(Reduction):
    """What segments sorted or not have in common."""

    empty: ClassVar[dict[str, float]]
    """What a segment without rows gives, by mode."""

    is_numpy: ClassVar[bool] = True

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        data, segments, *count = node.inputs
        message = message_of(graph, tables, data, None)
        if message.weights is not None:
            return f"{node.op} of rows times weights is none that the front end takes: it takes their sum"
        return cls.made_of(node, message, tables, segments, count[0] if count else None)

    def _request(self, table: Array, taken: Array | None, segments: Array, rows: int, *, is_bounded: bool) -> Request:
        flat = self.checked_rows(table, taken, segments)
        request = extreme_request(
            self.name, flat, taken, segments, rows, self.mode, empty=self.empty[self.mode], is_bounded=is_bounded
        )
        return replace(request, shape=(rows, *table.shape[1:]))

    def _in_numpy(self, table: Array, taken: Array | None, segments: Array, rows: int, reduce: Reduce) -> Array:
        if taken is not None:
            check_range(self.name, "index", taken, len(table), "a table")
        given = table if taken is None else table[taken]
        return by_segment(given, segments, rows, reduce, self.empty[self.mode])


@dataclass(frozen=True)
class SegmentExtremes(Extremes):
    """``tf.math.segment_max``, ``segment_min`` and ``segment_prod``."""

    modes: ClassVar = {f"Segment{name}": mode for name, mode in _MODES.items()}
    targets: ClassVar = tuple(modes)
    empty: ClassVar = {"max": 0.0, "min": 0.0, "prod": 1.0}

    def request(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array | None
    ) -> Request:
        """See ``extreme_request``."""
        segments, rows = segments_of(self.name, segments, count)
        taken = None if indices is None else integers_of(self.name, "indices", indices)
        most = int(np.bincount(segments).max(initial=0))
        if self.mode == "prod" and most > MOST_IN_ORDER and int(np.prod(table.shape[1:])) >= VECTOR:
            raise UnsupportedOperation(
                f"{self.name}: segments must have at most {MOST_IN_ORDER} rows for a product, or rows fewer than "
                f"{VECTOR} columns: of {most} rows TensorFlow makes four products side by side"
            )
        return self._request(table, taken, segments, rows, is_bounded=False)

    def in_numpy(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array | None
    ) -> Array:
        """As of any operation."""
        reduce = products if self.mode == "prod" else extremes(self.mode)
        return self._in_numpy(table, indices, *segments_of(self.name, segments, count), reduce)


@dataclass(frozen=True)
class UnsortedSegmentExtremes(Extremes):
    """``tf.math.unsorted_segment_max``, ``…_min`` and ``…_prod``."""

    modes: ClassVar = {f"UnsortedSegment{name}": mode for name, mode in _MODES.items()}
    targets: ClassVar = tuple(modes)
    empty: ClassVar = {"max": -_LARGEST, "min": _LARGEST, "prod": 1.0}

    def request(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array
    ) -> Request:
        """See ``extreme_request``: rows of negative segments are left out."""
        segments, taken, _, rows = unsorted_segments_of(self.name, indices, None, segments, count)
        return self._request(table, taken, segments, rows, is_bounded=True)

    def in_numpy(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array
    ) -> Array:
        """As of any operation."""
        segments, taken, _, rows = unsorted_segments_of(self.name, indices, None, segments, count)
        reduce = unsorted_products if self.mode == "prod" else unsorted_extremes(self.mode)
        return self._in_numpy(table, taken, segments, rows, reduce)
