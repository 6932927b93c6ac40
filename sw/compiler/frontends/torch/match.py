"""Finds the embedding operations of a graph, whatever PyTorch calls them there, and what keeps one on the
host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn import functional

from daedal.compiler.frontends.torch.device_suitability import why_no_example
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.operators import name_of
from daedal.compiler.frontends.torch.ops.pooled_lookups import ORDER, PooledCall, read_pooled
from daedal.compiler.frontends.torch.segments import (
    ALONG_ROWS,
    SegmentCall,
    SparseCall,
    gathered,
    is_integers,
    is_rows,
    messages_of,
    plain_fills,
    read_segments,
    read_sparse,
    wraps_indices,
)

MODES = {0: "sum", 1: "mean", 2: "max"}
"""Modes of ``aten.embedding_bag``."""

_FUNCTIONAL_BAG = [
    "input",
    "weight",
    "offsets",
    "max_norm",
    "norm_type",
    "scale_grad_by_freq",
    "mode",
    "sparse",
    "per_sample_weights",
    "include_last_offset",
    "padding_idx",
]
_ATEN_BAG = [
    "weight",
    "input",
    "offsets",
    "scale_grad_by_freq",
    "mode",
    "sparse",
    "per_sample_weights",
    "include_last_offset",
    "padding_idx",
]
_FUNCTIONAL_LOOKUP = [
    "input",
    "weight",
    "padding_idx",
    "max_norm",
    "norm_type",
    "scale_grad_by_freq",
    "sparse",
]
_ATEN_LOOKUP = ["weight", "input", "padding_idx", "scale_grad_by_freq", "sparse"]

_aten = torch.ops.aten
_BAGS: dict[object, tuple[Sequence[str], str | int]] = {
    functional.embedding_bag: (_FUNCTIONAL_BAG, "mean"),
    torch.embedding_bag: (_ATEN_BAG, 0),
    _aten.embedding_bag.default: (_ATEN_BAG, 0),
    _aten.embedding_bag.padding_idx: (_ATEN_BAG, 0),
    _aten._embedding_bag.default: (_ATEN_BAG, 0),
    _aten._embedding_bag_forward_only.default: (_ATEN_BAG, 0),
}
"""Function -> its parameters, and its default mode."""

_LOOKUPS: dict[object, Sequence[str]] = {
    functional.embedding: _FUNCTIONAL_LOOKUP,
    torch.embedding: _ATEN_LOOKUP,
    _aten.embedding.default: _ATEN_LOOKUP,
}


_RENORMALISING = (torch.embedding_renorm_, _aten.embedding_renorm_.default, _aten.embedding_renorm.default)

NEEDS_GRADIENT = "it needs a gradient, and gradients are PyTorch's"


@dataclass(frozen=True)
class BagCall:
    """A pooling of bags in a graph; ``table``, ``indices``, ``offsets`` and ``weights`` are nodes or
    constants.
    """

    name: str
    table: Any
    indices: Any
    offsets: Any
    weights: Any
    mode: str
    padding: int | None
    include_last_offset: bool
    gives_tuple: bool
    is_sparse: bool = False
    is_scaled: bool = False

    @property
    def sources(self) -> tuple[Any, ...]:
        """What it works on, in the order of ``bag_request``."""
        return self.table, self.indices, self.offsets, self.weights

    def in_torch(self, table: Any, indices: Any, offsets: Any, weights: Any) -> Tensor:
        """What PyTorch makes of these values of its sources."""
        return functional.embedding_bag(
            indices,
            table,
            offsets,
            mode=self.mode,
            per_sample_weights=weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding,
            sparse=self.is_sparse,
            scale_grad_by_freq=self.is_scaled,
        )


@dataclass(frozen=True)
class LookupCall:
    """A gather of rows in a graph."""

    name: str
    table: Any
    indices: Any
    padding: int | None = None
    is_sparse: bool = False
    is_scaled: bool = False
    wraps: bool = False
    """Negative indices count from the end."""
    is_gather: bool = False
    """Indices are those of ``torch.gather``: a column, expanded."""

    @property
    def sources(self) -> tuple[Any, ...]:
        """What it works on, in the order of ``lookup_request``."""
        return self.table, self.indices

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """What PyTorch makes of these values of its sources."""
        if self.is_gather:
            return torch.gather(table, 0, indices)
        if self.wraps:
            return table[indices]
        return functional.embedding(
            indices, table, self.padding, sparse=self.is_sparse, scale_grad_by_freq=self.is_scaled
        )


Call = BagCall | LookupCall | PooledCall | SegmentCall | SparseCall


def is_embedding(node: fx.Node) -> bool:
    """Whether a node is an embedding operation."""
    return node.op == "call_function" and (node.target in _BAGS or node.target in _LOOKUPS)


def find_calls(graph: fx.Graph, *, trains: bool = False) -> tuple[dict[fx.Node, Call], dict[str, str]]:
    """The operations to offload, by node; and why those embedding operations that stay on the host do, by
    name. With ``trains`` what is known to need a gradient stays.
    """
    calls: dict[fx.Node, Call] = {}
    reasons: dict[str, str] = {}
    call: Call | None
    plain_fills(graph)
    for node in graph.nodes:
        if is_embedding(node):
            call, reason = _read(node)
        else:
            call, reason = _read_other(node)
        if call is not None:
            reason = why_no_example(map(example_of, call.sources)) or reason
        if call is not None and trains and reason is None and any(_needs_gradient(source) for source in call.sources):
            reason = NEEDS_GRADIENT
        if reason is not None:
            reasons[node.name] = reason
        elif call is not None:
            calls[node] = call
    for node, call in list(calls.items()):
        if isinstance(call, SegmentCall):
            for message in messages_of(call, node):
                calls.pop(message, None)
    _pool_lookups(calls)
    reasons |= _sums(calls)
    return calls, reasons


def _read_other(node: fx.Node) -> tuple[Call | None, str | None]:
    """Operations that are no embedding by name but do what one does."""
    found = gathered(node, dim=None) or _gathered_along(node)
    if found is not None:
        return LookupCall(node.name, *found, wraps=wraps_indices(node), is_gather=name_of(node) == "gather"), None
    if (reason := _why_not_gathered(node)) is not None:
        return None, reason
    sparse, reason = read_sparse(node)
    return (sparse, reason) if sparse is not None or reason is not None else read_segments(node)


def _along_rows(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """Table and 2-D indices, if a node is ``gather`` along dim 0 of rows."""
    if not node.op.startswith("call_") or name_of(node) != "gather" or writes_out(node):
        return None
    values = dict(zip(("input", "dim", "index"), node.args, strict=False)) | node.kwargs
    table, indices = values.get("input"), values.get("index")
    if values.get("dim") not in ALONG_ROWS or not isinstance(table, fx.Node) or not isinstance(indices, fx.Node):
        return None
    return (table, indices) if is_rows(table) and is_integers(indices, 2) else None


def _gathered_along(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """Table and 2-D indices, if a node is ``gather`` of whole rows."""
    found = _along_rows(node)
    if found is None:
        return None
    table, indices = found
    is_narrow = example_of(table).shape[1] == 1 == example_of(indices).shape[1]
    return (table, indices) if is_narrow or name_of(indices) in ("expand", "expand_as") else None


def _why_not_gathered(node: fx.Node) -> str | None:
    """Why a ``gather`` along dim 0 stays in PyTorch."""
    found = _along_rows(node)
    if found is None:
        return None
    return f"the index must be one column, expanded to the table's width, to name whole rows; {found[1].name} is not"


def _pool_lookups(calls: dict[fx.Node, Call]) -> None:
    """Sums and means of rows that a lookup gives take the place of the lookup, where they may."""
    for rows, call in list(calls.items()):
        if isinstance(call, LookupCall) and not call.is_gather and len(rows.users) == 1:
            (user,) = rows.users
            pooled = read_pooled(user, rows, call.table, call.indices, wraps=call.wraps)
            if pooled is not None:
                del calls[rows]
                calls[user] = pooled


def _sums(calls: Mapping[fx.Node, Call]) -> dict[str, str]:
    """Why a sum or mean of rows that a lookup gives stays in PyTorch."""
    return {
        user.name: f"PyTorch adds such rows {ORDER}"
        for node, call in calls.items()
        if isinstance(call, LookupCall)
        for user in node.users
        if user.op.startswith("call_") and name_of(user) in ("sum", "mean")
    }


def _needs_gradient(source: Any) -> bool:
    example = example_of(source)
    return isinstance(example, Tensor) and example.requires_grad


def _read(node: fx.Node) -> tuple[Call, str | None]:
    if node.target in _LOOKUPS:
        values = _bind(node, _LOOKUPS[node.target])
        padding = values.get("padding_idx")
        lookup = LookupCall(
            node.name, values["weight"], values["input"], None if padding == -1 else padding, *_gradient(values)
        )
        return lookup, _common_reason(values)
    parameters, default_mode = _BAGS[node.target]
    values = _bind(node, parameters)
    mode = values.get("mode", default_mode)
    mode = MODES.get(mode, mode)
    is_functional = node.target is functional.embedding_bag
    padding = values.get("padding_idx")
    if node.target in (_aten._embedding_bag.default, _aten._embedding_bag_forward_only.default) and padding == -1:
        padding = None
    call = BagCall(
        node.name,
        values["weight"],
        values["input"],
        values.get("offsets"),
        values.get("per_sample_weights"),
        mode,
        padding,
        bool(values.get("include_last_offset", False)),
        gives_tuple=not is_functional,
        is_sparse=_gradient(values)[0],
        is_scaled=_gradient(values)[1],
    )
    return call, _bag_reason(node, call, values) or _common_reason(values)


def _gradient(values: Mapping[str, Any]) -> tuple[bool, bool]:
    """Options that only gradients depend on: sparse, scaled by frequency."""
    return bool(values.get("sparse")), bool(values.get("scale_grad_by_freq"))


def _bind(node: fx.Node, parameters: Sequence[str]) -> Mapping[str, Any]:
    return {**dict(zip(parameters, node.args, strict=False)), **node.kwargs}


def _bag_reason(node: fx.Node, call: BagCall, values: Mapping[str, Any]) -> str | None:
    if call.mode not in MODES.values():
        return f"mode must be one of {', '.join(MODES.values())}, not {call.mode!r}"
    if call.mode == "max":
        refused = [name for name in ("sparse", "scale_grad_by_freq") if values.get(name)]
        if refused:
            return f"mode 'max' must go without {refused[0]}"
    if call.gives_tuple:
        for user in node.users:
            if user.users and (user.op != "call_function" or user.args[1:] != (0,)):
                return f"a result other than the pooled rows is used, by {user.name}"
    return None


def _common_reason(values: Mapping[str, Any]) -> str | None:
    if values.get("max_norm") is not None:
        found = values["max_norm"]
        not_this = "" if isinstance(found, fx.Node) else f", not {found!r}"
        return f"max_norm must be None{not_this}: it changes the table in place"
    table = values["weight"]
    if isinstance(table, fx.Node) and _is_renormalised(table):
        return "max_norm must be None: it changes the table in place"
    return None


def _is_renormalised(table: fx.Node) -> bool:
    """Whether a node changes the table, or a view of it, to keep its rows short."""
    return any(
        user.target in _RENORMALISING or (user.target is _aten.detach.default and _is_renormalised(user))
        for user in table.users
    )
