"""Rows that are reduced, and what makes them: a gather, one times a weight each, or none of these."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_any_rows, is_integers
from daedal.compiler.frontends.torch.operators import calls
from daedal.compiler.frontends.torch.ops.lookups import IndexedRows, IndexSelect, Lookup
from daedal.compiler.frontends.torch.ops.operation import Operation

_aten = torch.ops.aten


@dataclass(frozen=True)
class Message:
    """The rows of ``table`` that ``indices`` name (None: all of them) times ``weights`` (None: 1), one number each.

    ``nodes`` are those that made these rows, which a reduction does itself, the last one first; ``wraps``: negative
    indices count from the end.
    """

    table: object
    indices: object = None
    weights: object = None
    wraps: bool = False
    nodes: tuple[fx.Node, ...] = ()

    def in_torch(self, table: Tensor, indices: Tensor | None, weights: Tensor | None) -> Tensor:
        """The rows, for these values."""
        rows = table if indices is None else table[indices] if self.wraps else table.index_select(0, indices)
        return rows if weights is None else rows * weights


def message_of(node: fx.Node, rows: fx.Node, found: Mapping[fx.Node, Operation], *, has_weights: bool) -> Message:
    """What ``node`` reduces, ``rows``, taken apart. A gather whose parts change before the node is done is none here;
    ``has_weights``: rows times a column of weights may be taken apart too.
    """
    if (lookup := _gathered(rows, found)) is not None and not may_change([rows, *lookup.sources], rows, node):
        return Message(lookup.table, lookup.indices, None, lookup.wraps, (rows,))
    if has_weights and calls(rows, _aten.mul.Tensor) and len(rows.args) == 2 and not writes_out(rows):
        for part, weights in (rows.args, rows.args[::-1]):
            lookup = _gathered(part, found)
            if (
                lookup is None
                or not isinstance(part, fx.Node)
                or not isinstance(weights, fx.Node)
                or not _is_one_for_each(weights, rows)
            ):
                continue
            # Of two types the product has the wider one.
            is_of_type = example_of(weights).dtype is example_of(part).dtype
            if is_of_type and not may_change([rows, part, weights, *lookup.sources], part, node):
                parts = [part for part in rows.all_input_nodes if _gathered(part, found) is not None]
                return Message(lookup.table, lookup.indices, weights, lookup.wraps, (rows, *parts))
    return Message(rows)


def _gathered(rows: object, found: Mapping[fx.Node, Operation]) -> Lookup | None:
    """The gather by 1-D indices that made these rows."""
    lookup = found.get(rows) if isinstance(rows, fx.Node) else None
    return lookup if isinstance(lookup, IndexSelect | IndexedRows) and is_integers(lookup.indices, 1) else None


def _is_one_for_each(weights: fx.Node, rows: fx.Node) -> bool:
    """Whether there is a weight for each row, or, if rows have dimensions of their own, for all but their last one."""
    if not is_any_rows(weights) or not is_any_rows(rows):
        return False
    given, wanted = example_of(weights).shape, example_of(rows).shape
    if len(given) != len(wanted) or given[-1] != 1:
        return False
    return all(size == 1 for size in given[1:-1]) or given[1:-1] == wanted[1:-1]


def unneeded(made: Mapping[fx.Node, Sequence[fx.Node]]) -> set[fx.Node]:
    """What nobody needs any more if each of these nodes, reductions, does itself what its rows are made by."""
    found = set().union(*made.values())
    while True:
        needed = {node for node in found if not all(_is_done(user, node, found, made) for user in node.users)}
        if not needed:
            return found
        found -= needed


def _is_done(user: fx.Node, node: fx.Node, found: Set[fx.Node], made: Mapping[fx.Node, Sequence[fx.Node]]) -> bool:
    """Whether ``user`` does itself what ``node`` gives, is not needed either, or has only asked for its shape."""
    if user in found or node in made.get(user, ()):
        return True
    shaped = calls(user, _aten.expand_as.default) and user.args[0] is not node
    return shaped and all(node in made.get(each, ()) for each in user.users)
