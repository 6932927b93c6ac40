"""Sums of the rows of bags of one length: ``tf.reduce_sum(tf.gather(table, ids), axis=-2)``."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.lookups import TYPE, why_not_by_row
from daedal.compiler.frontends.tensorflow.ops.messages import message_of
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables, integers_of, rows_of
from daedal.compiler.frontends.tensorflow.ops.reductions import why_not
from daedal.runtime.request import Array, Request

_COLUMNS = 8
"""Of a row of as many columns as are a multiple of this, TensorFlow adds up all in one order."""


@dataclass(frozen=True)
class DenseSum(Operation):
    """A sum along the last axis but one of gathered rows, whose dimension stays, with size 1, if it ``keeps`` it."""

    targets: ClassVar = ("Sum",)

    indices: Ref
    keeps: bool

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        data, axis = node.inputs
        gather, axes = graph.node_of(data), graph.constant(axis)
        if gather.op not in TYPE or why_not_by_row(gather, graph) is not None or axes is None or np.size(axes) != 1:
            return None
        message, along = message_of(graph, tables, data, None), int(np.reshape(axes, -1)[0])
        shape, indices = tables.shape_of(message.table.ref), tables.shape_of(gather.inputs[1])
        ranks = None if indices is None else len(indices)
        if not message.table.is_given or message.indices is None or shape is None or len(shape) != 2 or ranks == 0:
            return None
        if along != -2 and (ranks is None or along != ranks - 1):
            return None
        if (reason := why_not(node, message.table, tables)) is not None:
            return reason
        if shape[1] is None or shape[1] % _COLUMNS:
            return (
                f"rows must have a multiple of {_COLUMNS} elements, not {shape[1]}, whose last ones it adds otherwise"
            )
        keeps = bool(node.attribute("keep_dims").b)
        return cls(node.name, message.table, message.absorbed | {node.name}, message.indices, keeps)

    @property
    def sources(self) -> tuple[Ref | None, ...]:
        """Indices."""
        return (self.indices,)

    def request(self, table: Array, indices: Array) -> Request:
        """See ``ordered_request``."""
        flat, taken = rows_of(self.name, table, computes=True), integers_of(self.name, "indices", indices)
        *lead, length = taken.shape
        bags = int(np.prod(lead, dtype=np.int64))
        keys = np.repeat(np.arange(bags), length)
        request = ordered_request(self.name, flat, taken.reshape(-1), None, keys, bags, "sum", Order.LANES)
        return replace(request, shape=(*lead, *[1] * self.keeps, flat.shape[1]))
