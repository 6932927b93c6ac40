"""A SavedModel as an executable runs it: launches, and what NumPy computes before, between and after them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.messages import shown
from daedal.compiler.frontends.tensorflow.graph import TYPES, Node, Ref
from daedal.compiler.frontends.tensorflow.ops.operation import HandedOver
from daedal.compiler.frontends.tensorflow.saved import numpy_layers, numpy_ops, numpy_ragged
from daedal.compiler.frontends.tensorflow.saved.model import SavedGraph
from daedal.compiler.frontends.tensorflow.schedule import Schedule
from daedal.errors import DaedalError, UnsupportedOperation
from daedal.runtime.batch.members import Call, Member
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import SavedModel
from daedal.runtime.saved.files import Writer

Array = NDArray[Any]

OPERATORS = {**numpy_ops.OPERATORS, **numpy_ragged.OPERATORS, **numpy_layers.OPERATORS}
NUMPY = frozenset({*OPERATORS, "Const", "NoOp", "ReadVariableOp"})
"""Operators that are computed here."""

_DENSE = (
    "MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Sum", "Mean", "Prod", "SegmentSum", "Cumsum", "Exp", "Expm1",
    "Log", "Log1p", "Pow", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Softplus", "Elu", "Selu",
    "Erf", "Erfc", "Sqrt", "Rsqrt",
)  # fmt: skip
"""Those of which NumPy may give other last bits."""


class SavedLookUp(HandedOver):
    """An operation for which there is no framework: what NumPy cannot do, nobody else can."""

    def in_torch(self, *sources: Any) -> Any:
        """What NumPy makes of these arrays."""
        return self.operation.in_numpy(*sources)


class SavedModelProgram:
    """The graph of a signature, with its look-ups handed over (``host_program.HostProgram``).

    Parameters
    ----------
    saved
        The graph and its variables.
    plan
        Its parts and launches.
    reasons
        Look-ups that are not the device's, and why.
    """

    framework = "NumPy"
    eager: Mapping[str, str] = {}
    remarks: Mapping[str, str] = {}

    def __init__(self, saved: SavedGraph, plan: Schedule, reasons: Mapping[str, str]) -> None:
        self._saved, self._plan = saved, plan
        self._launches = [[SavedLookUp(each) for each in launch] for launch in plan.launches]
        nodes = saved.graph.nodes
        self._values = {Ref(name): saved.content(name) for name in saved.variables}
        self._values |= {
            Ref(node.name): numpy_ops.constant(node.attribute("value").tensor, node.name)
            for node in nodes.values()
            if node.op == "Const"
        }
        inner = [nodes[name] for part in plan.parts for name in part.nodes]
        unknown = sorted({node.op for node in inner} - NUMPY)
        if unknown:
            raise UnsupportedOperation(
                f"the graph must be of operators that are known without TensorFlow, not {', '.join(unknown)}: save a "
                "model of the look-ups alone, or take daedal.tensorflow.compile"
            )
        why = "computed by NumPy: its last bits may be others"
        dense = {
            node.name: f"{node.op} is {why}" for node in inner if node.op in _DENSE and "float" in node.type_of("T")
        }
        self.reasons = {**reasons, **dense}

    # ------------------------------------------------------------------ what an executable asks for

    @property
    def calls(self) -> Iterable[SavedLookUp]:
        """The operations that are handed over."""
        return [call for launch in self._launches for call in launch]

    @property
    def fewest_launches(self) -> int:
        """See ``HostProgram``."""
        return len(self._launches)

    @property
    def code(self) -> str:
        """Parts and launches, a line each."""
        lines = []
        for number, part in enumerate(self._plan.parts):
            lines.append(f"NumPy: {', '.join(map(str, part.gives)) or 'nothing'}")
            if number < len(self._launches):
                lines.append(f"launch {', '.join(call.label for call in self._launches[number])}")
        return "\n".join(lines) + "\n"

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All inputs in the order of their names, of a dictionary or by name."""
        given = dict(named)
        if len(inputs) == 1 and isinstance(inputs[0], Mapping) and not named:
            given = dict(inputs[0])
        elif inputs:
            raise UnsupportedOperation("inputs must be given by name, or in one dictionary, as the signature has them")
        wanted = self._saved.inputs
        if given.keys() != wanted.keys():
            there = ", ".join(map(str, given)) or "none"
            raise UnsupportedOperation(f"the inputs must be {', '.join(wanted) or 'none'}, not {there}")
        return [_input(name, wanted[name][1], given[name]) for name in wanted]

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        """NumPy does some."""
        return isinstance(call, SavedLookUp) and call.operation.is_numpy

    def saved(self, writer: Writer) -> SavedModel:
        """The SavedModel is the file of it."""
        raise UnsupportedOperation("an executable of a SavedModel must be loaded again: the SavedModel is its file")

    def tables(self) -> Mapping[str, Any]:
        """The contents of the variables that are looked up, by name."""
        return {call.table.target: self._values[call.table.ref] for call in self.calls if call.table.op == "get_attr"}

    def request_of(self, call: Call, sources: Sequence[Any]) -> Request:
        """The request for an operation with these arrays."""
        assert isinstance(call, SavedLookUp)
        return call.operation.labelled_request(tuple(sources))

    # ------------------------------------------------------------------ running

    def run(self, inputs: Sequence[Any], work: Work) -> dict[str, Array]:
        """The outputs of the signature by name."""
        values = dict(self._values)
        values |= {ref: array for (ref, _), array in zip(self._saved.inputs.values(), inputs, strict=True)}
        for number, part in enumerate(self._plan.parts):
            for name in part.nodes:
                _compute(self._saved.graph.nodes[name], values)
            if number < len(self._launches):
                self._launch(self._launches[number], values, work)
        return {name: np.asarray(values[ref]) for name, ref in self._saved.outputs.items()}

    def _launch(self, calls: Sequence[SavedLookUp], values: dict[Ref, Array], work: Work) -> None:
        members = []
        for call in calls:
            refs = (call.table.ref, *call.operation.sources)
            sources = tuple(None if ref is None else values[ref] for ref in refs)
            try:
                node: Any = call
                members.append(Member(node, call, self.request_of(call, sources), sources))
            except UnsupportedOperation as error:
                values[Ref(call.name)] = np.asarray(work.refuse(call, sources, error))
        if members:
            found: Mapping[Any, Any] = work.group(members, [])
            work.settle()
            values |= {Ref(member.call.name): found[member.node] for member in members}


def _compute(node: Node, values: dict[Ref, Array]) -> None:
    if node.op in ("Const", "NoOp"):
        return
    given = [values[ref] for ref in node.inputs]
    if node.op == "ReadVariableOp":
        values[Ref(node.name)] = given[0]
        return
    try:
        results = OPERATORS[node.op](node, given)
    except DaedalError:
        raise
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError, MemoryError) as error:
        shapes = ", ".join(f"{each.dtype}{list(each.shape)}" for each in given)
        raise UnsupportedOperation(
            f"{node.name}: {node.op} must fit its inputs, {shapes}: {shown(str(error))}"
        ) from error
    values |= {Ref(node.name, number): np.asarray(each) for number, each in enumerate(results)}


def _input(name: str, info: Any, value: Any) -> Array:
    """An input as an array of the type and shape that the signature says."""
    dtype = TYPES.get(info.dtype)
    if dtype is None:
        raise UnsupportedOperation(f"{name} must be numbers, not of TensorFlow's type {info.dtype}: save it otherwise")
    is_array = isinstance(value, np.ndarray | np.generic)
    try:
        array = np.asarray(value)
        fits = array.dtype == dtype if is_array else np.can_cast(array.dtype, dtype, "same_kind") or not array.size
        made = np.ascontiguousarray(array, dtype).reshape(array.shape) if fits else array
    except (ValueError, TypeError, OverflowError) as error:
        raise UnsupportedOperation(f"{name} must be an array of {dtype}, not {shown(value)}") from error
    if not fits:
        raise UnsupportedOperation(f"{name} must be of {dtype}, not {array.dtype}")
    sizes = [dim.size for dim in info.tensor_shape.dim]
    is_known = not info.tensor_shape.unknown_rank
    if is_known and (len(sizes) != made.ndim or any(s not in (-1, n) for s, n in zip(sizes, made.shape, strict=True))):
        wanted = ["any" if size < 0 else size for size in sizes]
        raise UnsupportedOperation(f"{name} must have the shape {wanted}, not {list(made.shape)}")
    return made
