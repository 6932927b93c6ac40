"""Gathers: of rows of a variable, of a constant or of an input."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from daedal.compiler.frontends.requests.lookups import lookup_request
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables, integers_of, reading, rows_of
from daedal.runtime.request import Array, Request

TYPE: Mapping[str, str] = {"ResourceGather": "dtype", "GatherV2": "Tparams"}
"""Which attribute has the type of the rows that an operator gathers."""


@dataclass(frozen=True)
class Gather(Operation):
    """A gather of rows, of the shape of its indices: ``tf.gather``, ``tf.nn.embedding_lookup``, Keras' ``Embedding``,
    and the values of a ragged look-up.
    """

    targets: ClassVar = ("ResourceGather", "GatherV2")

    indices: Ref

    @classmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """As of any operation."""
        dtype = node.type_of(TYPE[node.op])
        table = tables.find(graph, node.inputs[0])
        rank = tables.rank(table)
        if rank is not None and rank < 2:
            return None  # of numbers, not of rows
        if not table.is_given:
            return "the rows that it gathers are computed by TensorFlow" if dtype.startswith("float") else None
        if table.op == "placeholder" and rank is None:
            return "its table is an input of which the shape is not known"
        if (reason := why_not_by_row(node, graph)) is not None:
            return reason
        if table.ref.node in tables.written:
            return f"the model changes its table, {table.target}, in the same call"
        if not dtype:
            return "its rows are not numbers"
        return cls(node.name, table, reading(graph, node.inputs[0]) | {node.name}, node.inputs[1])

    @property
    def sources(self) -> tuple[Ref | None, ...]:
        """Indices."""
        return (self.indices,)

    def request(self, table: Array, indices: Array) -> Request:
        """See ``lookup_request``."""
        inner = table.shape[1:]
        rows = rows_of(self.name, table, computes=False)
        request = lookup_request(self.name, rows, integers_of(self.name, "indices", indices))
        return replace(request, shape=(*indices.shape, *inner))


def why_not_by_row(node: Node, graph: Graph) -> str | None:
    """Why a gather is not one of whole rows, each for one index."""
    if node.attribute("batch_dims").i:
        return f"batch_dims must be 0, not {node.attribute('batch_dims').i}"
    if node.op == "GatherV2":
        axis = graph.constant(node.inputs[2])
        if axis is None or int(axis) != 0:
            return f"axis must be 0, not {'what is computed' if axis is None else int(axis)}"
    return None
