"""Sums and means of looked-up rows: ``F.embedding(indices, table).sum(1)`` and the like.

PyTorch adds such rows in an order that depends on their number and width : the machine does
so where that order is sums of 16 rows at a time; whether it is, PyTorch is asked once for each number and width.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.lookups import pooled_request
from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_integers
from daedal.compiler.frontends.torch.operators import Overload, arguments_of, calls
from daedal.compiler.frontends.torch.ops.lookups import Lookup
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.row_scores import score_of
from daedal.compiler.frontends.torch.ops.tensors import integers_of, table_of, weights_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Request

_aten = torch.ops.aten

BLOCK = 16
"""Rows that are added up one after the other, before their sum is added to that of those before."""

COLUMNS = 32
"""Columns that PyTorch adds in this way at a time; it does so with ``FEW_COLUMNS`` as well, if these are all."""

FEW_COLUMNS = 4

MOST_ROWS = BLOCK * BLOCK
"""With more rows there are sums of sums of sums."""

MOST_ROWS_OF_A_CHAIN = 1 << 16
"""Rows that are added one after the other where the order does not matter."""

ORDER = (
    f"in an order of its own; the machine can follow it along dim 1, for 1 to {MOST_ROWS} rows of 4 or a multiple of "
    f"{COLUMNS} elements of float32 that nothing else uses; others of float32 with exact=False"
)
"""What there is to say of others."""


@dataclass(frozen=True)
class PooledLookup(Operation):
    """A sum or mean over dim 1 of the rows that ``lookup``, which is the node ``rows``, finds for 2-D indices; with
    ``keeps_dim`` the result has 3 dimensions. With ``weights``, one for each row, such as a mask, the rows times these
    are the node ``product``.
    """

    targets: ClassVar[tuple[Overload]]
    mode: ClassVar[str]
    takes_results = True
    can_share = True

    lookup: Lookup
    rows: fx.Node
    keeps_dim: bool
    weights: object = None
    product: fx.Node | None = None
    is_exact: bool = True

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, cls.targets[0])
        rows = values.pop("input", None)
        lookup = found.get(rows)
        if isinstance(lookup, Lookup) and lookup.can_pool and _can_follow(node, rows, lookup, values):
            return cls(node.name, lookup.table, lookup, rows, bool(values["keepdim"]))
        if isinstance(rows, fx.Node) and (scaled := _scaled(rows, found)) is not None:
            part, lookup, weights = scaled
            is_so = set(rows.users) == {node} and _can_follow(rows, part, lookup, values)
            if is_so and not may_change([part, weights, lookup.table, lookup.indices], part, node):
                return cls(node.name, lookup.table, lookup, part, bool(values["keepdim"]), weights, rows)
        score = score_of(node, {**values, "input": rows}, cls.mode, found)
        if score is not None:
            return score
        has_rows = any(isinstance(found.get(source), Lookup) for source in node.all_input_nodes)
        return f"PyTorch adds such rows {ORDER}" if has_rows else None

    @property
    def sources(self) -> tuple[object, ...]:
        """Table and indices, and weights if there are some."""
        return self.lookup.sources if self.product is None else (*self.lookup.sources, self.weights)

    @property
    def absorbed(self) -> tuple[fx.Node, ...]:
        """The rows, and their products with weights."""
        return (self.rows,) if self.product is None else (self.product, self.rows)

    @property
    def why_inexact(self) -> str:
        """See ``Operation``."""
        return "" if not self.is_exact or _may_follow(example_of(self.rows)) else f"PyTorch adds such rows {ORDER}"

    def inexact(self) -> Operation:
        """See ``Operation``."""
        return replace(self, is_exact=False)

    def request(self, table: Tensor, indices: Tensor, weights: Tensor | None = None) -> Request:
        """See ``pooled_request``; UnsupportedOperation where PyTorch's order of additions is none that bags have, and
        that matters.
        """
        table, integers = table_of(self.name, table), integers_of(self.name, "indices", indices)
        self.lookup.check_order(indices)
        length, width = indices.shape[1], table.shape[1]
        follows = adds_in_blocks(length, width)
        if not follows and (self.is_exact or not 0 < length < MOST_ROWS_OF_A_CHAIN):
            raise UnsupportedOperation(f"{self.name}: PyTorch adds {length} rows of {width} elements {ORDER}")
        factors = None
        if weights is not None:
            factors = weights_of(self.name, weights.squeeze(2).to(table.dtype), table.dtype)
        return pooled_request(
            self.name, table, integers, self.mode,
            block=BLOCK if follows else None, weights=factors, keeps_dim=self.keeps_dim, wraps=self.lookup.wraps,
        )  # fmt: skip

    def in_torch(self, table: Tensor, indices: Tensor, weights: Tensor | None = None) -> Tensor:
        """The pooled rows."""
        rows = self.lookup.in_torch(table, indices)
        rows = rows if weights is None else rows * weights
        return torch.sum(rows, 1, keepdim=self.keeps_dim) if self.mode == "sum" else rows.mean(1, self.keeps_dim)


@dataclass(frozen=True)
class SummedLookup(PooledLookup):
    """Their sum."""

    targets = (_aten.sum.dim_IntList,)
    line = Line(
        "`F.embedding(…)`, `index_select` or `table[indices]`, also times a mask or weights, with `sum` over dim 1",
        "a bag for each row of indices",
        f"4 or a multiple of {COLUMNS} columns, up to {MOST_ROWS} rows",
    )
    mode = "sum"


@dataclass(frozen=True)
class AveragedLookup(PooledLookup):
    """Their mean."""

    targets = (_aten.mean.dim,)
    line = Line("… with `mean` over dim 1", "a bag for each row of indices", "as for `sum`")
    mode = "mean"


def _can_follow(node: fx.Node, rows: fx.Node, lookup: Lookup, options: Mapping[str, Any]) -> bool:
    """Whether ``node``, called with these options, pools rows of a lookup in a way that the machine may follow."""
    dim = options.get("dim")
    if isinstance(dim, list | tuple):
        dim = dim[0] if len(dim) == 1 else None
    if dim not in (1, -2) or isinstance(dim, bool) or not is_integers(lookup.indices, 2):
        return False
    if any(options[name] is not None for name in options.keys() - {"dim", "keepdim"}):
        return False
    known = example_of(rows)
    is_alone = (
        set(rows.users) == {node} and isinstance(known, Tensor) and known.dtype is torch.float32 and known.dim() == 3
    )
    return is_alone and not may_change([rows, lookup.table, lookup.indices], rows, node)


def _scaled(product: fx.Node, found: Mapping[fx.Node, Operation]) -> tuple[fx.Node, Lookup, fx.Node] | None:
    """Looked-up rows, how they are found, and what each is multiplied with, if ``product`` is that."""
    if not calls(product, _aten.mul.Tensor) or writes_out(product) or len(product.args) != 2:
        return None
    for part, weights in (product.args, product.args[::-1]):
        if not isinstance(part, fx.Node) or not isinstance(weights, fx.Node):
            continue
        lookup = found.get(part)
        if not isinstance(lookup, Lookup) or not lookup.can_pool:
            continue
        given, rows = example_of(weights), example_of(part)
        if not isinstance(given, Tensor) or given.dtype not in (torch.float32, torch.bool) or given.dim() != 3:
            continue
        if rows.dim() == 3 and given.shape[:2] == rows.shape[:2] and given.shape[2] == 1 and given.is_cpu:
            return part, lookup, weights
    return None


def _may_follow(rows: Any) -> bool:
    """Whether there are numbers of rows, or it is one, that the machine adds up as PyTorch does."""
    if not isinstance(rows, Tensor) or rows.dtype is not torch.float32:
        return False
    length, width = rows.shape[1:]
    is_short = not isinstance(length, int) or 1 <= length <= MOST_ROWS
    columns = width if isinstance(width, int) else width.node.hint  # of the example; int(width) would fix it
    return is_short and (columns is None or columns % COLUMNS == 0 or columns == FEW_COLUMNS)


def adds_in_blocks(length: int, width: int) -> bool:
    """Whether PyTorch sums over so many rows of this width in blocks of ``BLOCK``."""
    return 1 <= length <= MOST_ROWS and (width % COLUMNS == 0 or width == FEW_COLUMNS) and _is_so(length, width)


@cache
def _is_so(length: int, width: int) -> bool:
    """Ask PyTorch itself, of which there are others than the one whose rule this is."""
    random = torch.Generator().manual_seed(length)
    with torch.no_grad():
        rows = torch.randn(8, length, width, generator=random, dtype=torch.float32, device="cpu")
        rows *= torch.exp2(torch.randint(-8, 8, rows.shape, generator=random, device="cpu").to(torch.float32))
        total = torch.zeros(8, width, dtype=torch.float32, device="cpu")
        for first in range(0, length, BLOCK):
            block = torch.zeros(8, width, dtype=torch.float32, device="cpu")
            for row in range(first, min(first + BLOCK, length)):
                block = block + rows[:, row]
            total = total + block
        return torch.equal(total, rows.sum(1))
