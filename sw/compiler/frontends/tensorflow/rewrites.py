"""A graph put another way, so that less of it is looked up."""

from collections.abc import Callable
from dataclasses import replace

from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.lookups import why_not_by_row

INT32, INT64 = 3, 9
"""TensorFlow's numbers of the types."""

ShapeOf = Callable[[Ref], tuple[int | None, ...] | None]
"""The shape of a tensor, of a handle that of its variable; None for what is not known of it, or of its sizes."""


def without_shapes_of_rows(graph: Graph, shape_of: ShapeOf) -> Graph:
    """The graph with shapes of looked-up rows made of those of indices and table.

    Means of ragged tensors ask for the shape of rows of which nothing else is needed.
    """
    nodes = list[Node]()
    for node in graph.nodes.values():
        gather = graph.node_of(node.inputs[0]) if node.op == "Shape" else None
        made = None if gather is None else _shape_of_gather(node, gather, graph, shape_of)
        nodes += [node] if made is None else made
    return Graph(nodes, graph.outputs, graph.effects)


def with_casts_behind_gathers(graph: Graph) -> Graph:
    """The graph with gathers of variables whose elements are cast made casts of gathered rows.

    Keras casts a whole table for each look-up in mixed precision.
    """
    nodes = list[Node]()
    for node in graph.nodes.values():
        cast = graph.node_of(node.inputs[0]) if node.op == "GatherV2" else None
        if cast is None or cast.op != "Cast" or graph.node_of(cast.inputs[0]).op != "ReadVariableOp":
            nodes.append(node)
            continue
        rows, whole = type(node.message)(), type(node.message)()
        rows.CopyFrom(node.message)
        rows.attr["Tparams"].type = cast.attribute("SrcT").type
        whole.CopyFrom(cast.message)
        gathered = Ref(f"{node.name}/daedal_rows")
        nodes.append(Node(gathered.node, node.op, (cast.inputs[0], *node.inputs[1:]), node.controls, rows))
        nodes.append(Node(node.name, "Cast", (gathered,), cast.controls, whole))
    return Graph(nodes, graph.outputs, graph.effects)


def _shape_of_gather(node: Node, gather: Node, graph: Graph, shape_of: ShapeOf) -> list[Node] | None:
    """The nodes for the shape of a gather of rows; None for another node, or rows of which the size is not known."""
    if gather.op not in ("ResourceGather", "GatherV2") or why_not_by_row(gather, graph) is not None:
        return None
    source = graph.node_of(gather.inputs[0])
    table = shape_of(graph.source(source.inputs[0] if source.op == "ReadVariableOp" else gather.inputs[0]))
    if table is None or len(table) < 2 or None in table[1:]:
        return None
    sizes = [size for size in table[1:] if size is not None]
    out = node.attribute("out_type").type or INT32
    message = type(node.message)
    first = message(name=f"{node.name}/daedal_indices", op="Shape")
    first.attr["T"].type, first.attr["out_type"].type = gather.attribute("Tindices").type, out
    rest = message(name=f"{node.name}/daedal_row", op="Const")
    rest.attr["dtype"].type = rest.attr["value"].tensor.dtype = out
    rest.attr["value"].tensor.tensor_shape.dim.add(size=len(sizes))
    getattr(rest.attr["value"].tensor, "int_val" if out == INT32 else "int64_val").extend(sizes)
    axis = message(name=f"{node.name}/daedal_axis", op="Const")
    axis.attr["dtype"].type = axis.attr["value"].tensor.dtype = INT32
    axis.attr["value"].tensor.tensor_shape.SetInParent()
    axis.attr["value"].tensor.int_val.append(0)
    whole = message(name=node.name, op="ConcatV2")
    whole.attr["N"].i, whole.attr["T"].type, whole.attr["Tidx"].type = 2, out, INT32
    parts = (Ref(first.name), Ref(rest.name), Ref(axis.name))
    shape = Node(first.name, "Shape", (gather.inputs[1],), (), first)
    constants = [Node(each.name, "Const", (), (), each) for each in (rest, axis)]
    return [shape, *constants, replace(node, op="ConcatV2", inputs=parts, message=whole)]
