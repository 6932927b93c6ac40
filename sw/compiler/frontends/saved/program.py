"""A saved module as an executable runs it: steps on NumPy arrays, and calls that are launches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.compiler.frontends.saved.calls import GraphJoin, SavedGraphCall, TablePlace
from daedal.compiler.frontends.saved.inputs import SavedInputs
from daedal.compiler.frontends.saved.moves import OtherSizes, move
from daedal.driver.tables.table_sources import dtype_name
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.members import Call, Member
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import (
    Argument,
    Dots,
    HostStep,
    Items,
    LaunchStep,
    SavedCall,
    SavedGraph,
    SavedModel,
    Slice,
    Value,
)
from daedal.runtime.saved.files import Writer
from daedal.runtime.saved.validity import values_of
from daedal.runtime.tensors import tensor_of

Array = NDArray[Any]


@dataclass(eq=False)
class _Graph:
    """A trace, with what stays from one call to the next."""

    saved: SavedGraph
    inputs: SavedInputs
    fixed: list[Array]
    """Tables and constants: the values behind the inputs."""
    calls: list[list[SavedGraphCall]] = field(default_factory=list)
    """Of each launch."""


class SavedProgram:
    """A model from a file, ``host_program.HostProgram``.

    Parameters
    ----------
    model
        What the file says.
    tables
        The module's tensors, one for each of the model's tables.
    constants
        The arrays of each graph's constants.
    """

    framework = "PyTorch"
    reasons: Mapping[str, str] = {}
    remarks: Mapping[str, str] = {}
    eager: Mapping[str, str] = {}

    def __init__(self, model: SavedModel, tables: Sequence[Array], constants: Sequence[Sequence[Array]]) -> None:
        self.model, self._tables = model, tables
        self._graphs = [_graph(each, model, tables, given) for each, given in zip(model.graphs, constants, strict=True)]
        self._latest = self._graphs[0]

    @property
    def calls(self) -> Iterable[SavedGraphCall]:
        """The operations of the trace that was used last."""
        return [call for launch in self._latest.calls for call in launch]

    @property
    def fewest_launches(self) -> int:
        """Of the trace that was used last: the most calls of which each needs the one before."""
        saved, behind = self._latest.saved, list[int]()
        first = len(saved.inputs) + len(saved.tables) + len(saved.constants)
        for step in saved.steps:
            parts = step.calls if isinstance(step, LaunchStep) else (step,)
            needs = [each.number - first for part in parts for each in values_of(part) if each.number >= first]
            depth = max((behind[each] for each in needs), default=0) + isinstance(step, LaunchStep)
            behind += [depth] * (len(step.calls) + len(step.joins) if isinstance(step, LaunchStep) else 1)
        return max(behind, default=0)

    @property
    def code(self) -> str:
        """The steps of that trace, a line each."""
        return "\n".join(map(_in_words, self._latest.saved.steps)) + "\n"

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """What is given, as :meth:`run` takes it: inputs by position, and by name."""
        return (tuple(inputs), dict(named))

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        """There is nothing that PyTorch could do."""
        return False

    def tables(self) -> Mapping[str, Array]:
        """The tables that it was given."""
        return {each.name: array for each, array in zip(self.model.tables, self._tables, strict=True)}

    def saved(self, writer: Writer) -> SavedModel:
        """What its file says."""
        graphs = []
        for graph in self._graphs:
            arrays = graph.fixed[len(graph.saved.tables) :]
            constants = tuple(writer.array(each, dtype_name(each)) for each in arrays)
            graphs.append(replace(graph.saved, constants=constants))
        return replace(self.model, graphs=tuple(graphs), operations=())

    def request_of(self, call: Call, sources: Sequence[Any]) -> Request:
        """The request for a call with these sources."""
        assert isinstance(call, SavedGraphCall)
        return call.labelled_request(sources)

    def run(self, inputs: Sequence[Any], work: Work) -> Any:
        """The result for inputs by position and by name: tensors if there is one among them, else arrays.

        UnsupportedOperation for inputs that no trace of the file is for.
        """
        given, named = inputs
        reasons: list[UnsupportedOperation] = []
        for graph in [self._latest, *(each for each in self._graphs if each is not self._latest)]:
            before, self._latest = self._latest, graph
            try:
                leaves, are_tensors = graph.inputs.leaves(given, named)
                return work.attempt(partial(self._run, graph, leaves, work, are_tensors=are_tensors))
            except OtherSizes as error:
                self._latest = before
                reasons.append(error)
        raise UnsupportedOperation(
            f"the inputs must be as those that the executable was saved for: {reasons[0]}; call it with inputs like "
            "these before it is saved"
        ) from reasons[0]

    def _run(self, graph: _Graph, leaves: Sequence[Any], work: Work, *, are_tensors: bool) -> Any:
        values: list[Any] = [*leaves, *graph.fixed]
        launch = iter(graph.calls)
        unsettled: int | None = None
        """The first value that a launch may still be to fill."""
        for step in graph.saved.steps:
            if unsettled is not None and _needs(step, unsettled):
                work.settle()
                unsettled = None
            if isinstance(step, HostStep):
                values.append(move(step.name, [_value(each, values) for each in step.arguments], step.dtype))
                continue
            unsettled = len(values) if unsettled is None else unsettled
            values += self._launch(step, next(launch), values, work)
        result = _value(graph.saved.results, values)
        return _as_tensors(result, work) if are_tensors else result

    def _launch(
        self, step: LaunchStep, calls: Sequence[SavedGraphCall], values: Sequence[Any], work: Work
    ) -> list[Any]:
        sources = [tuple(_value(each, values) for each in call.saved.sources) for call in calls]
        requests = [call.labelled_request(each) for call, each in zip(calls, sources, strict=True)]
        if len(calls) == 1:
            return [work.call(calls[0], requests[0])]
        nodes: list[Any] = list(calls)
        members = [Member(*each) for each in zip(nodes, calls, requests, sources, strict=True)]
        joins = [
            GraphJoin(each, each.dim, tuple(nodes[n] for n in each.parts), frozenset(nodes[n] for n in each.private))
            for each in step.joins
        ]
        results = work.group(members, joins)
        found = [results.get(node) for node in nodes]
        for join in joins:
            whole: Any = results.get(join.node)
            if whole is None:
                work.settle()
                whole = move("cat", [[results[part] for part in join.parts], join.dim], "")
            found.append(whole)
        return found


def _graph(saved: SavedGraph, model: SavedModel, tables: Sequence[Array], constants: Sequence[Array]) -> _Graph:
    fixed = [*(tables[number] for number in saved.tables), *constants]
    made = _Graph(saved, SavedInputs(saved.slots, saved.inputs), fixed)
    first = len(saved.inputs)
    for step in saved.steps:
        if isinstance(step, LaunchStep):
            made.calls.append([SavedGraphCall(call, _place(call, first, first + len(fixed))) for call in step.calls])
    return made


def _place(call: SavedCall, first: int, end: int) -> TablePlace:
    """Where the table of a call is: the module's own, an input, or a result."""
    number = call.table.number if isinstance(call.table, Value) else end
    kind = "placeholder" if number < first else "get_attr" if number < end else "call_function"
    return TablePlace(kind, call.table_name)


def _value(argument: Argument, values: Sequence[Any]) -> Any:
    """What an argument is in a run."""
    if isinstance(argument, Value):
        return values[argument.number]
    if isinstance(argument, Items):
        parts = [_value(each, values) for each in argument.parts]
        if argument.kind == "dict":
            return dict(zip(argument.keys, parts, strict=True))
        return tuple(parts) if argument.kind == "tuple" else parts
    if isinstance(argument, Slice):
        return slice(*(_value(each, values) for each in (argument.start, argument.stop, argument.step)))
    return ... if isinstance(argument, Dots) else argument


def _needs(step: HostStep | LaunchStep, first: int) -> bool:
    """Whether a step takes the content of a value from ``first`` on."""
    if isinstance(step, LaunchStep):
        return any(isinstance(each, Value) and each.number >= first for call in step.calls for each in call.sources)
    return step.name not in ("getitem", "size", "check")


def _as_tensors(result: Any, work: Work) -> Any:
    """The same with tensors for arrays, over their memory where they are in order."""
    if isinstance(result, np.ndarray | np.generic):
        array = np.asanyarray(result)
        if not array.flags.c_contiguous or not array.flags.writeable:
            work.settle()  # what is copied must be there
        ordered = np.require(array, requirements=["C", "W"])
        return tensor_of(ordered.view(np.ndarray), ordered.shape, dtype_name(array))
    if isinstance(result, tuple | list):
        return type(result)(_as_tensors(each, work) for each in result)
    return {key: _as_tensors(each, work) for key, each in result.items()} if isinstance(result, dict) else result


def _in_words(step: HostStep | LaunchStep) -> str:
    if isinstance(step, HostStep):
        return f"{step.name}({', '.join(map(_short, step.arguments))})"
    return "launch " + ", ".join(call.label for call in step.calls)


def _short(argument: Argument) -> str:
    if isinstance(argument, Value):
        return f"%{argument.number}"
    if isinstance(argument, Items):
        return f"[{', '.join(map(_short, argument.parts))}]"
    if isinstance(argument, Slice):
        return ":".join(map(_short, (argument.start, argument.stop, argument.step)))
    return "..." if isinstance(argument, Dots) else repr(argument)
