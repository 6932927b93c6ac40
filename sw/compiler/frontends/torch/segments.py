"""Sums, means and maxima of rows by destination, as graph convolutions have them, and sparse times dense matrices.

Each is a pooling of bags: the rows of one destination, in their order. Destinations that are not in order are brought
into it by a stable sort on the host, which keeps the order of what is added.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.operators import name_of

SPARSE = (torch.sparse_coo, torch.sparse_csr)

_ZEROS = ("zeros", "new_zeros", "zeros_like")
_MATRIX_PRODUCTS = ("mm", "matmul", "_sparse_mm")
_OTHER_PRODUCTS = {
    "mv": "what a sparse matrix is multiplied with must have 2 dimensions: use A @ x.unsqueeze(1)",
    "addmm": "it must be a product alone: use torch.sparse.mm(A, x), and add to it",
    "_sparse_addmm": "it must be a product alone: use torch.sparse.mm(A, x), and add to it",
}
"""Products of sparse matrices that the machine has no program for, and what to use instead."""

_GATHERS = ("index_select", "getitem", "index")
REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "max": "max"}
"""PyTorch's names of reductions, and the modes of bags that do the same."""

ALONG_ROWS = (0, -2)
"""Names of the first dimension of rows, which have two: layers of PyTorch Geometric call it -2."""

SORTED = "destinations that are not in order are sorted on the host, stably"


def is_rows(value: Any) -> bool:
    """Whether a node's value is known to be rows of f32 on the CPU."""
    example = example_of(value)
    return _is_floats(example) and example.dim() == 2


def _is_floats(example: Any) -> bool:
    return (
        isinstance(example, Tensor)
        and example.layout is torch.strided
        and example.dtype is torch.float32
        and example.device.type == "cpu"
    )


def is_integers(value: Any, dim: int | None = None) -> bool:
    """Whether a node's value is known to be a tensor of int32 or int64 on the CPU, with ``dim`` dimensions."""
    example = example_of(value)
    return (
        isinstance(example, Tensor)
        and example.dtype in (torch.int32, torch.int64)
        and example.device.type == "cpu"
        and example.layout is torch.strided
        and dim in (None, example.dim())
    )


def gathered(node: Any, dim: int | None = 1) -> tuple[fx.Node, fx.Node] | None:
    """Table and indices, if a node is a gather of whole rows: ``index_select`` or ``table[indices]``.

    The indices have ``dim`` dimensions; None: any number of them from 1 on.
    """
    if not isinstance(node, fx.Node) or not node.op.startswith("call_") or name_of(node) not in _GATHERS:
        return None
    if writes_out(node):
        return None
    names = ("input", "dim", "index") if name_of(node) == "index_select" else ("input", "index")
    named = dict(zip(names, node.args, strict=False)) | node.kwargs
    table, along, indices = named.get("input"), named.get("dim", 0), named.get("index")
    if isinstance(indices, list | tuple):
        is_whole = all(isinstance(each, slice) and each == slice(None) for each in indices[1:])
        indices = indices[0] if indices and is_whole else None
    if along not in ALONG_ROWS or not isinstance(table, fx.Node) or not isinstance(indices, fx.Node):
        return None
    if not is_rows(table) or not is_integers(indices, dim) or not example_of(indices).dim():
        return None
    return table, indices


def wraps_indices(gather: Any) -> bool:
    """Whether negative indices count from the end in a gather: in ``table[indices]`` they do."""
    return name_of(gather) in ("getitem", "index")


@dataclass(frozen=True)
class SegmentCall:
    """A reduction of rows by destination.

    Attributes
    ----------
    mode
        As of a bag.
    base
        What it is added to: zeros, of the result's shape. None for segments.
    table, indices, weights
        Rows, which of them (None: all, one after the other), and what they are multiplied with, one number each.
    keys
        Destination of each row, as 1-D, 2-D, or (``is_column``) one column; or the lengths of segments, or
        (``has_offsets``) where they begin and the last one ends.
    empty
        What a destination without rows gets.
    again
        What PyTorch does with base, rows and keys.
    """

    name: str
    mode: str
    base: Any
    table: Any
    indices: Any
    weights: Any
    keys: Any
    empty: float
    again: Callable[[Any, Tensor, Any], Tensor]
    is_column: bool = False
    has_offsets: bool = False
    wraps: bool = False
    """Negative indices count from the end."""

    remark = SORTED

    @property
    def sources(self) -> tuple[Any, ...]:
        """What it works on, in the order of ``segment_request``."""
        return self.base, self.table, self.indices, self.weights, self.keys

    def in_torch(self, base: Any, table: Any, indices: Any, weights: Any, keys: Any) -> Tensor:
        """What PyTorch makes of these values of its sources."""
        rows = table if indices is None else table[indices] if self.wraps else table.index_select(0, indices)
        if self.is_column:
            keys = keys.expand(-1, rows.shape[1])
        return self.again(base, rows if weights is None else rows * weights, keys)


@dataclass(frozen=True)
class SparseCall:
    """A sparse matrix (COO or CSR) times a dense one."""

    name: str
    matrix: Any
    table: Any

    remark = SORTED

    @property
    def sources(self) -> tuple[Any, ...]:
        """What it works on, in the order of ``sparse_request``."""
        return self.matrix, self.table

    def in_torch(self, matrix: Tensor, table: Tensor) -> Tensor:
        """What PyTorch makes of these values of its sources."""
        product: Tensor = torch.sparse.mm(matrix, table)
        return product


def read_sparse(node: fx.Node) -> tuple[SparseCall | None, str | None]:
    """The product of a sparse and a dense matrix that a node is, or why it stays in PyTorch; neither for others."""
    if name_of(node) not in (*_MATRIX_PRODUCTS, *_OTHER_PRODUCTS) or writes_out(node):
        return None, None
    layouts = [getattr(example_of(value), "layout", torch.strided) for value in node.args]
    if all(layout is torch.strided for layout in layouts):
        return None, None
    if name_of(node) in _OTHER_PRODUCTS or len(node.args) != 2:
        return None, _OTHER_PRODUCTS.get(name_of(node), "it must be a product of two matrices alone")
    matrix, table = node.args
    if layouts[1] is not torch.strided:
        return None, (
            "a sparse matrix must be the first of the two, and the other one dense: for x @ A use (A.t() @ x.t()).t(), "
            "for a sparse x use x.to_dense()"
        )
    if layouts[0] not in SPARSE:
        return None, f"the matrix must be COO or CSR, not {layouts[0]}: use to_sparse_csr() or to_sparse_coo()"
    if getattr(example_of(table), "ndim", 2) == 1:
        return None, _OTHER_PRODUCTS["mv"]
    if example_of(matrix).dtype is not torch.float32 or not is_rows(table):
        return None, "matrix and rows must have 2 dimensions and be of torch.float32: use float()"
    return SparseCall(node.name, matrix, table), None


def read_segments(node: fx.Node) -> tuple[SegmentCall | None, str | None]:
    """The reduction by destination that a node is, or why one stays in PyTorch; neither for another node."""
    if not node.op.startswith("call_") or writes_out(node):
        return None, None
    kind = name_of(node).removesuffix("_")
    if kind == "segment_reduce":
        return _read_segment_reduce(node)
    if kind not in ("index_add", "scatter_add", "scatter_reduce"):
        return None, None
    names = {"index_add": ("dim", "index", "source", "alpha")}.get(kind, ("dim", "index", "src", "reduce"))
    values: dict[str, Any] = dict(zip(("input", *names), node.args, strict=False)) | node.kwargs
    base = values.get("input")
    rows = values.get("source", values.get("src"))
    mode = REDUCTIONS.get(values.get("reduce", "sum"))
    reason = _reason(node, base, values, rows)
    if mode is None:
        reason = f"reduce must be sum, mean or amax, not {values['reduce']!r}"
    elif kind == "scatter_reduce" and mode != "sum" and values.get("include_self", True):
        reason = f"include_self must be False for reduce {values['reduce']!r}"
    if reason is not None or mode is None:
        return None, reason
    (table, indices, weights), wraps = _message(node, rows, mode)

    in_place = name_of(node).endswith("_")

    def again(base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        do = getattr(base, f"{kind}_" if in_place else kind)  # in place, the result lies in memory as the base does
        more = (values["reduce"],) if kind == "scatter_reduce" else ()
        options = {"include_self": values.get("include_self", True)} if kind == "scatter_reduce" else {}
        result: Tensor = do(0, keys, rows, *more, **options)
        return result

    column = _column(values["index"], rows)
    keys = values["index"] if column is None else column
    return SegmentCall(
        node.name, mode, base, table, indices, weights, keys, 0.0, again, column is not None, wraps=wraps
    ), None


def _column(index: fx.Node, rows: Any) -> fx.Node | None:
    """The one column that an index was expanded from to the width of ``rows``."""
    source = index.args[0] if name_of(index) in ("expand", "expand_as") else None
    if not isinstance(source, fx.Node) or not is_integers(source, 2):
        return None
    column, wide = example_of(source), example_of(index)
    is_column = column.shape[1] == 1 and column.shape[0] == wide.shape[0]
    return source if is_column and wide.shape[1] == example_of(rows).shape[1] else None


def plain_fills(graph: fx.Graph) -> None:
    """Make ``x.new_zeros(sizes)`` and ``x.new_ones(sizes)`` a matter of the sizes alone, so that ``x`` need not be made
    for it.
    """
    for make, name in ((torch.zeros, "new_zeros"), (torch.ones, "new_ones")):
        for node in [node for node in graph.nodes if name_of(node) == name]:
            is_plain = not {"dtype", "layout", "device", "requires_grad"} & node.kwargs.keys()
            if is_plain and _is_floats(example_of(node)):
                with graph.inserting_before(node):
                    filled = graph.call_function(make, (_sizes(node),), {"dtype": torch.float32, "device": "cpu"})
                filled.meta = dict(node.meta)
                node.replace_all_uses_with(filled)
                graph.erase_node(node)


def _sizes(node: fx.Node) -> Any:
    """The shape that ``new_zeros`` or ``new_ones`` is given: numbers, a list of them, or a ``torch.Size``."""
    first = node.args[1] if len(node.args) > 1 else node.kwargs["size"]
    is_shape = isinstance(first, list | tuple) or isinstance(example_of(first), list | tuple)
    return first if is_shape else node.args[1:]


def _reason(node: fx.Node, base: Any, values: Mapping[str, Any], rows: Any) -> str | None:
    """Why a reduction onto ``base`` stays in PyTorch."""
    if values.get("dim") not in ALONG_ROWS or not is_rows(base) or not is_rows(rows):
        return "it must be of rows of torch.float32 along dim 0"
    if not is_integers(values.get("index")):
        return "the index must be of torch.int32 or torch.int64"
    if not example_of(values["index"]).dim():
        return "the index must have 1 or 2 dimensions, not 0"
    if values.get("alpha", 1) != 1:
        return f"alpha must be 1, not {values['alpha']!r}"
    if not isinstance(base, fx.Node) or name_of(base) not in _ZEROS or writes_out(base):
        return "it must start from zeros made for it, by torch.zeros, zeros_like or new_zeros"
    if may_change([base], base, node):
        return "what it starts from is changed in place elsewhere"
    if name_of(node).endswith("_") and set(base.users) != {node}:
        return "what it changes in place is used elsewhere"
    return None


def _read_segment_reduce(node: fx.Node) -> tuple[SegmentCall | None, str | None]:
    values: dict[str, Any] = dict(zip(("data", "reduce"), node.args, strict=False)) | node.kwargs
    rows, initial = values.get("data"), values.get("initial")
    found = [name for name in ("lengths", "offsets", "indices") if values.get(name) is not None]
    mode = REDUCTIONS.get(values["reduce"])
    if mode is None:
        return None, f"reduce must be sum, mean or max, not {values.get('reduce')!r}"
    keys = values[found[0]] if len(found) == 1 and found[0] != "indices" else None
    has_offsets = found == ["offsets"]
    if not is_rows(rows) or not is_integers(keys, 1) or values.get("axis", 0) not in ALONG_ROWS:
        return None, "it must be of rows of torch.float32 with 1-D lengths or offsets, along axis 0"
    if initial is not None and (mode == "max" or initial != 0 or math.copysign(1, initial) < 0):
        return None, f"initial must be left out, or 0 for a sum or mean, not {initial!r}"
    (table, indices, weights), wraps = _message(node, rows, mode)
    empty = {"sum": 0.0, "mean": float("nan"), "max": float("-inf")}[mode] if initial is None else 0.0

    def again(base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        lengths, offsets = (None, keys) if has_offsets else (keys, None)
        return torch.segment_reduce(rows, values["reduce"], lengths=lengths, offsets=offsets, initial=initial)

    return SegmentCall(
        node.name, mode, None, table, indices, weights, keys, empty, again,
        has_offsets=has_offsets, wraps=wraps,
    ), None  # fmt: skip


def _message(node: fx.Node, rows: Any, mode: str) -> tuple[tuple[Any, Any, Any], bool]:
    """Table, indices and weights of what is reduced: a gather, one times a column of weights (but for a maximum, which
    bags take of rows as they are), or other rows; and whether negative indices count from the end. A gather whose
    parts change before ``node`` is done is none here.
    """
    found = gathered(rows)
    if found is not None and not may_change([rows, *found], rows, node):
        return (*found, None), wraps_indices(rows)
    is_product = isinstance(rows, fx.Node) and rows.op.startswith("call_") and name_of(rows) == "mul"
    if is_product and mode != "max" and len(rows.args) == 2 and not writes_out(rows):
        for part, weights in (rows.args, rows.args[::-1]):
            found, example = gathered(part), example_of(weights)
            if found is None or not is_rows(weights) or not isinstance(weights, fx.Node) or example.shape[1] != 1:
                continue
            if not may_change([rows, part, weights, *found], part, node):
                return (*found, weights), wraps_indices(part)
    return (rows, None, None), False


def messages_of(call: SegmentCall, node: fx.Node) -> Iterator[fx.Node]:
    """The nodes that only made what ``call``, which is ``node``, now takes apart; the last one first."""
    if call.indices is None:
        return
    rows = _rows_of(node)
    expanded = [user for user in rows.users if name_of(user) == "expand_as" and set(user.users) == {node}]
    if set(rows.users) == {node, *expanded}:
        yield rows
        if call.weights is not None:
            yield from (part for part in rows.all_input_nodes if gathered(part) and set(part.users) == {rows})


def _rows_of(node: fx.Node) -> fx.Node:
    position = 0 if name_of(node) == "segment_reduce" else 3
    named = [node.kwargs[name] for name in ("source", "src", "data") if name in node.kwargs]
    found = node.args[position] if len(node.args) > position else named[0]
    assert isinstance(found, fx.Node)
    return found
