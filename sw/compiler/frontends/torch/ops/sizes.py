"""Sizes of rows that are only asked for: taken from the table and the indices, so that the rows need not be made."""

from collections.abc import Callable
from operator import getitem
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.operators import calls

Gather = Callable[[fx.Node], tuple[fx.Node, fx.Node] | None]
"""The table and the 1-D indices of a node that gathers rows; None for any other node."""

_aten = torch.ops.aten


def plain_sizes(graph: fx.Graph, gather: Gather) -> None:
    """Take the sizes of gathered rows, and of such times weights, from what they are gathered from."""
    for node in list(graph.nodes):
        rows = _asked(node)
        sources = None if rows is None else _sources(rows, gather)
        if rows is None or sources is None:
            continue
        sizes = _Sizes(graph, node, *sources)
        if calls(node, _aten.expand_as.default):
            with graph.inserting_before(node):
                expanded = graph.call_function(_aten.expand.default, (node.args[0], [*sizes.whole]))
            expanded.meta = dict(node.meta)
            node.replace_all_uses_with(expanded)
        elif calls(node, _aten.sym_size.int):
            node.replace_all_uses_with(sizes[node.args[1]])
        elif node.op == "call_method" and len(node.args) + len(node.kwargs) == 2:
            dim = node.args[1] if len(node.args) == 2 else next(iter(node.kwargs.values()))
            if isinstance(dim, int):
                node.replace_all_uses_with(sizes[dim])
        else:
            _replace_whole(node, sizes)
        for dead in (node, rows):
            if not dead.users and (dead is node or gather(dead) is not None):
                graph.erase_node(dead)


class _Sizes:
    """Nodes for the sizes of rows, made when they are needed in front of ``node``."""

    def __init__(self, graph: fx.Graph, node: fx.Node, table: fx.Node, indices: fx.Node) -> None:
        self._graph, self._node, self._table, self._indices = graph, node, table, indices
        self.dims = example_of(table).dim()

    @property
    def whole(self) -> tuple[fx.Node, ...]:
        """All of them."""
        return tuple(self[dim] for dim in range(self.dims))

    def __getitem__(self, dim: int) -> fx.Node:
        dim %= self.dims
        source = self._table if dim else self._indices
        with self._graph.inserting_before(self._node):
            size = self._graph.call_method("size", (source, dim))
        size.meta["example_value"] = example_of(source).shape[dim]
        return size


def _asked(node: fx.Node) -> fx.Node | None:
    """The tensor whose sizes, or one of them, a node asks for."""
    owner = node.args[0] if node.args else None
    if calls(node, _aten.expand_as.default):
        like = node.args[1] if len(node.args) > 1 else None
        return like if isinstance(like, fx.Node) else None
    if calls(node, _aten.sym_size.int) and len(node.args) == 2:
        return owner if isinstance(owner, fx.Node) else None
    is_size = (node.op == "call_method" and node.target == "size") or (
        node.op == "call_function" and node.target is getattr and node.args[1:] == ("shape",)
    )
    return owner if is_size and isinstance(owner, fx.Node) else None


def _sources(rows: fx.Node, gather: Gather) -> tuple[fx.Node, fx.Node] | None:
    """What rows are gathered from, maybe times something that does not change their shape."""
    found = gather(rows)
    if found is not None or not calls(rows, _aten.mul.Tensor):
        return found
    for part in rows.all_input_nodes:
        found, known, whole = gather(part), example_of(part), example_of(rows)
        if found is not None and isinstance(whole, Tensor) and _are_equal(known.shape, whole.shape):
            return found
    return None


def _are_equal(one: Any, other: Any) -> bool:
    """Whether shapes are known to be the same, without a guess on sizes that are open."""
    return len(one) == len(other) and all(str(a) == str(b) for a, b in zip(one, other, strict=True))


def _replace_whole(node: fx.Node, sizes: _Sizes) -> None:
    """Have those that use all sizes, or take some, use them one by one."""
    for user in list(node.users):
        if user.op == "output":
            continue
        taken = user.args[1] if user.target is getitem else None
        if isinstance(taken, int):
            user.replace_all_uses_with(sizes[taken])
            user.graph.erase_node(user)
        elif user.target is not getitem and user.op in ("call_method", "call_function"):
            _use(user, node, sizes.whole)


def _use(user: fx.Node, node: fx.Node, whole: tuple[fx.Node, ...]) -> None:
    """Have ``user`` take these instead of ``node``."""
    user.args = fx.map_arg(user.args, lambda each: whole if each is node else each)
    user.kwargs = fx.map_arg(user.kwargs, lambda each: whole if each is node else each)
