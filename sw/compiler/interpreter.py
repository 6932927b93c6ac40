"""Runs a module's graph: embedding operations are handed over, all else is PyTorch's."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from daedal.compiler.bag_lists import Member
from daedal.compiler.frontends.calls import BagCall, Call
from daedal.compiler.frontends.groups import Group, Join
from daedal.compiler.frontends.inputs import Request, bag_request, lookup_request


@dataclass(frozen=True)
class Work:
    """Who does what an interpreter hands over: single operations, and groups of them, whose results it gives by
    node. What they give may be filled only later: ``settle`` waits for that.
    """

    call: Callable[[Call, Request], Tensor]
    group: Callable[[Sequence[Member], Sequence[Join]], Mapping[fx.Node, Tensor]]
    settle: Callable[[], None]


class Interpreter(fx.Interpreter):
    """Runs a graph once. A group runs when its first member is reached.

    Parameters
    ----------
    graph
        The graph.
    calls, groups
        Its nodes that are embedding operations, and those that run together.
    work
        Who does them.
    """

    def __init__(self, graph: fx.GraphModule, calls: Mapping[fx.Node, Call], groups: Sequence[Group], work: Work):
        super().__init__(graph)
        self.extra_traceback = False
        self._calls, self._work = calls, work
        self._groups = {group.members[0]: group for group in groups}
        self._ready: dict[fx.Node, Tensor] = {}
        self._given = False
        """An embedding operation gave something since results were last waited for."""

    def run_node(self, n: fx.Node) -> Any:
        """The value of a node."""
        if n in self._groups:
            self._run_group(self._groups[n])
        call = self._calls.get(n)
        if n in self._ready:
            result = self._ready.pop(n)
        elif call is not None:
            result = self._work.call(call, self._request(call))
            self._given = True
        else:
            if n.op.startswith("call_") and n.target is not operator.getitem:
                self._settle_inputs()
            return super().run_node(n)
        return (result, None, None, None) if isinstance(call, BagCall) and call.gives_tuple else result

    def _settle_inputs(self) -> None:
        """Before PyTorch works on what an embedding operation gave, or on what may share memory with it."""
        if self._given:
            self._work.settle()
            self._given = False

    def _run_group(self, group: Group) -> None:
        members = []
        for node in group.members:
            call = self._calls[node]
            assert isinstance(call, BagCall)
            members.append(Member(node, call, self._request(call)))
        self._ready |= self._work.group(members, group.joins)
        self._given = True

    def _request(self, call: Call) -> Request:
        sources = [getattr(call, name, None) for name in ("table", "indices", "offsets", "weights")]
        if any(isinstance(n, fx.Node) and (n in self._calls or n.target is operator.getitem) for n in sources):
            self._settle_inputs()
        table, indices = self._value(call.table), self._value(call.indices)
        if not isinstance(call, BagCall):
            return lookup_request(call, table, indices)
        return bag_request(call, table, indices, self._value(call.offsets), self._value(call.weights))

    def _value(self, argument: Any) -> Any:
        return self.env[argument] if isinstance(argument, fx.Node) else argument
