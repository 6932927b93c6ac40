"""The operations of a graph that a device does, and why others stay in TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from daedal.compiler.frontends.tensorflow.graph import Graph
from daedal.compiler.frontends.tensorflow.inlining import functions_of
from daedal.compiler.frontends.tensorflow.ops.dense import DenseReduction
from daedal.compiler.frontends.tensorflow.ops.extremes import SegmentExtremes, UnsortedSegmentExtremes
from daedal.compiler.frontends.tensorflow.ops.lookups import Gather
from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Tables
from daedal.compiler.frontends.tensorflow.ops.products import SparseProduct
from daedal.compiler.frontends.tensorflow.ops.reductions import Segments, SparseSegments, UnsortedSegments

OPERATIONS: tuple[type[Operation], ...] = (
    SparseSegments, Segments, UnsortedSegments, SegmentExtremes, UnsortedSegmentExtremes, DenseReduction, SparseProduct,
    Gather,
)  # fmt: skip
"""Those that take gathers with them come before these."""

STAY = {
    **{f"Segment{kind}V2": "a segment's product, minimum or maximum" for kind in ("Prod", "Min", "Max")},
    "GatherNd": "a gather of places, not of rows",
    "ResourceGatherNd": "a gather of places, not of rows",
    "SparseMatrixMatMul": "a product of a matrix in CSR",
    "ResourceScatterAdd": "a scatter into a variable",
}
"""What else looks like work for the device -> what it is."""

_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "PartitionedCall")
_LOOKUPS = frozenset(name for each in OPERATIONS for name in each.targets)


@dataclass(frozen=True)
class Found:
    """Operations by the node whose result each gives, and why others stay."""

    operations: Mapping[str, Operation]
    reasons: Mapping[str, str] = field(default_factory=dict)


def find_operations(graph: Graph, tables: Tables, inside: Mapping[str, frozenset[str]]) -> Found:
    """What there is to be done on a device; ``inside`` are the operators of functions that the graph calls, by name."""
    operations, reasons = dict[str, Operation](), dict[str, str]()
    for kind in OPERATIONS:
        for node in graph.nodes.values():
            if node.op not in kind.targets or node.name not in reached(graph, operations):
                continue
            found = kind.match(node, graph, tables)
            if isinstance(found, Operation):
                operations[node.name] = found
            elif found is not None:
                reasons[node.name] = found
    for node in graph.nodes.values():
        if node.name not in graph.needed:
            continue
        if node.op in STAY and node.name not in reasons:
            reasons[node.name] = f"{node.op} is {STAY[node.op]}, which the front end does not take"
        names = [function for each in node.message.attr.values() for function in functions_of(each)]
        lookups = sorted({op for name in names for op in inside.get(name, ()) if op in _LOOKUPS})
        if lookups:
            what = "a branch or loop" if node.op in _BRANCHES else "a function that stays a call"
            reasons[node.name] = f"{', '.join(lookups)} is inside of {what}, of which TensorFlow decides what runs"
    order = {name: place for place, name in enumerate(graph.nodes)}
    return Found({name: operations[name] for name in sorted(operations, key=order.__getitem__)}, reasons)


def reached(graph: Graph, operations: Mapping[str, Operation]) -> frozenset[str]:
    """The nodes that TensorFlow has to run, or the device, if operations take what they need from their sources."""
    found, open_ = set[str](), [*(ref.node for ref in graph.outputs), *graph.effects]
    while open_:
        name = open_.pop()
        if name in found:
            continue
        found.add(name)
        node, operation = graph.nodes[name], operations.get(name)
        if operation is None:
            open_ += [ref.node for ref in node.inputs] + list(node.controls)
        else:
            open_ += [ref.node for ref in (operation.table.ref, *operation.sources) if ref is not None]
            open_ += conditions(graph, operation)
    return frozenset(found)


def conditions(graph: Graph, operation: Operation) -> list[str]:
    """The nodes that have to run before an operation, besides those that it takes something of."""
    nodes = [graph.nodes[name] for name in sorted(operation.absorbed)]
    return [name for node in nodes for name in node.controls if name not in operation.absorbed]
