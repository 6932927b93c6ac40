"""Numbers made of looked-up rows: products summed along a row, distances, matrix products of two gathers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.scores import Entries, score_request
from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.names import name_of
from daedal.compiler.frontends.torch.operators import arguments_of, calls, target_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.row_expressions import Axes, Rows, rows_of
from daedal.compiler.frontends.torch.ops.tensors import integers_of, table_of
from daedal.runtime.request import Request

_aten = torch.ops.aten

_NORMS = {
    _aten.linalg_vector_norm.default: torch.linalg.vector_norm,
    _aten.linalg_norm.default: torch.linalg.norm,
    _aten.norm.ScalarOpt_dim: torch.functional.norm,
}
"""Operators, and the functions that graphs may have for them."""

ORDER = (
    "PyTorch adds along a row in an order of its own, which is not the machine's; with exact=False the rows are looked "
    "up and added up in one launch, and only the results come back"
)
"""Why scores are not exact."""

LEAST_ELEMENTS = 64
"""Elements of rows for a score: one takes some 33 cycles on ``ddr3`` however few they are, and to copy 64 as many."""

FEW = "are copied in fewer cycles than the machine takes to add them up, which is worth it from 64 on"


class Step(NamedTuple):
    """A node as it was when it was found; the graph is changed later."""

    node: fx.Node
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


class List(NamedTuple):
    """Indices that name rows of one table or several."""

    indices: object
    axes: Axes
    wraps: bool


@dataclass(frozen=True)
class RowScore(Operation):
    """A reduction along rows of an expression of rows that are looked up: ``sum``, ``mean`` or ``root``, that of the
    sum of squares; ``expression`` as of ``Score``.

    ``steps`` are PyTorch's, the last one of which gives the result, of which ``lists`` have the dimensions but, with
    ``keeps_dim``, a last one.
    """

    targets = (
        _aten.bmm.default,
        _aten.einsum.default,
        torch.functional.einsum,
        _aten.linalg_vector_norm.default,
        _aten.linalg_norm.default,
        _aten.norm.ScalarOpt_dim,
        torch.linalg.vector_norm,
        torch.linalg.norm,
        torch.functional.norm,
    )
    line = Line(
        "`(user(u) * item(i)).sum(-1)`, `torch.bmm`, `matmul` or `einsum` of gathers, `torch.norm(h + r - t, p=1)` ",
        "a score for each entry; no row comes back",
        "`exact=False`; sums, differences and products of rows; `p` of 1 or 2",
    )
    takes_results = True
    adds_rows = True

    tables: tuple[object, ...]
    lists: tuple[List, ...]
    reduction: str
    expression: str
    keeps_dim: bool
    steps: tuple[Step, ...]
    elements: int
    is_exact: bool = True

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if writes_out(node):
            return None
        if calls(node, _aten.bmm.default):
            return product_of(node, found)
        if calls(node, _aten.einsum.default) or target_of(node) is torch.functional.einsum:
            return _score(node, _summed(node, found), "sum", keeps_dim=False)
        overload, *_ = (each for each in _NORMS if calls(node, each) or target_of(node) is _NORMS[each])
        values = arguments_of(node, overload)
        rows = rows_of(values.get("input"), found)
        order = values.get("ord", values.get("p"))
        if rows is None or not _is_last(values.get("dim"), rows.rank) or values.get("dtype") is not None:
            return None
        if (order is None and overload is _aten.linalg_norm.default) or order == "fro":
            order = 2
        if order == 1:
            rows = Rows((*rows.tokens, "abs"), rows.nodes, rows.rank)
        elif order != 2:
            return None
        return _score(node, rows, "sum" if order == 1 else "root", keeps_dim=bool(values["keepdim"]))

    @property
    def sources(self) -> tuple[object, ...]:
        """The tables, and the indices of the lists."""
        return (*self.tables, *(each.indices for each in self.lists))

    @property
    def width(self) -> int:
        """Elements of a row."""
        return int(example_of(self.table).shape[1])

    @property
    def absorbed(self) -> tuple[fx.Node, ...]:
        """All that makes the expression."""
        return tuple(step.node for step in self.steps[:-1])

    @property
    def why_inexact(self) -> str:
        """See ``Operation``."""
        if self.is_exact:
            return ORDER
        return "" if self.elements >= LEAST_ELEMENTS else f"{self.elements} elements a score {FEW}"

    def inexact(self) -> Operation:
        """See ``Operation``."""
        return replace(self, is_exact=False)

    def request(self, *sources: Tensor) -> Request:
        """See ``score_request``."""
        tables = [table_of(self.name, table) for table in sources[: len(self.tables)]]
        lists = [
            Entries(integers_of(self.name, "indices", indices), each.axes, wraps=each.wraps)
            for each, indices in zip(self.lists, sources[len(self.tables) :], strict=True)
        ]
        names = [name_of(table) or f"{self.name}_table{number}" for number, table in enumerate(self.tables)]
        return score_request(
            self.name, dict(zip(names, tables, strict=True)), lists, self.reduction, self.expression,
            keeps_dim=self.keeps_dim,
        )  # fmt: skip

    def in_torch(self, *sources: Tensor) -> Tensor:
        """What the steps give."""
        known: dict[object, Any] = dict(zip(self.sources, sources, strict=True))
        for step in self.steps:
            given, named = fx.map_arg((step.arguments, dict(step.named)), lambda node: known[node])
            target = step.node.target
            function = getattr(given[0], target) if isinstance(target, str) else target
            known[step.node] = function(*(given[1:] if isinstance(target, str) else given), **named)
        return cast("Tensor", known[self.steps[-1].node])


def score_of(
    node: fx.Node, values: Mapping[str, Any], reduction: str, found: Mapping[fx.Node, Operation]
) -> RowScore | None:
    """What a sum or mean with these arguments is, if it is one along looked-up rows."""
    dim, others = values.get("dim"), {"dim", "keepdim", "input"}
    if any(values[name] is not None for name in values.keys() - others):
        return None
    rows = rows_of(values.get("input"), found)
    if rows is not None and _is_last(dim, rows.rank):
        return _score(node, rows, reduction, keeps_dim=bool(values.get("keepdim")))
    return None


def _is_last(dim: object, rank: int) -> bool:
    if isinstance(dim, list | tuple):
        dim = dim[0] if len(dim) == 1 else None
    return isinstance(dim, int) and not isinstance(dim, bool) and dim in (-1, rank)


def _score(node: fx.Node, rows: Rows | None, reduction: str, *, keeps_dim: bool) -> RowScore | None:
    """The operation, if the rows stay as they are until they are used; whether something else uses them than another
    score, ``registry.py`` finds out.
    """
    if rows is None:
        return None
    tables, lists, tokens = list[object](), list[List](), list[str]()
    owners: list[object] = []
    for token in rows.tokens:
        if isinstance(token, str):
            tokens.append(token)
            continue
        lookup = token.lookup
        entries = List(lookup.indices, token.axes, lookup.wraps)
        owner = lookup.table if lookup.wraps else None  # negative ones depend on the table
        number = next((n for n, each in enumerate(lists) if each == entries and owners[n] in (owner, None)), len(lists))
        if number == len(lists):
            lists.append(entries)
            owners.append(owner)
        if lookup.table not in tables:
            tables.append(lookup.table)
        tokens.append(f"{tables.index(lookup.table)}.{number}")
    order = {each: number for number, each in enumerate(node.graph.nodes)}
    nodes = sorted(dict.fromkeys(rows.nodes), key=order.__getitem__)
    values = [*nodes, *tables, *(each.indices for each in lists)]
    if may_change(values, nodes[0], node):
        return None
    steps = tuple(Step(each, each.args, dict(each.kwargs)) for each in (*nodes, node))
    used = max((place for each in lists for place, axis in enumerate(each.axes) if axis is not None), default=-1)
    inner = [token for token in dict.fromkeys(tokens) if token[0].isdigit()]
    inner = [token for token in inner if used < 0 or lists[int(token.partition(".")[2])].axes[used] is not None]
    elements = len(inner) * int(example_of(tables[0]).shape[1])  # others are fetched once for many scores
    return RowScore(
        node.name, tables[0], tuple(tables), tuple(lists), reduction, " ".join(tokens), keeps_dim, steps, elements
    )


def product_of(node: fx.Node, found: Mapping[fx.Node, Operation]) -> RowScore | None:
    """The product of matrices that a node is, if these are looked-up rows."""
    rows = _product(node.args[0], node.args[1], found) if len(node.args) == 2 and not node.kwargs else None
    return _score(node, rows, "sum", keeps_dim=False)


def _product(a: object, b: object, found: Mapping[fx.Node, Operation]) -> Rows | None:
    """The products of the rows of ``a`` and the columns of ``b``, three dimensions each, if one has one of them."""
    left, right = rows_of(a, found), _columns(b, found)
    if left is None or right is None or left.rank != 2:
        return None
    shapes = example_of(a).shape, example_of(b).shape
    if (shapes[0][1] if isinstance(shapes[0][1], int) else 0) != 1 and shapes[1][2] != 1:
        return None
    if isinstance(shapes[0][0], int) != isinstance(shapes[1][0], int) or shapes[0][0] != shapes[1][0]:
        return None
    rows, columns = left.placed([0, 1, None]), right.placed([0, None, 1])
    return Rows((*rows.tokens, *columns.tokens, "mul"), tuple(dict.fromkeys((*rows.nodes, *columns.nodes))), 3)


def _columns(node: object, found: Mapping[fx.Node, Operation]) -> Rows | None:
    """Rows that a node has as the columns of matrices, with the dimensions of these but one."""
    if not isinstance(node, fx.Node):
        return None
    if calls(node, _aten.unsqueeze.default):
        values = arguments_of(node, _aten.unsqueeze.default)
        rows = rows_of(values.get("input"), found)
        if rows is None or rows.rank != 1 or values.get("dim") not in (2, -1):
            return None
        placed = rows.placed([0, None])
        return Rows(placed.tokens, (*placed.nodes, node), 2)
    source = _turned(node)
    rows = None if source is None else rows_of(source, found)
    return None if rows is None or rows.rank != 2 else Rows(rows.tokens, (*rows.nodes, node), 2)


def _turned(node: fx.Node) -> object | None:
    """The matrices, three dimensions in all, whose rows are the columns of a node's."""
    if calls(node, _aten.transpose.int):
        values = arguments_of(node, _aten.transpose.int)
        dims = [values.get("dim0"), values.get("dim1")]
        is_turned = all(type(dim) is int for dim in dims) and {dim % 3 for dim in dims if type(dim) is int} == {1, 2}
        return values.get("input") if is_turned else None
    if calls(node, _aten.permute.default):
        base, *dims = node.args if node.args else (node.kwargs.get("input"),)
        first = dims[0] if dims else node.kwargs.get("dims")
        order = list(first) if isinstance(first, list | tuple) else dims
        is_turned = len(order) == 3 and all(type(dim) is int for dim in order)
        return base if is_turned and [cast("int", dim) % 3 for dim in order] == [0, 2, 1] else None
    return None


def _summed(node: fx.Node, found: Mapping[fx.Node, Operation]) -> Rows | None:
    """What ``einsum`` adds up, if that is along rows: their last letter, which the result has not."""
    equation, *operands = node.args or (None,)
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    if not isinstance(equation, str) or "->" not in equation or node.kwargs.keys() - {"path"}:
        return None
    inputs, _, output = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    rows = [rows_of(operand, found) for operand in operands]
    if len(letters) != len(rows) or not all(each.isalpha() for each in letters) or len(set(output)) != len(output):
        return None
    summed = {each[-1] for each in letters}
    if len(summed) != 1 or summed & set(output) or {*"".join(letters)} - summed != set(output):
        return None
    tokens, nodes = list[Any](), list[fx.Node]()
    for number, (each, names) in enumerate(zip(rows, letters, strict=True)):
        own = names[:-1]
        if each is None or each.rank != len(own) or list(own) != [letter for letter in output if letter in own]:
            return None
        placed = each.placed([own.index(letter) if letter in own else None for letter in output])
        tokens += [*placed.tokens, *(["mul"] if number else [])]
        nodes += placed.nodes
    return Rows(tuple(tokens), tuple(dict.fromkeys(nodes)), len(output))
