"""A model of TensorFlow's as an executable runs it: parts of its graph, and launches; imports TensorFlow."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from daedal.compiler.frontends.tensorflow.graph import Ref
from daedal.compiler.frontends.tensorflow.host_call import HostCall
from daedal.compiler.frontends.tensorflow.inputs import Results, Signature
from daedal.compiler.frontends.tensorflow.parts import Builder
from daedal.compiler.frontends.tensorflow.schedule import Schedule
from daedal.compiler.frontends.tensorflow.tables import HeldContents, array_over
from daedal.driver.tables.table_sources import dtype_name
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.members import Call, Member
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import SavedModel
from daedal.runtime.saved.files import Writer

HandOver = Callable[[int, Sequence[Any]], list[Any]]
"""Does a launch, by its number, with the tensors that it takes; gives its results as tensors."""


class Program:
    """The graph of a model, with its look-ups handed over (``host_program.HostProgram``).

    Parameters
    ----------
    schedule
        Its parts and launches.
    builder
        Makes functions of them.
    inputs, outputs
        The tensors of the graph that the caller gives and wants.
    signature, results
        How inputs and outputs are nested.
    variables
        By the names of their handles.
    captured
        Other tensors that the graph has, by name.
    reasons
        Operations that are TensorFlow's, and why.
    """

    framework = "TensorFlow"
    eager: Mapping[str, str] = {}
    remarks: Mapping[str, str] = {}

    def __init__(
        self,
        schedule: Schedule,
        builder: Builder,
        inputs: Sequence[Ref],
        outputs: Sequence[Ref],
        signature: Signature,
        results: Results,
        variables: Mapping[str, Any],
        captured: Mapping[str, Any],
        reasons: Mapping[str, str],
    ) -> None:
        self._inputs, self._outputs, self._signature, self._results = inputs, outputs, signature, results
        self._variables, self._captured, self.reasons = variables, captured, reasons
        self._constants = {
            name: each for name, each in captured.items() if name not in variables and each.dtype != tf.resource
        }
        self._parts = [builder.part(part) for part in schedule.parts]
        self._gives = [part.gives for part in schedule.parts]
        self.launches = [
            [HostCall(each, builder, builder.spec(Ref(each.name)).shape) for each in launch]
            for launch in schedule.launches
        ]
        """The operations of each, which need nothing of each other."""
        self._contents = HeldContents()

    # ------------------------------------------------------------------ what an executable asks for

    @property
    def calls(self) -> Iterable[HostCall]:
        """The operations that are handed over."""
        return [call for launch in self.launches for call in launch]

    @property
    def fewest_launches(self) -> int:
        """See ``HostProgram``."""
        return len(self.launches)

    @property
    def code(self) -> str:
        """Parts and launches, a line each."""
        lines = []
        for number, gives in enumerate(self._gives):
            lines.append(f"TensorFlow: {', '.join(map(str, gives)) or 'nothing'}")
            if number < len(self.launches):
                lines.append(f"launch {', '.join(call.label for call in self.launches[number])}")
        return "\n".join(lines) + "\n"

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All inputs by position."""
        return self._signature.by_position(inputs, named)

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        """All that the machine cannot do is TensorFlow's."""
        return True

    def saved(self, writer: Writer) -> SavedModel:
        """There is no file of it."""
        raise UnsupportedOperation("an executable of a TensorFlow model must be made again: save the model, not this")

    def tables(self) -> Mapping[str, Any]:
        """The contents of the variables that are looked up, by name."""
        places = {
            call.table.target: call.table.ref.node for call in self.calls if call.table.ref.node in self._variables
        }
        return {name: self._variables[node].numpy() for name, node in places.items()}

    def request_of(self, call: Call, sources: Sequence[Any]) -> Request:
        """The request for an operation with these tensors."""
        assert isinstance(call, HostCall)
        return call.operation.labelled_request(self._arrays(call, sources))

    # ------------------------------------------------------------------ running

    def run(self, inputs: Sequence[Any], work: Work) -> Any:
        """The model's result, where operations run at once."""
        return self.run_with(inputs, lambda number, tensors: self.hand_over(number, tensors, work))

    def run_with(self, inputs: Sequence[Any], hand_over: HandOver) -> Any:
        """The model's result; tensors may be symbols of a graph that is being traced, if ``hand_over`` takes such."""
        values: dict[Ref, Any] = dict(zip(self._inputs, self._signature.tensors(inputs), strict=True))
        values |= {Ref(name): each for name, each in self._captured.items() if name not in self._variables}
        for number, (function, takes) in enumerate(self._parts):
            found = function(*(values[ref] for ref in takes))
            values |= zip(self._gives[number], found, strict=True)
            if number < len(self.launches):
                results = self._launch(number, values, hand_over)
                values |= {Ref(call.name): each for call, each in zip(self.launches[number], results, strict=True)}
        return self._results.nested([values[ref] for ref in self._outputs])

    def _launch(self, number: int, values: dict[Ref, Any], hand_over: HandOver) -> list[Any]:
        """The results of a launch, through which gradients go as through TensorFlow's own operations."""
        calls, given = self.launches[number], list[Any]()
        for call in calls:
            node = call.table.ref.node
            if node in self._variables and call.table.ref not in values:
                values[call.table.ref] = self._variables[node].read_value()
            refs = (call.table.ref, *call.operation.sources)
            given += [values[ref] for ref in refs if ref is not None]

        @tf.custom_gradient
        def launch(*tensors: Any) -> tuple[list[Any], Callable[..., list[Any]]]:
            def gradients(*wanted: Any) -> list[Any]:
                found = list[Any]()
                for call, sources, each in zip(calls, self.sources(number, tensors), wanted, strict=True):
                    found += _gradients(call, sources, each)
                return found

            return hand_over(number, tensors), gradients

        try:
            results = launch(*given)
        finally:
            for call in calls:
                if call.table.ref.node in self._variables:
                    values.pop(call.table.ref, None)
        return list(results) if isinstance(results, list | tuple) else [results]

    def sources(self, number: int, tensors: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The tensors that each operation of a launch takes: its table and its sources."""
        given, found = iter(tensors), list[tuple[Any, ...]]()
        for call in self.launches[number]:
            present = [True, *(ref is not None for ref in call.operation.sources)]
            found.append(tuple(next(given) if is_there else None for is_there in present))
        return found

    def hand_over(self, number: int, tensors: Sequence[Any], work: Work) -> list[Any]:
        """Do a launch with these tensors, as an executable does it."""
        results, members = dict[HostCall, Any](), list[Member]()
        for call, sources in zip(self.launches[number], self.sources(number, tensors), strict=True):
            try:
                node: Any = call
                members.append(Member(node, call, self.request_of(call, sources), sources))
            except UnsupportedOperation as error:
                results[call] = work.refuse(call, sources, error)
        if members:
            found: Mapping[Any, Any] = work.group(members, [])
            work.settle()
            results |= {member.call: found[member.node] for member in members}  # type: ignore[misc]
        return [_tensor(results[call]) for call in self.launches[number]]

    def _arrays(self, call: HostCall, sources: Sequence[Any]) -> tuple[Any, ...]:
        table, *others = sources
        is_of_model = call.table.op == "get_attr"
        first = self._contents.array(call.table.ref, table) if is_of_model else array_over(table)
        return (first, *(None if each is None else array_over(each) for each in others))


def _gradients(call: HostCall, sources: Sequence[Any], wanted: Any) -> list[Any]:
    """The gradients with regard to the tensors of an operation, as TensorFlow has them."""
    given = [each for each in sources if each is not None]
    floats = [each for each in given if each.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        result = call.in_tensorflow(*sources)
    found = iter(tape.gradient(result, floats, wanted))
    return [next(found) if each.dtype.is_floating else None for each in given]


def _tensor(value: Any) -> Any:
    """A result as TensorFlow has it."""
    if not isinstance(value, np.ndarray):
        return value
    dtype = dtype_name(value)
    plain = np.asarray(value).view(np.ndarray)
    return tf.bitcast(tf.constant(plain), tf.bfloat16) if dtype == "bfloat16" else tf.convert_to_tensor(plain)
