"""The operations of PyTorch that run on the device, and which of them a graph has.

An operation is one class; what it is registered with, matched by, asked of the device and documented with is there.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from torch import Tensor, fx
from torch._ops import OpOverload

from daedal.compiler.dialects.elements import why_not_converted
from daedal.compiler.frontends.requests.checks import ROW_TYPES, most_scored
from daedal.compiler.frontends.torch.device_suitability import why_no_example
from daedal.compiler.frontends.torch.examples import example_of, is_integers
from daedal.compiler.frontends.torch.names import label_of_node, take_names
from daedal.compiler.frontends.torch.operators import operator_of, target_of
from daedal.compiler.frontends.torch.ops.embedding_bag import EmbeddingBag, EmbeddingBagKernel
from daedal.compiler.frontends.torch.ops.fills import plain_fills
from daedal.compiler.frontends.torch.ops.lookups import Embedding, GatheredRows, IndexedRows, IndexSelect
from daedal.compiler.frontends.torch.ops.messages import unneeded
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.ops.others import OtherRows
from daedal.compiler.frontends.torch.ops.pooled_lookups import AveragedLookup, SummedLookup
from daedal.compiler.frontends.torch.ops.quantised_bags import QuantisedBag, QuantisedBag2, QuantisedBag4
from daedal.compiler.frontends.torch.ops.reductions import IndexAdd, IndexPut, Reduction, ScatterAdd, ScatterReduce
from daedal.compiler.frontends.torch.ops.row_bags import RowBags
from daedal.compiler.frontends.torch.ops.row_scores import RowScore
from daedal.compiler.frontends.torch.ops.segment_reduce import SegmentReduce
from daedal.compiler.frontends.torch.ops.sizes import plain_sizes
from daedal.compiler.frontends.torch.ops.sparse_products import OtherSparseProduct, SparseProduct, SparseReduction
from daedal.compiler.frontends.torch.ops.whole_modules import WholeModule
from daedal.compiler.frontends.torch.placement import Ledger, Placement
from daedal.compiler.frontends.torch.training.suitability import why_not_trained
from daedal.driver.device import Device
from daedal.driver.tables.table_sources import dtype_name
from daedal.system.system import System

OPERATIONS: tuple[type[Operation], ...] = (
    EmbeddingBag,
    EmbeddingBagKernel,
    Embedding,
    IndexSelect,
    IndexedRows,
    SummedLookup,
    AveragedLookup,
    RowScore,
    GatheredRows,
    IndexAdd,
    IndexPut,
    ScatterAdd,
    ScatterReduce,
    SegmentReduce,
    SparseReduction,
    SparseProduct,
    OtherSparseProduct,
    QuantisedBag,
    QuantisedBag4,
    QuantisedBag2,
    RowBags,
    WholeModule,
    OtherRows,
)
"""In the order of the documentation. No two have a target in common."""


def kind_of(node: fx.Node) -> type[Operation] | None:
    """The operation that is registered for what a node calls."""
    target = target_of(node)
    return None if target is None else _kinds().get(target) or _kinds().get(operator_of(target))


def is_embedding(node: fx.Node) -> bool:
    """Whether a node is an embedding by name."""
    kind = kind_of(node)
    return kind is not None and kind.is_embedding


def find_operations(
    graph: fx.Graph,
    *,
    trains: bool = False,
    types: Collection[str] = tuple(ROW_TYPES),
    placement: Placement | None = None,
    exact: bool = True,
    device: Device | System | None = None,
) -> tuple[dict[fx.Node, Operation], dict[str, str]]:
    """The operations to offload, by node; and why those that stay in PyTorch do, by name. With ``trains`` what is known
    to need a gradient stays, but for tables that are trained on ``device``. ``types``: what the machine computes with,
    as PyTorch calls it. ``placement`` says what else stays, and raises what it has against all of it. Without
    ``exact``, sums may be added in another order.
    """
    ledger = None if placement is None else placement.ledger()
    take_names(graph)
    plain_fills(graph)
    plain_sizes(graph, _gather)
    found: dict[fx.Node, Operation] = {}
    reasons: dict[str, str] = {}
    for takes_results in (False, True):
        for node in graph.nodes:
            kind = kind_of(node)
            if kind is None or kind.takes_results is not takes_results:
                continue
            operation = kind.match(node, found)
            if isinstance(operation, Operation):
                operation = operation if exact else operation.inexact()
                operation = operation.why_inexact or operation
            if isinstance(operation, RowScore):
                operation = _why_no_score(operation.width, device) or operation
            if isinstance(operation, Operation):
                operation = _why_not(operation, ledger, device, trains=trains, types=types) or operation
            if isinstance(operation, str):
                reasons[label_of_node(node)] = operation
            elif operation is not None:
                found[node] = operation
        _drop_scores(found, reasons)
        _share_messages(found)
        for absorbed in [each for operation in found.values() for each in operation.absorbed]:
            found.pop(absorbed, None)
            reasons.pop(label_of_node(absorbed), None)
    if ledger is not None:
        ledger.check()
    return found, reasons


def _drop_scores(found: dict[fx.Node, Operation], reasons: dict[str, str]) -> None:
    """Leave scores of rows that something else uses, unless that is a score: they are copied anyway."""
    while True:
        scores = {node: each for node, each in found.items() if isinstance(each, RowScore)}
        inside = {*scores, *(node for each in scores.values() for node in each.absorbed)}
        shared = [
            node for node, each in scores.items() if any(not inside.issuperset(part.users) for part in each.absorbed)
        ]
        for node in shared:
            reasons[label_of_node(node)] = "other nodes use its rows, which are copied for them"
            del found[node]
        if not shared:
            return


def _share_messages(found: dict[fx.Node, Operation]) -> None:
    """Leave to reductions what makes their rows, unless something else needs it."""
    reductions = {node: each for node, each in found.items() if isinstance(each, Reduction)}
    done = unneeded({node: each.message.nodes for node, each in reductions.items()})
    for node, each in reductions.items():
        nodes = tuple(part for part in each.message.nodes if part in done)
        found[node] = replace(each, message=replace(each.message, nodes=nodes))


def _gather(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """Table and indices of a gather by 1-D indices."""
    kind = kind_of(node)
    found = kind.match(node, {}) if kind in (IndexSelect, IndexedRows) else None
    if not isinstance(found, IndexSelect | IndexedRows) or not is_integers(found.indices, 1):
        return None
    table, indices = found.sources
    return (table, indices) if isinstance(table, fx.Node) and isinstance(indices, fx.Node) else None


def _why_no_score(width: int, device: Device | System | None) -> str:
    """Why rows of so many elements are not added up on a device; nothing if they are."""
    if isinstance(device, System):
        return "rows are not added up by a System, of which tiles have columns of them: its tiles, each a device, do"
    most = 0 if device is None else most_scored(device.config)
    return f"rows of {width} elements are not added up here, but at most of {most}" if width > most else ""


def _why_not(
    operation: Operation, ledger: Ledger | None, device: Device | System | None, *, trains: bool, types: Collection[str]
) -> str | None:
    """Why PyTorch does an operation on what tracing knows of its sources."""
    examples = [example_of(source) for source in operation.sources]
    rows = example_of(operation.table)
    if operation.adds_rows and isinstance(rows, Tensor) and (dtype := dtype_name(rows)) not in types:
        return why_not_converted(ROW_TYPES[dtype])
    needs_gradient = trains and any(isinstance(each, Tensor) and each.requires_grad for each in examples)
    reason = why_no_example(examples) or (why_not_trained(operation, device) if needs_gradient else None)
    return reason or (None if ledger is None else ledger.why_not(operation))


@cache
def _kinds() -> Mapping[Any, type[Operation]]:
    """What graphs call -> the operation; overloads also by their packet."""
    kinds: dict[object, type[Operation]] = {}
    for kind in OPERATIONS:
        for target in kind.targets:
            names = (target, target.overloadpacket) if isinstance(target, OpOverload) else (target,)
            kinds |= dict.fromkeys(names, kind)
    return kinds
