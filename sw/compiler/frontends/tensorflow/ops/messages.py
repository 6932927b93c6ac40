"""What a reduction reduces: rows that indices name, times weights, as far as one launch can take it all."""

from dataclasses import dataclass

from daedal.compiler.frontends.tensorflow.graph import Graph, Ref
from daedal.compiler.frontends.tensorflow.ops.lookups import why_not_by_row
from daedal.compiler.frontends.tensorflow.ops.operation import Table, Tables, reading

_GATHERS = ("ResourceGather", "GatherV2")


@dataclass(frozen=True)
class Message:
    """Rows of ``table`` that ``indices`` name (None: all of them, in order), times ``weights``; and the nodes whose
    work that is.
    """

    table: Table
    indices: Ref | None
    weights: Ref | None
    absorbed: frozenset[str]


def message_of(graph: Graph, tables: Tables, data: Ref, indices: Ref | None) -> Message:
    """What the rows ``data``, or those of them that ``indices`` name, are.

    TensorFlow looks up distinct rows (``Unique``), and takes these apart again: that is a look-up of all of them.
    """
    if indices is None:
        node = graph.node_of(data)
        if node.op == "Mul":
            for rows, weights in (node.inputs, node.inputs[::-1]):
                if graph.node_of(rows).op in _GATHERS and graph.node_of(weights).op in ("Reshape", "ExpandDims"):
                    found = message_of(graph, tables, rows, None)
                    return Message(
                        found.table, found.indices, weights, found.absorbed | {node.name} | graph.handed_on(data)
                    )
        if node.op in _GATHERS and why_not_by_row(node, graph) is None:
            inner = message_of(graph, tables, node.inputs[0], node.inputs[1])
            return Message(inner.table, inner.indices, None, inner.absorbed | {node.name} | graph.handed_on(data))
        table = tables.find(graph, data)
        return Message(table, None, None, reading(graph, data))
    gather, taken = graph.node_of(data), graph.source(indices)
    if gather.op in _GATHERS and why_not_by_row(gather, graph) is None:
        unique = graph.node_of(gather.inputs[1])
        if unique.op in ("Unique", "UniqueV2") and taken == Ref(unique.name, 1):
            absorbed = graph.handed_on(data) | graph.handed_on(indices) | graph.handed_on(gather.inputs[1])
            absorbed |= {gather.name, unique.name} | reading(graph, gather.inputs[0])
            return Message(tables.find(graph, gather.inputs[0]), unique.inputs[0], None, absorbed)
    return Message(tables.find(graph, data), indices, None, reading(graph, data))
