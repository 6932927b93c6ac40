"""A module's graph with its embedding operations replaced by calls of whoever does them; the rest is PyTorch's code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, getitem
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.requests.checks import LeftToFramework
from daedal.compiler.frontends.torch.device_suitability import are_as_before, why_not, why_not_here
from daedal.compiler.frontends.torch.effects import effects_of
from daedal.compiler.frontends.torch.fusion import Group
from daedal.compiler.frontends.torch.host.code_helpers import named
from daedal.compiler.frontends.torch.host.dry_run import rehearsal
from daedal.compiler.frontends.torch.host.host_subgraphs import compile_rest
from daedal.compiler.frontends.torch.host.process_state import Modes
from daedal.compiler.frontends.torch.operators import calls
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.training.suitability import fetch_rows, is_trained, record, why_not_now
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.fast_path import FastPath
from daedal.runtime.batch.members import Join, Member
from daedal.runtime.batch.same_sizes import SameSizes
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request
from daedal.runtime.single_path import SinglePath
from daedal.system.system import System

Function = Callable[..., Any]

_aten = torch.ops.aten

_DROPPED = (
    _aten.index.Tensor,
    _aten.item.default,
    _aten.select.int,
    _aten.mul.Tensor,
    _aten.index_select.default,
    _aten.view.default,
    _aten.reshape.default,
    _aten.unsqueeze.default,
    _aten.expand.default,
    _aten.expand_as.default,
)
"""What is dropped if only an operation that is a launch now has asked for it; none of these changes anything."""


HELD = "daedal_held"
"""Where a node has the path of the tensor of the module that it is."""


class Launched(NamedTuple):
    """What a launch does: one operation, or a group."""

    operations: tuple[Operation, ...]
    group: Group | None = None


class Schedule:
    """The graph as code. A group runs where its first member is.

    Parameters
    ----------
    graph
        The graph; it is changed, and its code is generated anew.
    operations, groups
        What runs on the device, by node, and what of it runs together.
    rest
        The Dynamo backend for everything else; ``eager`` leaves it as it is.
    device
        Where tables may be trained.
    """

    _work: Work
    """Who does the operations of the run that goes on."""
    _are_known = False
    """Whether its inputs are plain tensors of kinds that need no look."""

    def __init__(
        self,
        graph: fx.GraphModule,
        operations: Mapping[fx.Node, Operation],
        groups: Sequence[Group],
        rest: str = "eager",
        device: Device | System | None = None,
    ) -> None:
        self._device = device if isinstance(device, Device) else None
        self._module, self._graph = graph, graph.graph
        self._modes = Modes(self._graph)
        self._launches: dict[fx.Node, Launched] = {}
        self._own: set[fx.Node] = set()
        self._replaced: dict[fx.Node, fx.Node] = {}
        self._absorbed = {node for operation in operations.values() for node in operation.absorbed}
        grouped = {node for group in groups for node in group.members}
        for group in groups:
            self._replace_group(group, operations)
        for node, operation in operations.items():
            if node not in grouped:
                self._replace_one(node, operation)
        self._insert_settling()
        self.eager: dict[str, str] = {}
        """What backend ``rest`` could not compile: the first node of each stretch, and the error. All stays as it
        is if the graph enters a mode, such as autocast: that counts from one stretch to the next.
        """
        if rest != "eager" and self._modes.any:
            self.eager = {next(iter(self._graph.nodes)).name: "it enters a mode, which counts from stretch to stretch"}
        elif rest != "eager":
            self.eager = compile_rest(rest, graph, lambda node: node in self._own)
        self._graph.lint()
        self._hold_attributes()
        graph.recompile()

    @property
    def code(self) -> str:
        """The code that runs."""
        return self._module.code

    @property
    def graph(self) -> fx.Graph:
        """The graph that runs."""
        return self._graph

    @property
    def launches(self) -> Mapping[fx.Node, Launched]:
        """The nodes that stand for embedding operations, one for a whole group."""
        return self._launches

    def is_own(self, node: fx.Node) -> bool:
        """Whether a node is none of the graph that was given: a launch, a part of its results, or a wait for it."""
        return node in self._own

    def run(self, inputs: Sequence[Any], work: Work, *, are_known: bool = False) -> Any:
        """The graph's result for these inputs; ``are_known``: plain tensors on the CPU, of the kinds that all others
        of which this was said have been.
        """
        before = self.__dict__.get("_work", work), self._are_known
        self._work, self._are_known = work, are_known
        try:
            if work.rehearses:
                with rehearsal(self._tensors(inputs)), self._modes.restored():
                    return self._module.forward(*inputs)
            state = self._modes.state()
            try:
                return self._module.forward(*inputs)
            except BaseException:
                self._modes.restore(state)
                raise
        finally:
            self._work, self._are_known = before

    def _tensors(self, inputs: Sequence[Any]) -> Iterator[Any]:
        """What a run may find in memory: its inputs, and the module's own and those of the modules that it calls."""
        yield from pytree.tree_leaves(inputs)
        yield from self._module.parameters()
        yield from self._module.buffers()
        for node in self._graph.find_nodes(op="get_attr"):
            yield attrgetter(str(node.target))(self._module)

    # ------------------------------------------------------------------ rewriting

    def _replace_one(self, node: fx.Node, call: Operation) -> None:
        ready: list[SinglePath] = []

        def run(*sources: Any) -> Tensor:
            if ready and are_as_before(sources, has_levels=self._modes.has_levels):
                result = self._work.once_more(ready[0], sources)
                if result is not None:
                    return result
            ready.clear()
            try:
                request = self._request(call, sources)
                result = record(call, request, sources, self._work.call(call, request))
            except UnsupportedOperation as error:
                return self._refuse(call, sources, error)
            if call.is_direct and (prepared := self._work.prepare_one(call, request, sources)) is not None:
                ready.append(prepared)
            return result

        with self._graph.inserting_before(node):
            new = self._launch(node.name, run, call.sources, Launched((call,)))
        self._replace(node, call, new)

    def _replace_group(self, group: Group, operations: Mapping[fx.Node, Operation]) -> None:
        bags = [operations[node] for node in group.members]

        are_inputs = all(map(_is_given, chain.from_iterable(call.sources for call in bags)))
        ready: list[FastPath | SameSizes] = []

        def run(*sources: tuple[Any, ...]) -> list[Tensor | None]:
            results, are_known = None, are_inputs and self._are_known
            if ready and are_as_before(() if are_known else chain(*sources), has_levels=self._modes.has_levels):
                results = self._work.again(ready[0], sources, are_known)
            if results is None:
                ready.clear()
                results = general(sources)
            parts = [*map(results.get, group.members)]  # None: only part of a concatenation
            return parts + [self._joined(join, results) for join in group.joins]

        def general(sources: Sequence[tuple[Any, ...]]) -> Mapping[fx.Node, Tensor]:
            results, members = dict[fx.Node, Tensor](), list[Member]()
            for node, call, each in zip(group.members, bags, sources, strict=True):
                try:
                    members.append(Member(node, call, self._request(call, each), each))
                except UnsupportedOperation as error:
                    results[node] = self._refuse(call, each, error)
            trained = [member for member in members if is_trained(member.sources)]
            if members:
                results |= self._work.group(members, () if trained else group.joins)
            for one in trained:
                results[one.node] = record(operations[one.node], one.request, one.sources, results[one.node])
            if len(members) == len(bags) and (prepared := self._work.prepare(members, group.joins)) is not None:
                ready.append(prepared)
            return results

        with self._graph.inserting_before(group.members[0]):
            launched = Launched(tuple(bags), group)
            new = self._launch(group.members[0].name, run, tuple(call.sources for call in bags), launched)
            count = len(bags) + len(group.joins)
            parts = [self._graph.call_function(getitem, (new, number)) for number in range(count)]
            self._own.update(parts)
        for join, part in zip(group.joins, parts[len(bags) :], strict=True):
            part.meta = dict(join.node.meta)
            self._use(part, join.node)
            self._graph.erase_node(join.node)
        for node, call, part in zip(group.members, bags, parts, strict=False):
            self._replace(node, call, part)
        for part in [part for part in parts if not part.users]:  # what is only part of a concatenation
            self._graph.erase_node(part)

    def _joined(self, join: Join, results: Mapping[fx.Node, Tensor]) -> Tensor:
        """The machine writes a concatenation in place, unless rows are not side by side in it: then it is PyTorch's."""
        if join.node in results:
            return results[join.node]
        self._work.settle()
        return torch.cat([results[part] for part in join.parts], dim=join.dim)

    def _launch(self, name: str, run: Function, sources: tuple[Any, ...], launched: Launched) -> fx.Node:
        present = fx.map_arg(sources, lambda source: self._replaced.get(source, source))
        node = self._graph.call_function(named(f"launch_{name}", run), present)
        self._launches[node] = launched
        self._own.add(node)
        return node

    def _replace(self, node: fx.Node, call: Operation, value: fx.Node) -> None:
        """Put a result into its place; of a tuple only the pooled rows are used (see ``match``)."""
        if call.gives_tuple:
            for user in list(node.users):
                if user.target is getitem and user.args[1] == 0:
                    self._use(value, user)
                if not user.users and user.op != "output":
                    self._graph.erase_node(user)
            if node.users:
                with self._graph.inserting_before(node):
                    value = self._graph.call_function(named("pooled", _pooled), (value,))
                    self._own.add(value)
        value.meta = dict(node.meta)
        self._use(value, node)
        inputs = node.all_input_nodes
        self._graph.erase_node(node)
        for source in inputs:
            self._erase_unused(source)

    def _use(self, value: fx.Node, node: fx.Node) -> None:
        """Use ``value`` instead of ``node``, also in launches that are still to come."""
        node.replace_all_uses_with(value)
        self._replaced[node] = value

    def _erase_unused(self, node: fx.Node) -> None:
        """Drop what only an embedding operation asked for and no launch does, such as the norm for ``max_norm``, or
        rows times weights that a sum by destination does itself.
        """
        if node._erased or node.users or node.op not in ("call_function", "call_method", "get_attr"):
            return
        if node.op != "get_attr" and not calls(node, *_DROPPED) and node not in self._absorbed:
            return
        if effects_of(node).any_change:
            return
        inputs = node.all_input_nodes
        self._graph.erase_node(node)
        for source in inputs:
            self._erase_unused(source)

    def _hold_attributes(self) -> None:
        """Have the module's tensors at hand: to find one by way of its parts takes a microsecond each time."""
        for number, node in enumerate(self._graph.find_nodes(op="get_attr")):
            value = attrgetter(str(node.target))(self._module)
            if not isinstance(value, Tensor):
                continue
            self._module.__dict__[f"daedal_held_{number}"] = value
            with self._graph.inserting_before(node):
                held = self._graph.create_node("get_attr", f"daedal_held_{number}", name=f"{node.name}_")
            held.meta = {**node.meta, HELD: str(node.target)}
            node.replace_all_uses_with(held)
            self._graph.erase_node(node)

    def _insert_settling(self) -> None:
        """Wait before PyTorch, or a launch, works on what a launch gave, or on what may share memory with it."""
        given, results = False, set(self._launches)
        for node in list(self._graph.nodes):
            if node.target is getitem and node.args[0] in results:
                results.add(node)
                continue
            if node in self._launches:
                waits = given and not results.isdisjoint(node.all_input_nodes)
            else:
                waits = given and node.op.startswith("call_") and node.target is not getitem
            if waits:
                with self._graph.inserting_before(node):
                    self._own.add(self._graph.call_function(named("settle", self._settle), ()))
                given = False
            given |= node in self._launches

    def _refuse(self, call: Operation, sources: Sequence[Any], error: UnsupportedOperation) -> Tensor:
        """What becomes of an operation that the machine does not do: on the rows that the device may have."""
        fetch_rows(sources)
        return self._work.refuse(call, sources, error)

    def _settle(self) -> None:
        self._work.settle()

    def _request(self, call: Operation, sources: Sequence[Any]) -> Request:
        """The request for a call; UnsupportedOperation if the machine cannot do it, or if PyTorch has to."""
        reason = why_not_here() or why_not(sources, has_levels=self._modes.has_levels)
        if reason is not None:
            raise LeftToFramework(f"{call.label}: {reason}")
        if (reason := why_not_now(call, sources, self._device)) is not None:
            raise UnsupportedOperation(f"{call.label}: {reason}")
        return call.labelled_request(*sources)


def _is_given(source: object) -> bool:
    """Whether a value is an input of the graph, or a tensor of the module's, as it is; or a constant."""
    return not isinstance(source, fx.Node) or source.op in ("placeholder", "get_attr")


def _pooled(rows: Tensor) -> tuple[Tensor, None, None, None]:
    """What ``aten._embedding_bag`` gives, as far as anybody uses it."""
    return rows, None, None, None
