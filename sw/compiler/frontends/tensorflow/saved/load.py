"""An executable of a SavedModel, without TensorFlow."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from daedal.compiler.frontends.tensorflow.graph import Ref
from daedal.compiler.frontends.tensorflow.inlining import lookups_inside
from daedal.compiler.frontends.tensorflow.ops.operation import Tables
from daedal.compiler.frontends.tensorflow.registry import find_operations
from daedal.compiler.frontends.tensorflow.rewrites import without_shapes_of_rows
from daedal.compiler.frontends.tensorflow.saved.model import SavedGraph, read_saved_model
from daedal.compiler.frontends.tensorflow.saved.numpy_ops import constant
from daedal.compiler.frontends.tensorflow.saved.program import SavedModelProgram
from daedal.compiler.frontends.tensorflow.schedule import schedule
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.executable import Executable
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Operation

Shape = tuple[int | None, ...]


def loaded(folder: Path, signature: str, device: Device, bounds: str, opt: int) -> Executable:
    """See ``api.load``."""
    saved = read_saved_model(folder, signature)
    shape_of = _shapes(saved)
    graph = without_shapes_of_rows(saved.graph, shape_of)
    names = {handle: variable.name for handle, variable in saved.variables.items()}
    found = find_operations(graph, Tables(names, shape_of), lookups_inside(saved.functions))
    if not found.operations:
        why = "; ".join(f"{name}: {reason}" for name, reason in found.reasons.items())
        raise UnsupportedOperation(why or f"signature {signature} must look up, gather or reduce rows, and does not")
    program = SavedModelProgram(replace(saved, graph=graph), schedule(graph, found.operations), found.reasons)

    def compile_operation(operation: Operation, has_long_bags: bool) -> Kernel:
        from daedal.compiler.operation_compiler import compiler_for  # xDSL and the passes: not before a first call

        return compiler_for(device.config, bounds, opt)(operation, has_long_bags)

    return Executable(program, device, compile_operation, bounds, opt)


def _shapes(saved: SavedGraph) -> Callable[[Ref], Shape | None]:
    """The shapes of inputs, variables and constants."""
    given = {ref: info.tensor_shape for ref, info in saved.inputs.values()}

    def shape_of(ref: Ref) -> Shape | None:
        ref = saved.graph.source(ref)
        node = saved.graph.nodes[ref.node]
        if node.name in saved.variables:
            return saved.variables[node.name].shape
        if node.op == "ReadVariableOp":
            return shape_of(node.inputs[0])
        if ref in given:
            sizes = [dim.size for dim in given[ref].dim]
            return None if given[ref].unknown_rank else tuple(None if size < 0 else size for size in sizes)
        return constant(node.attribute("value").tensor, node.name).shape if node.op == "Const" else None

    return shape_of
