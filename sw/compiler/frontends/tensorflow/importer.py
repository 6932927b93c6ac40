"""From a model of TensorFlow's to an executable: its graph, and what of it the device does; imports TensorFlow."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from daedal.base.messages import shown
from daedal.compiler.frontends.tensorflow.executable import TensorFlowExecutable
from daedal.compiler.frontends.tensorflow.graph import Graph, Ref
from daedal.compiler.frontends.tensorflow.inlining import Inliner, functions_of, lookups_inside
from daedal.compiler.frontends.tensorflow.inputs import Results, Signature
from daedal.compiler.frontends.tensorflow.ops.operation import Tables
from daedal.compiler.frontends.tensorflow.parts import Builder
from daedal.compiler.frontends.tensorflow.program import Program
from daedal.compiler.frontends.tensorflow.registry import find_operations
from daedal.compiler.frontends.tensorflow.rewrites import with_casts_behind_gathers, without_shapes_of_rows
from daedal.compiler.frontends.tensorflow.schedule import schedule
from daedal.compiler.operation_compiler import compiler_for
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation

_WRITERS = re.compile(r"Assign|Resource(?!Gather)")
"""How operators begin that change variables."""

_READERS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "Identity")


def compiled(
    model: Any, input_signature: Sequence[Any] | None, device: Device, training: bool, bounds: str, opt: int
) -> TensorFlowExecutable:
    """See ``api.compile``."""
    function, specs = _function(model, input_signature, training)
    signature = Signature(function, specs)
    concrete = _traced(function, specs)
    program = _program(concrete, signature, _paths(model))
    return TensorFlowExecutable(program, device, compiler_for(device.config, bounds, opt), bounds, opt)


def _program(concrete: Any, signature: Signature, paths: Mapping[int, str]) -> Program:
    graph_def = concrete.graph.as_graph_def()
    captures = concrete.captured_inputs
    inputs = [tensor.op.name for tensor in concrete.graph.inputs]
    own = inputs[: len(inputs) - len(captures)]
    captured = dict(zip(inputs[len(own) :], captures, strict=True))
    handles = {id(each.handle): each for each in concrete.graph.variables}
    variables = {name: handles[id(each)] for name, each in captured.items() if id(each) in handles}
    outputs = [Ref(tensor.op.name, tensor.value_index) for tensor in concrete.graph.outputs]
    effects = [each.name for each in concrete.graph.control_outputs]
    functions = graph_def.library.function
    graph = Inliner(functions, output_names).graph(graph_def.node, outputs, effects)
    graph = with_casts_behind_gathers(graph)
    builder = Builder(graph, graph_def.library, captured, variables)

    def shape_of(ref: Ref) -> tuple[int | None, ...] | None:
        shape = builder.spec(ref).shape
        return None if shape.rank is None else tuple(shape)

    graph = builder.graph = without_shapes_of_rows(graph, shape_of)
    names = {name: paths.get(id(each), each.name.split(":")[0]) for name, each in variables.items()}
    names |= {name: name for name in captured if name not in variables}
    inside = lookups_inside(functions)
    tables = Tables(names, shape_of, _written(graph, inside))
    found = find_operations(graph, tables, inside)
    if not found.operations:
        why = "; ".join(f"{name}: {reason}" for name, reason in found.reasons.items())
        ops = sorted({node.op for node in graph.nodes.values()} - {"Placeholder", "Const", "NoOp", "Identity"})
        has = f"has only {', '.join(ops[:8])}" if ops else "has no operations"
        raise UnsupportedOperation(why or f"the model must look up, gather or reduce rows, but {has}")
    return Program(
        schedule(graph, found.operations),
        builder,
        [Ref(name) for name in own],
        graph.outputs,
        signature,
        Results(concrete.structured_outputs),
        variables,
        captured,
        found.reasons,
    )


def output_names(op: str) -> list[str] | None:
    """See ``inlining.OutputNames``."""
    known = op_def_registry.get(op)
    if known is None:
        return None
    is_single = len(known.output_arg) == 1
    if not is_single and any(each.number_attr or each.type_list_attr for each in known.output_arg):
        return None
    return [each.name for each in known.output_arg]


def _written(graph: Graph, inside: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The handles of which something takes another use than to read; ``inside`` are the operators of functions."""
    found = set[str]()
    for node in graph.nodes.values():
        called = [name for each in node.message.attr.values() for name in functions_of(each)]
        ops = set[str]().union(*(inside.get(name, frozenset()) for name in called))
        if node.op in _READERS or (called and not any(_WRITERS.match(op) for op in ops)):
            continue
        for ref in node.inputs:
            source = graph.nodes[graph.source(ref).node]
            if source.is_handle:
                found.add(source.name)
    return frozenset(found)


def _paths(model: Any) -> Mapping[int, str]:
    """What a Keras model calls its variables, by the numbers of TensorFlow's."""
    weights = getattr(model, "variables", ())
    return {id(each.value): each.path for each in weights if hasattr(each, "path") and hasattr(each, "value")}


def _function(model: Any, input_signature: Any, training: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function to be traced, and what it takes."""
    if isinstance(input_signature, Mapping | tf.TypeSpec):
        input_signature = (input_signature,)
    if input_signature is not None and not isinstance(input_signature, tuple | list):
        raise UnsupportedOperation(
            f"input_signature must have a tf.TensorSpec for each argument, not {shown(input_signature)}"
        )
    if hasattr(model, "structured_input_signature"):
        positional, named = model.structured_input_signature
        if named:
            raise UnsupportedOperation(
                f"a concrete function must take its inputs by position, not {', '.join(named)} by name: give the "
                "tf.function and an input_signature"
            )
        return model, tuple(positional)
    if not callable(model):
        raise UnsupportedOperation(f"model must be a Keras model or a function of tensors, not {shown(model)}")
    given = input_signature
    if given is None:
        given = getattr(model, "input_signature", None)
        if given is None:
            given = _keras_inputs(model)
    if given is None:
        raise UnsupportedOperation(
            "input_signature must be given, a tf.TensorSpec for each argument: the model does not say what it takes"
        )
    takes_training = hasattr(model, "_call_has_training_arg") and model._call_has_training_arg
    if not takes_training:
        return model, tuple(given)

    def call(*inputs: Any) -> Any:
        return model(*inputs, training=training)

    return call, tuple(given)


def _keras_inputs(model: Any) -> tuple[Any, ...] | None:
    """The inputs that a Keras model was made of."""
    try:
        structure = model.input
    except (AttributeError, ValueError):
        inputs = getattr(model, "inputs", None)  # of a Sequential that was not called
        if not isinstance(inputs, list) or len(inputs) != 1:
            return None
        (structure,) = inputs
    return (tf.nest.map_structure(lambda each: tf.TensorSpec(each.shape, each.dtype), structure),)


def _traced(function: Any, specs: Sequence[Any]) -> Any:
    """The concrete function of these specifications."""
    if hasattr(function, "structured_input_signature"):
        return function
    made = function if hasattr(function, "get_concrete_function") else tf.function(function)
    try:
        return made.get_concrete_function(*specs)
    except (TypeError, ValueError, KeyError, tf.errors.OpError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UnsupportedOperation(
            f"the model must be one that TensorFlow traces with its input_signature, but {lines[0]}"
        ) from error
