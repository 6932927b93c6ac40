"""Gathers of whole rows: embeddings, and what does the same by another name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, fx
from torch.nn import functional

from daedal.compiler.frontends.requests.lookups import lookup_request
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_copied, is_integers
from daedal.compiler.frontends.torch.operators import arguments_of, calls
from daedal.compiler.frontends.torch.ops.max_norm import why_renormalised
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.tensors import array_of, column_of, flat_rows, integers_of, rows_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Request

_aten = torch.ops.aten

ALONG_ROWS = (0, -2)
"""Names of the first dimension of rows, which have two: layers of PyTorch Geometric call it -2."""


def is_first(table: object, dim: object) -> bool:
    """Whether this is the first dimension of a table."""
    known = example_of(table)
    return dim == 0 or (isinstance(known, Tensor) and dim == -known.dim())


@dataclass(frozen=True)
class Lookup(Operation):
    """A gather of the rows of ``table`` that ``indices`` name; ``wraps``: negative ones count from the end."""

    can_share = True
    wraps: ClassVar[bool] = False
    can_pool: ClassVar[bool] = True
    """A sum or mean of the rows may be done with it."""

    indices: object

    @property
    def sources(self) -> tuple[object, ...]:
        """Table and indices."""
        return self.table, self.indices

    @property
    def is_direct(self) -> bool:
        """They are, unless indices are changed."""
        return not self.wraps

    def request(self, table: Tensor, indices: Tensor) -> Request:
        """See ``lookup_request``."""
        rows = rows_of(self.name, flat_rows(self.name, table))
        integers = integers_of(self.name, "indices", indices)
        self.check_order(indices)
        request = lookup_request(self.name, rows, integers, wraps=self.wraps)
        return request if table.dim() == 2 else replace(request, shape=(*integers.shape, *table.shape[1:]))

    def check_order(self, indices: Tensor) -> None:
        """Raise UnsupportedOperation if PyTorch lays the rows out in another order than theirs."""

    @classmethod
    def of(cls, node: fx.Node, table: object, indices: object) -> Self | str | None:
        """The operation that ``node`` is, if these are rows and integers; why it is none, if they are tensors."""
        known = example_of(table), example_of(indices)
        if not isinstance(table, fx.Node) or not isinstance(indices, fx.Node):
            return None
        if not all(isinstance(each, Tensor) for each in known):
            return None
        if not is_integers(indices) or not known[1].dim():
            what = "a tensor without dimensions" if not known[1].dim() else str(known[1].dtype)
            return f"the indices must be dense, of torch.int32 or torch.int64 and on the CPU, not {what}"
        if not is_copied(table):
            return (
                "the table must be dense, on the CPU and have 2 dimensions or more, of a type of whole "
                f"bytes, not {known[0].dim()} of {known[0].dtype}"
            )
        return cls(node.name, table, indices)


@dataclass(frozen=True)
class Embedding(Lookup):
    """``nn.Embedding``, with options of which only gradients depend (padding, ``is_sparse``, ``is_scaled``)."""

    targets = (_aten.embedding.default, functional.embedding)
    line = Line("`F.embedding`, `nn.Embedding`", "a gather", "no `max_norm`; int32 or int64 indices")
    is_embedding = True
    is_optional = False

    padding: int | None = None
    is_sparse: bool = False
    is_scaled: bool = False

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, _aten.embedding.default)
        padding = values.get("padding_idx")
        lookup = cls(
            node.name,
            values["weight"],
            values["input"] if "input" in values else values["indices"],
            None if padding == -1 and node.target is not functional.embedding else padding,
            bool(values.get("sparse")),
            bool(values.get("scale_grad_by_freq")),
        )
        return why_renormalised(values) or lookup

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """The rows."""
        return functional.embedding(
            indices, table, self.padding, sparse=self.is_sparse, scale_grad_by_freq=self.is_scaled
        )


@dataclass(frozen=True)
class IndexSelect(Lookup):
    """``table.index_select(0, indices)``."""

    targets = (_aten.index_select.default,)
    line = Line("`torch.index_select(table, 0, indices)`", "a gather", "along dim 0 or −2; int32 or int64 indices")
    is_optional = False

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, _aten.index_select.default)
        if writes_out(node):
            return "it writes into a tensor that it is given, out"
        table, dim = values.get("input"), values.get("dim")
        if not is_first(table, dim):
            return f"rows are gathered along dim 0, not {dim!r}"
        return cls.of(node, table, values.get("index"))

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """The rows."""
        return table.index_select(0, indices)


@dataclass(frozen=True)
class IndexedRows(Lookup):
    """``table[indices]``."""

    targets = (_aten.index.Tensor,)
    line = Line("`table[indices]`", "a gather", "int32 or int64 indices, of any shape")
    wraps = True

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        table, indices = (*node.args, None, None)[:2]
        if isinstance(indices, list | tuple):
            is_whole = all(isinstance(each, slice) and each == slice(None) for each in indices[1:])
            if not is_whole and any(isinstance(example_of(each), Tensor) for each in indices):
                return "rows are gathered by one tensor of indices in the first place, and all others must be :"
            indices = indices[0] if indices and is_whole else None
        return cls.of(node, table, indices)

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """The rows."""
        return table[indices]

    def check_order(self, indices: Tensor) -> None:
        """PyTorch lays the rows out as their indices lie in memory."""
        if not indices.is_contiguous() and indices.dim() > 1:
            raise UnsupportedOperation(
                f"{self.name}: PyTorch lays rows out as their indices lie in memory, which must be contiguous: "
                "use indices.contiguous()"
            )


@dataclass(frozen=True)
class GatheredRows(Lookup):
    """``torch.gather(table, 0, index)`` whose index is one column, expanded to the width of the rows."""

    targets = (_aten.gather.default,)
    line = Line(
        "`torch.gather(table, 0, column.expand(…))`",
        "a gather",
        "the index is one column, expanded to the table's width, or the table has one",
    )
    can_pool = False

    @property
    def is_direct(self) -> bool:
        """One column of the index is taken."""
        return False

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        values = arguments_of(node, _aten.gather.default)
        table, indices = values.get("input"), values.get("index")
        if not isinstance(table, fx.Node) or not isinstance(indices, fx.Node) or writes_out(node):
            return None
        if (
            values.get("dim") not in ALONG_ROWS
            or not is_integers(indices, 2)
            or not is_copied(table)
            or example_of(table).dim() != 2
        ):
            return "rows are gathered along dim 0 of a table of 2 dimensions, by int32 or int64 indices of 2 dimensions"
        is_narrow = example_of(table).shape[1] == 1 == example_of(indices).shape[1]
        if is_narrow or calls(indices, _aten.expand.default, _aten.expand_as.default):
            return cls(node.name, table, indices)
        return f"the index must be one column, expanded to the table's width, to name whole rows; {indices.name} is not"

    def request(self, table: Tensor, indices: Tensor) -> Request:
        """See ``lookup_request``."""
        rows = rows_of(self.name, table)
        integers_of(self.name, "indices", indices)
        return lookup_request(self.name, rows, array_of(column_of(self.name, indices, rows.shape[1])))

    def in_torch(self, table: Tensor, indices: Tensor) -> Tensor:
        """The rows."""
        return torch.gather(table, 0, indices)
