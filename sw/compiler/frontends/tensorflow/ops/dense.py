"""Reductions of the rows of bags of one length: ``tf.reduce_sum(tf.gather(table, ids), axis=-2)`` and others."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daedal.compiler.frontends.requests.extremes import extreme_request
from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.lookups import TYPE, why_not_by_row
from daedal.compiler.frontends.tensorflow.ops.messages import message_of
from daedal.compiler.frontends.tensorflow.ops.numpy_orders import Reduce, extremes_along_axis, products, sums
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables, check_range, integers_of, rows_of
from daedal.compiler.frontends.tensorflow.ops.reductions import why_not
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.strands import MOST_IN_ORDER, VECTOR
from daedal.runtime.request import Array, Request

_NUMPY: Mapping[str, Reduce] = {
    "sum": sums, "mean": sums, "max": extremes_along_axis("max"), "min": extremes_along_axis("min"), "prod": products,
}  # fmt: skip


@dataclass(frozen=True)
class DenseReduction(Operation):
    """A reduction along the last axis but one of gathered rows, whose dimension stays, with size 1, if it ``keeps``
    it.
    """

    modes: ClassVar[Mapping[str, str]] = {"Sum": "sum", "Mean": "mean", "Max": "max", "Min": "min", "Prod": "prod"}
    targets: ClassVar = tuple(modes)
    is_numpy: ClassVar[bool] = True

    indices: Ref
    mode: str
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
        mode, length = cls.modes[node.op], indices[-1] if indices else None
        if shape[1] is not None and (reason := _why_not_in_order(mode, length, shape[1])) is not None:
            return reason
        keeps = bool(node.attribute("keep_dims").b)
        return cls(node.name, message.table, message.absorbed | {node.name}, message.indices, mode, keeps)

    @property
    def sources(self) -> tuple[Ref | None, ...]:
        """Indices."""
        return (self.indices,)

    def request(self, table: Array, indices: Array) -> Request:
        """See ``ordered_request`` and ``extreme_request``."""
        flat, taken = rows_of(self.name, table, computes=True), integers_of(self.name, "indices", indices)
        *lead, length = taken.shape
        width, bags = flat.shape[1], int(np.prod(lead, dtype=np.int64))
        if (reason := _why_not_in_order(self.mode, length, width)) is not None:
            raise UnsupportedOperation(f"{self.name}: {reason}")
        if not length and self.mode not in ("sum", "prod"):
            raise UnsupportedOperation(f"{self.name}: there must be a row at least for mode {self.mode}")
        keys, flat_indices = np.repeat(np.arange(bags), length), taken.reshape(-1)
        if self.mode in ("sum", "mean"):
            is_chain = length > 1 and (length <= MOST_IN_ORDER or width < VECTOR)
            order = Order.CHAIN if is_chain else Order.LANES
            request = ordered_request(self.name, flat, flat_indices, None, keys, bags, self.mode, order)
        else:
            empty = 1.0 if self.mode == "prod" else 0.0
            request = extreme_request(self.name, flat, flat_indices, keys, bags, self.mode, empty=empty)
        return replace(request, shape=(*lead, *[1] * self.keeps, width))

    def in_numpy(self, table: Array, indices: Array) -> Array:
        """As of any operation."""
        check_range(self.name, "index", indices, len(table), "a table")
        with np.errstate(all="ignore"):
            *lead, length = indices.shape
            bags = table[indices].reshape(int(np.prod(lead, dtype=np.int64)), length, table.shape[1])
            found = _NUMPY[self.mode](bags)
            found = found / table.dtype.type(length) if self.mode == "mean" else found
        return found.reshape(*lead, *[1] * self.keeps, table.shape[1])


def _why_not_in_order(mode: str, length: int | None, width: int) -> str | None:
    """Why so many rows are reduced in an order that the device has not; None for a number that is not known."""
    if mode in ("max", "min"):
        return None  # the order does not matter
    if width == 1:
        return f"rows must have 2 elements at least for mode {mode}: single numbers it takes in another order"
    if length is None or length <= MOST_IN_ORDER or width < VECTOR:
        return None
    if mode == "prod":
        return (
            f"there must be at most {MOST_IN_ORDER} rows for a product, or rows fewer than {VECTOR} columns: of "
            f"{length} rows it makes four products side by side"
        )
    if width % VECTOR:
        return (
            f"rows must have a multiple of {VECTOR} elements, or fewer, not {width}, where there are more than "
            f"{MOST_IN_ORDER} of them: the last ones it adds otherwise"
        )
    return None
