"""A graph cut at its launches: what TensorFlow does before the first, between them, and after the last."""

from collections.abc import Mapping
from dataclasses import dataclass

from daedal.compiler.frontends.tensorflow.graph import Graph, Ref
from daedal.compiler.frontends.tensorflow.ops.operation import Operation
from daedal.compiler.frontends.tensorflow.registry import conditions, reached


@dataclass(frozen=True)
class Part:
    """Nodes that TensorFlow runs as one function.

    Attributes
    ----------
    nodes
        Their names, each behind what it takes.
    effects
        Those that have to run although nobody asks for what they give.
    takes, gives
        Tensors of inputs, of launches and of earlier parts; and those that launches, later parts or the caller need.
    """

    nodes: tuple[str, ...]
    effects: tuple[str, ...]
    takes: tuple[Ref, ...]
    gives: tuple[Ref, ...]


@dataclass(frozen=True)
class Schedule:
    """Parts and launches in turn: one part more than there are launches, each of operations that run together."""

    parts: tuple[Part, ...]
    launches: tuple[tuple[Operation, ...], ...]


def schedule(graph: Graph, operations: Mapping[str, Operation]) -> Schedule:
    """The graph in as few launches as it can have: an operation runs in the first whose sources are there.

    A node of TensorFlow's is in one part only, whatever needs it: what it draws, or changes, it does once. It is in the
    last one that it can be in, so that TensorFlow sees, and fuses, as much of the graph at once as there is.
    """
    order = [name for name in graph.nodes if name in (needed := reached(graph, operations))]
    depth = _depths(graph, operations, needed)
    count = max((depth[name] for name in needed if name in operations), default=0)
    launches = [tuple(operations[n] for n in order if n in operations and depth[n] == k + 1) for k in range(count)]
    depth |= _latest(graph, operations, depth, count)
    inner = [name for name in order if name not in operations and graph.nodes[name].op != "Placeholder"]
    ends = set(graph.effects)
    wanted = [_crossing(graph, operations, depth, needed, k) for k in range(count + 1)]
    parts = []
    for k in range(count + 1):
        nodes = tuple(name for name in inner if depth[name] == k)
        own = set(nodes)
        takes = dict.fromkeys(r for name in nodes for r in graph.nodes[name].inputs if r.node not in own)
        is_waited_for = {name for each in needed if depth[each] > k for name in graph.nodes[each].controls}
        effects = tuple(name for name in nodes if name in ends or name in is_waited_for)
        parts.append(Part(nodes, effects, tuple(takes), tuple(r for r in wanted[k] if r.node in own)))
    return Schedule(tuple(parts), tuple(launches))


def _depths(graph: Graph, operations: Mapping[str, Operation], needed: frozenset[str]) -> dict[str, int]:
    """How many launches each node comes after; of an operation, its own counts."""
    depth = dict[str, int]()
    for root in needed:
        open_ = [root]
        while open_:
            name = open_[-1]
            if name in depth:
                open_.pop()
                continue
            before = _before(graph, operations, name)
            missing = [each for each in before if each not in depth]
            if missing:
                open_ += missing
            else:
                depth[name] = max((depth[each] for each in before), default=0) + (name in operations)
                open_.pop()
    return depth


def _before(graph: Graph, operations: Mapping[str, Operation], name: str) -> list[str]:
    """What has to be there before a node."""
    node, operation = graph.nodes[name], operations.get(name)
    if operation is None:
        return [ref.node for ref in node.inputs] + list(node.controls)
    sources = [ref.node for ref in (operation.table.ref, *operation.sources) if ref is not None]
    return sources + conditions(graph, operation)


def _latest(graph: Graph, operations: Mapping[str, Operation], depth: dict[str, int], count: int) -> dict[str, int]:
    """The last part that each node of TensorFlow's can be in; ``depth`` has all behind what they need."""
    latest = {name: depth[name] if name in graph.effects else count for name in depth if name not in operations}
    for name in reversed(depth):
        part = depth[name] - 1 if name in operations else latest[name]
        for before in _before(graph, operations, name):
            if before in latest:
                latest[before] = min(latest[before], part)
    return latest


def _crossing(
    graph: Graph, operations: Mapping[str, Operation], depth: Mapping[str, int], needed: frozenset[str], k: int
) -> list[Ref]:
    """The tensors that something behind part ``k`` takes."""
    found = dict.fromkeys(graph.outputs)
    for name in needed:
        operation = operations.get(name)
        if operation is not None:
            found |= dict.fromkeys(ref for ref in (operation.table.ref, *operation.sources) if ref is not None)
        elif depth[name] > k:
            found |= dict.fromkeys(graph.nodes[name].inputs)
    return list(found)
