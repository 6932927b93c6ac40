"""Functions that a graph calls, put in the places of the calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref

OutputNames = Callable[[str], list[str] | None]
"""The names of an operator's results, in their order: each is one tensor, or a single one is a list of them. None if
that is not known.
"""

CALLS = ("PartitionedCall", "StatefulPartitionedCall")

_FLOAT = 1
"""TensorFlow's number of float32."""

_DEEPEST = 64
"""Functions in functions, more of which are calls of itself."""


class Inliner:
    """Puts bodies in the places of calls.

    Parameters
    ----------
    functions
        The messages of a graph's library (``FunctionDef``).
    output_names
        Of operators that functions call.
    """

    def __init__(self, functions: Iterable[Any], output_names: OutputNames) -> None:
        self._functions = {each.signature.name: each for each in functions}
        self._output_names = output_names
        self._results: dict[Ref, Ref] = {}
        """What a result of a call is now."""
        self._ends: dict[str, tuple[str, ...]] = {}
        """The nodes that have run when a call has."""

    def graph(self, nodes: Iterable[Any], outputs: Iterable[Ref], effects: Iterable[str]) -> Graph:
        """The graph of these messages (``NodeDef``), without calls as far as they can be done without."""
        flat = list(self._flat([Node.read(each) for each in nodes], 0))
        found = [self._renamed(node) for node in flat]
        ends = [name for effect in effects for name in self._after(effect)]
        return Graph(found, [self._now(ref) for ref in outputs], ends)

    def _flat(self, nodes: Iterable[Node], depth: int) -> Iterator[Node]:
        for node in nodes:
            body = self._body(node) if node.op in CALLS and depth < _DEEPEST else None
            if body is None:
                yield node
            else:
                yield from self._flat(body, depth + 1)

    def _body(self, call: Node) -> list[Node] | None:
        """The nodes of a function in the place of a call of it; None if it has to stay a call."""
        function = self._functions.get(call.attribute("f").func.name)
        if function is None or any(function.attr[each].b for each in ("_noinline", "_XlaMustCompile")):
            return None
        given = {arg.name: ref for arg, ref in zip(function.signature.input_arg, call.inputs, strict=False)}
        own = {each.name: each for each in function.node_def}

        def ref_of(text: str) -> Ref | None:
            if text in given:
                return given[text]
            name, output, index = text.split(":")
            return _result(f"{call.name}/{name}", output, int(index), self._output_names(own[name].op))

        body = []
        for each in function.node_def:
            refs = [ref_of(text) for text in each.input if not text.startswith("^")]
            if any(ref is None for ref in refs):
                return None
            controls = [f"{call.name}/{text[1:]}" for text in each.input if text.startswith("^")]
            inputs = tuple(ref for ref in refs if ref is not None)
            body.append(Node(f"{call.name}/{each.name}", each.op, inputs, (*controls, *call.controls), each))
        results = [ref_of(function.ret[arg.name]) for arg in function.signature.output_arg]
        if any(ref is None for ref in results):
            return None
        self._results |= {Ref(call.name, n): ref for n, ref in enumerate(results) if ref is not None}
        ends = [f"{call.name}/{name}" for name in function.control_ret.values()]
        self._ends[call.name] = tuple(dict.fromkeys([*ends, *(ref.node for ref in results if ref is not None)]))
        return body

    def _renamed(self, node: Node) -> Node:
        inputs = tuple(self._now(ref) for ref in node.inputs)
        controls = tuple(dict.fromkeys(name for each in node.controls for name in self._after(each)))
        return Node(node.name, node.op, inputs, controls, node.message)

    def _now(self, ref: Ref) -> Ref:
        while ref in self._results:
            ref = self._results[ref]
        return ref

    def _after(self, name: str) -> list[str]:
        if name not in self._ends:
            return [name]
        return [each for end in self._ends[name] for each in self._after(end)]


def _result(name: str, output: str, index: int, names: list[str] | None) -> Ref | None:
    """The result that a function calls ``node:output:index``; None if that cannot be told."""
    if names is None or (len(names) > 1 and (index or output not in names)):
        return None
    return Ref(name, index if len(names) == 1 else names.index(output))


def lookups_inside(functions: Iterable[Any]) -> Mapping[str, frozenset[str]]:
    """The operators that each function calls, by its name, also in those that it calls; gathers only of rows."""
    own = {each.signature.name: list(each.node_def) for each in functions}
    found: dict[str, frozenset[str]] = {}

    def inside(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = frozenset()  # for what calls itself
            nodes = own.get(name, [])
            ops = {each.op for each in nodes if each.op != "GatherV2" or each.attr["Tparams"].type == _FLOAT}
            called = [function for each in nodes for value in each.attr.values() for function in functions_of(value)]
            found[name] = frozenset(ops).union(*map(inside, called))
        return found[name]

    return {name: inside(name) for name in own}


def functions_of(attribute: Any) -> list[str]:
    """The functions that an attribute names."""
    single = [attribute.func.name] if attribute.func.name else []
    return single + [each.name for each in attribute.list.func]
