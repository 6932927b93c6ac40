"""Sums and means of rows by segment, and what Keras and ``tf.nn`` make of them: bags of embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.messages import Message, message_of
from daedal.compiler.frontends.tensorflow.ops.operation import (
    Operation,
    Table,
    Tables,
    check_range,
    check_sorted,
    integers_of,
    rows_of,
)
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Array, Request

FLOAT32 = 1
"""TensorFlow's number of the type."""


def why_not(node: Node, table: Table, tables: Tables) -> str | None:
    """Why rows of a table are not added up on the device, as far as the graph tells."""
    dtype = node.type_of("T")
    if dtype != "float32":
        return f"sums must be of float32, not {dtype or 'another type'}"
    if table.ref.node in tables.written:
        return f"the model changes its table, {table.target}, in the same call"
    rank = tables.rank(table)
    if rank is not None and rank < 2:
        return f"the table must have at least 2 dimensions, not {rank}"
    return None


@dataclass(frozen=True)
class Reduction(Operation):
    """A reduction of rows of a table that ``indices`` name, each into the row of the result that ``segments`` names."""

    modes: ClassVar[Mapping[str, str]] = {}
    """Operator -> what it computes."""

    indices: Ref | None
    weights: Ref | None
    segments: Ref
    count: Ref | None
    mode: str

    @property
    def sources(self) -> tuple[Ref | None, ...]:
        """Indices, weights, segments and the number of rows of the result."""
        return self.indices, self.weights, self.segments, self.count

    @classmethod
    def made_of(
        cls, node: Node, message: Message, tables: Tables, segments: Ref, count: Ref | None
    ) -> "Operation | str | None":
        """The operation that this node is, or why it stays in TensorFlow."""
        if not message.table.is_given and tables.are_numbers(message.table):
            return None  # of weights, or of how many there are
        if (reason := why_not(node, message.table, tables)) is not None:
            return None if tables.rank(message.table) in (0, 1) else reason
        absorbed = message.absorbed | {node.name}
        return cls(
            node.name, message.table, absorbed, message.indices, message.weights, segments, count, cls.modes[node.op]
        )

    def ordered(
        self,
        table: Array,
        indices: Array | None,
        weights: Array | None,
        segments: Array,
        rows: int,
        order: Order,
    ) -> Request:
        """The request in an order of additions; segments are checked by then."""
        taken = None if indices is None else integers_of(self.name, "indices", indices)
        flat = self.checked_rows(table, taken, segments)
        request = ordered_request(
            self.name, flat, taken, _weights(self.name, weights, table.ndim), segments, rows, self.mode, order
        )
        return replace(request, shape=(rows, *table.shape[1:]))

    def checked_rows(self, table: Array, indices: Array | None, segments: Array) -> Array:
        """The table as rows, with a segment for each that is taken."""
        flat = rows_of(self.name, table, computes=True)
        count = len(flat) if indices is None else len(indices)
        if segments.ndim != 1 or len(segments) != count or (indices is not None and indices.ndim != 1):
            raise UnsupportedOperation(
                f"{self.name}: there must be a segment id, in 1 dimension, for each of {count} rows, not "
                f"{segments.shape}"
            )
        return flat


def _weights(name: str, weights: Array | None, dims: int) -> Array | None:
    """A weight for each row."""
    if weights is None:
        return None
    if weights.dtype != np.float32 or weights.ndim != dims or weights.size != len(weights):
        raise UnsupportedOperation(
            f"{name}: weights must be of float32, one for each row, not of {weights.dtype} with shape {weights.shape}"
        )
    return np.ascontiguousarray(weights.reshape(-1))


@dataclass(frozen=True)
class SparseSegments(Reduction):
    """``tf.sparse.segment_*``, and what ``tf.nn.embedding_lookup_sparse`` is without weights."""

    modes: ClassVar = {
        f"SparseSegment{name}{end}": mode
        for name, mode in (("Sum", "sum"), ("Mean", "mean"), ("SqrtN", "sqrtn"))
        for end in ("", "WithNumSegments")
    }
    targets: ClassVar = tuple(modes)

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        data, indices, segments, *count = node.inputs
        message = message_of(graph, tables, data, indices)
        return cls.made_of(node, message, tables, segments, count[0] if count else None)

    def request(
        self, table: Array, indices: Array, weights: Array | None, segments: Array, count: Array | None
    ) -> Request:
        """See ``ordered_request``."""
        return self.ordered(table, indices, weights, *segments_of(self.name, segments, count), Order.BLOCKS)


@dataclass(frozen=True)
class Segments(Reduction):
    """``tf.math.segment_sum`` and ``segment_mean``, and ``tf.nn.embedding_lookup_sparse`` with weights."""

    modes: ClassVar = {"SegmentSum": "sum", "SegmentSumV2": "sum", "SegmentMean": "mean"}
    targets: ClassVar = tuple(modes)

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        data, segments, *count = node.inputs
        message = message_of(graph, tables, data, None)
        return cls.made_of(node, message, tables, segments, count[0] if count else None)

    def request(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array | None
    ) -> Request:
        """See ``ordered_request``."""
        order = Order.SEGMENT if self.mode == "mean" else Order.LANES
        return self.ordered(table, indices, weights, *segments_of(self.name, segments, count), order)


@dataclass(frozen=True)
class UnsortedSegments(Reduction):
    """``tf.math.unsorted_segment_sum``, of which means are made, and reductions of ragged tensors."""

    modes: ClassVar = {"UnsortedSegmentSum": "sum"}
    targets: ClassVar = tuple(modes)

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        data, segments, count = node.inputs
        if graph.node_of(data).op in ("Fill", "OnesLike", "ZerosLike"):
            return None  # how many there are of each
        return cls.made_of(node, message_of(graph, tables, data, None), tables, segments, count)

    def request(
        self, table: Array, indices: Array | None, weights: Array | None, segments: Array, count: Array
    ) -> Request:
        """See ``ordered_request``: rows of negative segments are left out."""
        segments, taken, factors, rows = unsorted_segments_of(self.name, indices, weights, segments, count)
        return self.ordered(table, taken, factors, segments, rows, Order.CHAIN)


def segments_of(name: str, segments: Array, count: Array | None) -> tuple[Array, int]:
    """Sorted segments, checked, and how many rows their result has."""
    segments = integers_of(name, "segment ids", segments)
    check_sorted(name, segments)
    if count is None:
        return segments, int(segments[-1]) + 1 if segments.size else 0
    check_range(name, "segment id", segments, int(count), "a result")
    return segments, int(count)


def unsorted_segments_of(
    name: str, indices: Array | None, weights: Array | None, segments: Array, count: Array
) -> tuple[Array, Array | None, Array | None, int]:
    """Segments, checked, with the indices and weights of those that are not left out, as negative ones are; and how
    many rows their result has.
    """
    segments, rows = integers_of(name, "segment ids", segments), int(count)
    if rows < 0:
        raise UnsupportedOperation(f"{name}: num_segments must not be negative, not {rows}")
    if segments.size and segments.min() < 0 and segments.ndim == 1:
        kept = np.flatnonzero(segments >= 0)
        indices = kept if indices is None else indices[kept]
        segments, weights = segments[kept], None if weights is None else weights[kept]
    check_range(name, "segment id", segments, rows, "a result")
    return segments, indices, weights, rows
