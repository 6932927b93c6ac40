"""A sparse matrix times a dense one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables, check_range, reading, rows_of
from daedal.compiler.frontends.tensorflow.ops.reductions import why_not
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Array, Request


@dataclass(frozen=True)
class SparseProduct(Operation):
    """``tf.sparse.sparse_dense_matmul``, in the order in which the matrix has its entries; ``is_turned``: transposed
    (``adjoint_a``).
    """

    targets: ClassVar = ("SparseTensorDenseMatMul",)

    places: Ref
    values: Ref
    shape: Ref
    is_turned: bool

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        if node.attribute("adjoint_b").b:
            return "adjoint_b must be false: the rows of the dense matrix are what is looked up"
        places, values, shape, dense = node.inputs
        table = tables.find(graph, dense)
        if (reason := why_not(node, table, tables)) is not None:
            return reason
        is_turned = bool(node.attribute("adjoint_a").b)
        return cls(node.name, table, reading(graph, dense) | {node.name}, places, values, shape, is_turned)

    @property
    def sources(self) -> tuple[Ref | None, ...]:
        """Places, values and shape of the sparse matrix."""
        return self.places, self.values, self.shape

    def request(self, table: Array, places: Array, values: Array, shape: Array) -> Request:
        """See ``ordered_request``: products are rounded, and added one after the other."""
        rows, columns = (int(each) for each in (shape[::-1] if self.is_turned else shape))
        flat = rows_of(self.name, table, computes=True)
        if columns != len(flat):
            raise UnsupportedOperation(
                f"{self.name}: the sparse matrix must have as many columns as the table has rows, {len(flat)}, not "
                f"{columns}"
            )
        keys, taken = (np.ascontiguousarray(places[:, n]) for n in ((1, 0) if self.is_turned else (0, 1)))
        check_range(self.name, "row", keys, rows, "a sparse matrix")
        return ordered_request(self.name, flat, taken, np.ascontiguousarray(values), keys, rows, "sum", Order.CHAIN)
