"""Arithmetic of a graph on rows that it looks up, element by element, as one expression."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_floats
from daedal.compiler.frontends.torch.operators import Overload, arguments_of, calls, target_of
from daedal.compiler.frontends.torch.ops.lookups import Lookup
from daedal.compiler.frontends.torch.ops.operation import Operation

_aten = torch.ops.aten

Axes = tuple[int | None, ...]
"""For each dimension of an expression but the last: that of the indices that it is, in their order; None: all alike."""

_BINARY: dict[Overload, tuple[str, Callable[..., Any]]] = {
    _aten.mul.Tensor: ("mul", operator.mul),
    _aten.add.Tensor: ("add", operator.add),
    _aten.sub.Tensor: ("sub", operator.sub),
}
_UNARY: dict[Overload, tuple[str, Callable[..., Any]]] = {
    _aten.neg.default: ("neg", operator.neg),
    _aten.abs.default: ("abs", abs),
}
"""Operators, their names, and the functions of Python that graphs may have for them."""


@dataclass(frozen=True)
class Leaf:
    """Looked-up rows: ``lookup`` finds them."""

    lookup: Lookup
    axes: Axes


@dataclass(frozen=True)
class Rows:
    """An expression in postfix form, of leaves, names of operations, and numbers as ``=2.0``; ``nodes`` make it."""

    tokens: tuple[str | Leaf, ...]
    nodes: tuple[fx.Node, ...]
    rank: int

    def then(self, node: fx.Node, *tokens: str | Leaf) -> "Rows":
        """The same with further tokens, which ``node`` stands for."""
        return Rows((*self.tokens, *tokens), (*self.nodes, node), self.rank)

    def placed(self, axes: Sequence[int | None]) -> "Rows":
        """The same with other dimensions, each of which is one of these, or new."""
        moved = tuple(
            replace(token, axes=tuple(None if axis is None else token.axes[axis] for axis in axes))
            if isinstance(token, Leaf)
            else token
            for token in self.tokens
        )
        return Rows(moved, self.nodes, len(axes))

    def padded(self, rank: int) -> "Rows":
        """The same with new dimensions in front, up to so many."""
        return self.placed([*[None] * (rank - self.rank), *range(self.rank)])

    @property
    def leaves(self) -> list[Leaf]:
        """All of them, each as often as it is used."""
        return [token for token in self.tokens if isinstance(token, Leaf)]


def rows_of(node: object, found: Mapping[fx.Node, Operation]) -> Rows | None:
    """The expression that a node is; None if it is none of rows of one width of f32."""
    rows = _read(node, found)
    if rows is None or not rows.leaves:
        return None
    widths = [example_of(leaf.lookup.table).shape[1] for leaf in rows.leaves]
    is_known = all(isinstance(width, int) for width in widths)  # others are not numbers, and have no hash
    return rows if is_known and len(set(widths)) == 1 else None


def _read(node: object, found: Mapping[fx.Node, Operation]) -> Rows | None:
    if not isinstance(node, fx.Node) or not is_floats(node):
        return None
    lookup = found.get(node)
    if isinstance(lookup, Lookup):
        known = example_of(lookup.indices)
        if not lookup.can_pool or not is_floats(lookup.table, 2) or not isinstance(known, Tensor):
            return None
        return Rows((Leaf(lookup, tuple(range(known.dim()))),), (node,), known.dim())
    if node in found or writes_out(node) or node.op not in ("call_function", "call_method"):
        return None
    for overload, (name, function) in _BINARY.items():
        if target_of(node) is function:  # of Python: two arguments by position
            return _of_two(node, name, dict(zip(("input", "other"), node.args, strict=False)), found)
        if calls(node, overload):
            return _of_two(node, name, arguments_of(node, overload), found)
    for overload, (name, function) in _UNARY.items():
        if calls(node, overload) or target_of(node) is function:
            inner = _read(_only(node), found)
            return None if inner is None else inner.then(node, name)
    if calls(node, _aten.unsqueeze.default):
        values = arguments_of(node, _aten.unsqueeze.default)
        return _unsqueezed(node, _read(values.get("input"), found), values.get("dim"))
    base = squared(node)
    inner = None if base is None else _read(base, found)
    return None if inner is None else Rows((*inner.tokens, *inner.tokens, "mul"), (*inner.nodes, node), inner.rank)


def _only(node: fx.Node) -> object:
    """The one argument of a call."""
    return node.args[0] if node.args else node.kwargs.get("input")


def squared(node: object) -> object | None:
    """What a node is the square of, if it is one."""
    if not isinstance(node, fx.Node) or writes_out(node):
        return None
    if target_of(node) is operator.pow:
        return node.args[0] if node.args[1] == 2 else None
    if calls(node, _aten.pow.Tensor_Scalar):
        values = arguments_of(node, _aten.pow.Tensor_Scalar)
        return values.get("input") if values.get("exponent") == 2 else None
    if calls(node, _aten.square.default):
        return _only(node)
    if (
        (calls(node, _aten.mul.Tensor) or target_of(node) is operator.mul)
        and len(node.args) == 2
        and node.args[0] is node.args[1]
    ):
        return node.args[0]
    return None


def _of_two(node: fx.Node, name: str, values: Mapping[str, Any], found: Mapping[fx.Node, Operation]) -> Rows | None:
    if values.get("alpha", 1) != 1:
        return None
    sides: list[Rows] = []
    for value in (values.get("input"), values.get("other")):
        if isinstance(value, int | float) and not isinstance(value, bool):
            sides.append(Rows((f"={float(value)!r}",), (), 0))
        elif (inner := _read(value, found)) is not None:
            sides.append(inner)
        else:
            return None
    rank = max(side.rank for side in sides)
    a, b = (side.padded(rank) for side in sides)
    return Rows((*a.tokens, *b.tokens, name), tuple(dict.fromkeys((*a.nodes, *b.nodes, node))), rank)


def _unsqueezed(node: fx.Node, inner: Rows | None, dim: object) -> Rows | None:
    if inner is None or not isinstance(dim, int):
        return None
    place = dim + inner.rank + 2 if dim < 0 else dim
    if not 0 <= place <= inner.rank:  # behind that there are the elements
        return None
    axes = [*range(place), None, *range(place, inner.rank)]
    placed = inner.placed(axes)
    return Rows(placed.tokens, (*placed.nodes, node), placed.rank)
