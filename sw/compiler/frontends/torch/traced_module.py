"""A module as graphs, traced as its calls need it, with places for the operations of a device."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.requests.checks import ROW_TYPES, LeftToFramework
from daedal.compiler.frontends.torch.device_suitability import is_transformed, why_no_type, why_not_here
from daedal.compiler.frontends.torch.fusion import fewest_launches, find_groups
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.partition import Schedule
from daedal.compiler.frontends.torch.placement import Placement
from daedal.compiler.frontends.torch.registry import find_operations
from daedal.compiler.frontends.torch.saving import saved_model
from daedal.compiler.frontends.torch.saving_tables import Names, TracedParts, tables_of
from daedal.compiler.frontends.torch.trace.guards import take_guards
from daedal.compiler.frontends.torch.trace.input_kinds import OtherInputs
from daedal.compiler.frontends.torch.trace.keywords import INNER, Signature
from daedal.compiler.frontends.torch.trace.module_snapshot import Followed
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.frontends.torch.trace.structure import Structure
from daedal.compiler.frontends.torch.training.suitability import is_training
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.members import Call as AnyCall
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import SavedModel
from daedal.runtime.saved.files import Writer
from daedal.system.system import System

_NOTHING = nullcontext()

KEPT_TRACES = 8
"""Traces of a module, for inputs of other kinds, that are kept."""


class TracedGraph:
    """A graph of PyTorch's, with its embedding operations handed over (``host_program.HostProgram``).

    Parameters
    ----------
    graph
        The graph, which stays as it is.
    trains
        Whether PyTorch may be asked for gradients.
    rest
        The Dynamo backend for all that PyTorch runs.
    types
        What the machine computes with, as PyTorch calls it.
    placement
        What the user wants on the device; None for all that it can do.
    exact
        Whether sums have PyTorch's order of additions.
    device
        Where it runs, and tables may be trained.

    Raises UnsupportedOperation if there is nothing to hand over.
    """

    framework = "PyTorch"

    def __init__(
        self,
        graph: fx.GraphModule,
        *,
        trains: bool = False,
        rest: str = "eager",
        types: Collection[str] = tuple(ROW_TYPES),
        placement: Placement | None = None,
        exact: bool = True,
        device: Device | System | None = None,
    ) -> None:
        self._graph, self._structure = _copy(graph)
        calls, self.reasons = find_operations(
            self._graph.graph, trains=trains, types=types, placement=placement, exact=exact, device=device
        )
        if not calls:
            why = [f"{name}: {reason}" for name, reason in self.reasons.items()]
            raise UnsupportedOperation("; ".join(why) or _nothing(self._graph))
        self._calls: Mapping[fx.Node, Operation] = calls
        self._guards = take_guards(self._graph)
        self.fewest_launches = fewest_launches(self._graph.graph, calls)
        """See ``HostProgram``."""
        self._schedule = Schedule(self._graph, calls, find_groups(self._graph.graph, calls), rest, device)

    @property
    def calls(self) -> Iterable[Operation]:
        """The operations that are handed over."""
        return self._calls.values()

    @property
    def remarks(self) -> Mapping[str, str]:
        """What is to be said of some of them."""
        return {call.name: call.remark for call in self.calls if call.remark}

    @property
    def eager(self) -> Mapping[str, str]:
        """What backend ``rest`` could not compile, and why."""
        return self._schedule.eager

    @property
    def code(self) -> str:
        """The graph's code: launches, and what PyTorch runs between them."""
        return self._schedule.code

    def run(self, inputs: Sequence[Any], work: Work) -> Any:
        """The graph's result for these inputs."""
        return self._schedule.run(inputs, work)

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All inputs by position: a graph has no others."""
        if named:
            raise UnsupportedOperation(f"inputs of a graph must be given by position, not as {', '.join(named)}")
        return inputs

    def quick_leaves(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The leaves of inputs that are nested as those of the trace; None for others, or what takes a closer look."""
        return self._structure.quick_leaves(inputs)

    def knows(self, leaves: list[Any]) -> bool:
        """Whether these leaves are plain and of the kinds that it was traced with."""
        return self._guards is not None and self._guards.knows(leaves)

    def run_checked(self, inputs: Sequence[Any], known: list[Any] | None, work: Work) -> Any:
        """The module's result for these inputs; OtherInputs if they are not of the kind that it was traced with.
        ``known`` are their leaves if the trace :meth:`knows` them.
        """
        leaves = self._structure.leaves(inputs) if known is None else known
        guards = self._guards

        def run() -> Any:
            if guards is not None and known is None:
                guards.forward(*leaves)
            elif guards is not None:
                guards.check_sizes(leaves)
            return self._schedule.run(leaves, work, are_known=known is not None)

        try:
            return self._structure.result(work.attempt(run))
        except AssertionError as error:
            reason = str(error).strip().splitlines()
            raise OtherInputs(
                f"the inputs must be as the program was exported for: {reason[0] if reason else error!r}; "
                "export it with dynamic shapes"
            ) from error

    @property
    def parts(self) -> TracedParts:
        """What a file is made from."""
        return TracedParts(self._schedule, self._structure, self._guards)

    def saved(self, writer: Writer) -> SavedModel:
        """What a file says of it, without programs."""
        return saved_model([self.parts], Names(), writer)

    def tables(self) -> Mapping[str, Any]:
        """A graph is handed the module's tensors by PyTorch."""
        raise UnsupportedOperation("tables of torch.compile must be asked of the module: use module.state_dict()")

    def can_leave(self, call: AnyCall, error: UnsupportedOperation) -> bool:
        """All that the machine cannot do is PyTorch's."""
        return True

    def request_of(self, call: AnyCall, sources: Sequence[Any]) -> Request:
        """The request for an operation with these sources."""
        return _own(call).labelled_request(*sources)


class _Trace(NamedTuple):
    """A trace of a module, and the module as it was then; None for a program that was exported."""

    graph: TracedGraph
    followed: Followed | None

    @property
    def is_current(self) -> bool:
        """Whether the module is still as it was."""
        return self.followed is None or self.followed.is_current()


class TracedModule:
    """A module, or a program that was exported, that is traced again for inputs of other kinds and when it changes.

    It is a ``host_program.HostProgram``, of the trace that was used last.

    Parameters
    ----------
    graph
        Its first trace.
    module
        The module; None for a program that was exported, of which only the contents of tensors change.
    signature
        How inputs by name go to it.
    placement, types, exact, device
        As of ``TracedGraph``.
    """

    framework = "PyTorch"

    def __init__(
        self,
        graph: fx.GraphModule,
        module: nn.Module | None,
        signature: Signature,
        placement: Placement | None = None,
        types: Collection[str] = tuple(ROW_TYPES),
        exact: bool = True,
        device: Device | System | None = None,
    ) -> None:
        self._module, self._signature, self._placement, self._types = module, signature, placement, types
        self._exact, self._device = exact, device
        self._traces: list[_Trace] = []
        self._add(graph)

    def _add(self, graph: fx.GraphModule) -> None:
        traced = TracedGraph(
            graph, types=self._types, placement=self._placement, exact=self._exact, device=self._device
        )
        self._use(_Trace(traced, None if self._module is None else Followed(self._module)))

    def _use(self, trace: _Trace) -> None:
        """Work with this trace, which is now the latest of those that are kept."""
        self._traces = [trace, *(other for other in self._traces if other is not trace)][:KEPT_TRACES]

    @property
    def _latest(self) -> TracedGraph:
        return self._traces[0].graph

    @property
    def calls(self) -> Iterable[Operation]:
        """The operations that are handed over."""
        return self._latest.calls

    @property
    def fewest_launches(self) -> int:
        """See ``HostProgram``."""
        return self._latest.fewest_launches

    @property
    def reasons(self) -> Mapping[str, str]:
        """Operations that are not, and why."""
        return self._latest.reasons

    @property
    def remarks(self) -> Mapping[str, str]:
        """What is to be said of some that are."""
        return self._latest.remarks

    @property
    def eager(self) -> Mapping[str, str]:
        """What was not compiled, and why."""
        return self._latest.eager

    @property
    def code(self) -> str:
        """The code that runs."""
        return self._latest.code

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All inputs by position."""
        return self._signature.by_position(inputs, named)

    def run(self, inputs: Sequence[Any], work: Work) -> Any:
        """The module's result for these inputs. OtherInputs if they do not fit a program that was exported."""
        latest = self._traces[0].graph if self._traces else None
        leaves = None if latest is None else latest.quick_leaves(inputs)
        known = leaves if latest is not None and leaves is not None and latest.knows(leaves) else None
        reason = why_not_here()
        if reason is None and known is None:
            reason = why_no_type(pytree.tree_leaves(inputs) if leaves is None else leaves)
        if reason is not None and self._module is not None:
            work.leave_all(self.calls, reason)
            # Without gradients, as below; torch.func would take that for gradients of 0.
            with nullcontext() if is_transformed() else torch.no_grad():
                return self._module(*inputs)
        trains = is_training(self._module, self._device)
        with torch.no_grad() if torch.is_grad_enabled() and not trains else _NOTHING:
            for number, traced in enumerate(tuple(self._traces)):
                if not traced.is_current:
                    continue
                if number:
                    self._use(traced)
                try:
                    return traced.graph.run_checked(inputs, known if traced.graph is latest else None, work)
                except OtherInputs:
                    if self._module is None:
                        raise
            assert self._module is not None
            graph = trace(self._module, inputs)
            self._traces = [each for each in self._traces if each.followed is None or each.followed.has_its_parts()]
            self._add(graph)
            return self._latest.run_checked(inputs, None, work)

    def saved(self, writer: Writer) -> SavedModel:
        """What a file says of its traces, as far as they are of the module as it is, without programs."""
        return saved_model(self._current(), self._names, writer)

    def tables(self) -> Mapping[str, Any]:
        """The module's tensors that a file of it is to be given, by name."""
        return tables_of(self._current(), self._names)

    def _current(self) -> list[TracedParts]:
        """The traces of the module as it is."""
        found = [each.graph.parts for each in self._traces if each.is_current]
        if not found:
            raise UnsupportedOperation("a file must be of the module as it is, which has changed: call it first")
        return found

    @property
    def _names(self) -> Names:
        order = [] if self._module is None else [name.removeprefix(f"{INNER}.") for name in self._module.state_dict()]
        return Names(*self._signature.names, order=order)

    def can_leave(self, call: AnyCall, error: UnsupportedOperation) -> bool:
        """Embeddings that the machine cannot do give no result, unless PyTorch has to do them; others are PyTorch's."""
        return isinstance(error, LeftToFramework) or _own(call).is_optional

    def request_of(self, call: AnyCall, sources: Sequence[Any]) -> Request:
        """The request for an operation with these sources."""
        return _own(call).labelled_request(*sources)


def _own(call: AnyCall) -> Operation:
    assert isinstance(call, Operation)
    return call


def _copy(graph: fx.GraphModule) -> tuple[fx.GraphModule, Structure]:
    """The same graph again, over the same parameters: what is given stays as it is. Its code works on leaves."""
    copied, nodes = fx.Graph(), dict[fx.Node, fx.Node]()
    copied.set_codegen(graph.graph._codegen)
    copied.output(copied.graph_copy(graph.graph, nodes))
    structure = Structure(copied)
    return fx.GraphModule(graph, copied), structure


def _nothing(graph: fx.GraphModule) -> str:
    nodes = [n.name for n in graph.graph.nodes if n.op.startswith("call_") and "guards" not in str(n.target)]
    shown = ", ".join(nodes[:5]) or "no operations at all"
    return f"the module must have an embedding operation to offload, but has only: {shown}"
