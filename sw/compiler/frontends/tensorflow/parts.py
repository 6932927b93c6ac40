"""Nodes of a graph as functions of TensorFlow's; imports TensorFlow."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.lookups import TYPE
from daedal.compiler.frontends.tensorflow.ops.operation import Operation
from daedal.compiler.frontends.tensorflow.schedule import Part

_ON_HANDLES = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
"""What works on a variable's handle."""

_DROPPED = ("_class", "_output_shapes")
"""Attributes that name other nodes, or say what is inferred again."""


class Builder:
    """Makes functions of parts of a graph.

    Parameters
    ----------
    graph
        The graph.
    library
        The functions that it calls (``FunctionDefLibrary``).
    captured
        What it has as inputs that are not the caller's, by name: handles and constants.
    variables
        The variables by the names of their handles, as far as they are known.
    """

    def __init__(self, graph: Graph, library: Any, captured: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        self.graph, self._library, self._captured, self._variables = graph, library, captured, variables
        whole = self._messages(graph.nodes, {}, {name: f"{name}/daedal_content" for name in variables})
        for name, variable in variables.items():
            content = whole.node.add(name=f"{name}/daedal_content", op="Placeholder")
            content.attr["dtype"].type = variable.dtype.as_datatype_enum
            content.attr["shape"].shape.CopyFrom(variable.shape.as_proto())
        with tf.Graph().as_default() as inferred:
            tf.graph_util.import_graph_def(whole, name="")
        self._inferred = inferred

    def spec(self, ref: Ref) -> tf.TensorSpec:
        """Shape and type of a tensor, as far as they are known."""
        if ref.node in self._variables:
            return tf.TensorSpec(self._variables[ref.node].shape, self._variables[ref.node].dtype)
        tensor = self._inferred.get_tensor_by_name(str(ref))
        return tf.TensorSpec(tensor.shape, tensor.dtype)

    def part(self, part: Part) -> tuple[Callable[..., Any], tuple[Ref, ...]]:
        """A function of the tensors that it takes, which are named, and that gives those of the part."""
        takes = tuple(ref for ref in part.takes if ref.node not in self._captured)
        constants = [ref for ref in part.takes if ref.node in self._captured]
        names = {ref: f"daedal_input_{n}" for n, ref in enumerate([*takes, *constants])}
        messages = self._messages(part.nodes, names, {})
        return self._function(messages, names, takes, part.gives, constants, part.effects), takes

    def operation(self, operation: Operation) -> Callable[..., Any]:
        """What TensorFlow does for an operation, a function of its table and sources that gives its result."""
        refs = [operation.table.ref, *operation.sources]
        given = tuple(dict.fromkeys(ref for ref in refs if ref is not None))
        names = {ref: f"daedal_input_{n}" for n, ref in enumerate(given)}
        inner = set(operation.absorbed)
        constants = {ref.node for name in inner for ref in self.graph.nodes[name].inputs} - inner
        inner |= {name for name in constants if self.graph.nodes[name].op == "Const" and Ref(name) not in names}
        ordered = [name for name in self.graph.nodes if name in inner]
        table = names[operation.table.ref] if operation.table.ref.node in self._variables else None
        messages = self._messages(ordered, names, {} if table is None else {operation.table.ref.node: table})
        single = self._function(messages, names, given, (Ref(operation.name),), (), ())

        def run(*sources: Any) -> Any:
            values = {ref: value for ref, value in zip(refs, sources, strict=True) if ref is not None}
            return single(*(values[ref] for ref in given))[0]

        return run

    def _function(
        self,
        messages: Any,
        names: Mapping[Ref, str],
        takes: Sequence[Ref],
        gives: Sequence[Ref],
        constants: Sequence[Ref],
        effects: Sequence[str],
    ) -> Any:
        captured = {ref: self._captured[ref.node] for ref in constants}
        seen = [self._variables[ref.node] for ref in constants if ref.node in self._variables]

        @tf.autograph.experimental.do_not_convert
        def body(*values: Any) -> list[Any]:
            graph = tf.compat.v1.get_default_graph()
            for variable in seen:
                graph.watch_variable(variable)
            given = dict(zip(takes, values, strict=True)) | {r: graph.capture(each) for r, each in captured.items()}
            inputs = {f"{names[ref]}:0": value for ref, value in given.items()}
            wanted = [f"{names[ref]}:0" if ref in names else str(ref) for ref in gives]
            found = tf.graph_util.import_graph_def(
                messages, input_map=inputs, return_elements=[*wanted, *effects], name=""
            )
            with tf.control_dependencies(found[len(wanted) :]):
                return [tf.identity(each) for each in found[: len(wanted)]]

        specs = [self.spec(ref) for ref in takes]
        return tf.function(body, input_signature=specs).get_concrete_function()

    def _messages(self, names: Iterable[str], takes: Mapping[Ref, str], tables: Mapping[str, str]) -> Any:
        """The graph (``GraphDef``) of some nodes, with inputs for what they take; ``tables``: names of inputs that are
        the contents of variables, by their handles.
        """
        made = tf.compat.v1.GraphDef()
        made.library.CopyFrom(self._library)
        made.versions.producer = tf.version.GRAPH_DEF_VERSION
        own = set(names := list(names))
        for ref, name in takes.items():
            given = made.node.add(name=name, op="Placeholder")
            given.attr["dtype"].type = self.spec(ref).dtype.as_datatype_enum
        for name in names:
            node = self.graph.nodes[name]
            message = made.node.add()
            message.CopyFrom(node.message)
            message.name, message.device = node.name, ""
            del message.input[:]
            for each in _DROPPED:
                message.attr.pop(each, None)
            inputs = [f"{takes[ref]}:0" if ref in takes else str(ref) for ref in node.inputs]
            if node.inputs and node.inputs[0].node in tables and node.op in _ON_HANDLES:
                _take_contents(message, node, made)
                inputs[0] = f"{tables[node.inputs[0].node]}:0"
            message.input.extend(inputs)
            if message.op == "GatherV2" and node.op == "ResourceGather":
                message.input.append(f"{node.name}/daedal_axis:0")
            message.input.extend(f"^{each}" for each in node.controls if each in own)
        return made


def _take_contents(message: Any, node: Node, made: Any) -> None:
    """Make a node that works on a variable's handle one that works on its content."""
    if node.op == "ReadVariableOp":
        dtype = message.attr["dtype"].type
        message.op = "Identity"
        message.attr.clear()
        message.attr["T"].type = dtype
    elif node.op == "ResourceGatherNd":
        dtype, indices = message.attr["dtype"].type, message.attr["Tindices"].type
        message.op = "GatherNd"
        message.attr.clear()
        message.attr["Tparams"].type, message.attr["Tindices"].type = dtype, indices
    elif node.op == "ResourceGather":
        dtype, indices = message.attr[TYPE[node.op]].type, message.attr["Tindices"].type
        message.op = "GatherV2"
        message.attr.clear()
        message.attr["Tparams"].type, message.attr["Tindices"].type = dtype, indices
        message.attr["Taxis"].type = tf.int32.as_datatype_enum
        axis = made.node.add(name=f"{node.name}/daedal_axis", op="Const")
        axis.attr["dtype"].type = tf.int32.as_datatype_enum
        axis.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(0, tf.int32))
