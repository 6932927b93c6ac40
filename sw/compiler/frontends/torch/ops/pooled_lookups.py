"""Sums and means of looked-up rows: ``F.embedding(indices, table).sum(1)`` and the like.

PyTorch adds such rows in an order that depends on their number and width : the machine does
so where that order is sums of 16 rows at a time; whether it is, PyTorch is asked once for each number and width.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.operators import name_of
from daedal.compiler.frontends.torch.segments import is_integers

BLOCK = 16
"""Rows that are added up one after the other, before their sum is added to that of those before."""

COLUMNS = 32
"""Columns that PyTorch adds in this way at a time; it does so with 4 as well, if these are all there are."""

MOST_ROWS = BLOCK * BLOCK
"""With more rows there are sums of sums of sums."""


@dataclass(frozen=True)
class PooledCall:
    """A sum or mean over dim 1 of the rows that 2-D indices look up.

    ``rows`` is the node that would look them up, ``mode`` is ``sum`` or ``mean``; with ``keeps_dim`` the result has 3
    dimensions.
    """

    name: str
    rows: fx.Node
    table: Any
    indices: Any
    mode: str
    keeps_dim: bool
    wraps: bool = False
    """Negative indices count from the end."""

    @property
    def sources(self) -> tuple[Any, ...]:
        """What it works on, in the order of ``pooled_request``."""
        return self.table, self.indices

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """What PyTorch makes of these values of its sources."""
        rows = table[indices] if self.wraps else torch.nn.functional.embedding(indices, table)
        pool = torch.sum if self.mode == "sum" else torch.mean
        return pool(rows, 1, keepdim=self.keeps_dim)


def read_pooled(node: fx.Node, rows: fx.Node, table: Any, indices: Any, *, wraps: bool) -> PooledCall | None:
    """The pooling that ``node`` does with the looked-up ``rows``, if it is one that the machine may do; ``wraps`` as in
    ``PooledCall``.
    """
    values: dict[str, Any] = dict(zip(("input", "dim", "keepdim"), node.args, strict=False)) | node.kwargs
    dim, keeps_dim = values.get("dim"), values.get("keepdim", False)
    if isinstance(dim, list | tuple):
        dim = dim[0] if len(dim) == 1 else None
    known = name_of(node) in ("sum", "mean") and is_integers(indices, 2) and not isinstance(dim, bool)
    others = values.keys() - {"input", "dim", "keepdim"}
    if not known or dim not in (1, -2) or any(values[name] is not None for name in others):
        return None
    if values.get("input", rows) is not rows or set(rows.users) != {node} or not _may_follow(example_of(rows)):
        return None
    if may_change([rows, table, indices], rows, node):
        return None
    return PooledCall(node.name, rows, table, indices, name_of(node), bool(keeps_dim), wraps)


def _may_follow(rows: Any) -> bool:
    """Whether there are numbers of rows, or it is one, that the machine adds up as PyTorch does."""
    if not isinstance(rows, Tensor) or rows.dtype is not torch.float32:
        return False
    length, width = rows.shape[1:]
    is_short = not isinstance(length, int) or 1 <= length <= MOST_ROWS
    columns = width if isinstance(width, int) else width.node.hint  # of the example; int(width) would fix it
    return is_short and (columns is None or columns % COLUMNS == 0 or columns == 4)


def adds_in_blocks(length: int, width: int) -> bool:
    """Whether PyTorch sums over so many rows of this width in blocks of ``BLOCK``."""
    return 1 <= length <= MOST_ROWS and (width % COLUMNS == 0 or width == 4) and _is_so(length, width)


ORDER = (
    f"in an order of its own; the machine can follow it along dim 1, for 1 to {MOST_ROWS} rows of 4 or a multiple of "
    f"{COLUMNS} elements that nothing else uses"
)
"""What there is to say of others."""


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
