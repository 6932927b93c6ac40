"""Sparse times dense matrices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.reductions import coo_request, csr_request, segment_request
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_rows
from daedal.compiler.frontends.torch.operators import Overload, calls
from daedal.compiler.frontends.torch.ops import csr_order
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.reductions import KNOWN, MODES, SORTED, check_extreme, check_zeros, why_no_mode
from daedal.compiler.frontends.torch.ops.row_scores import product_of
from daedal.compiler.frontends.torch.ops.tensors import array_of, numbers_of, table_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.operations import EXTREMES
from daedal.runtime.request import Request

_aten = torch.ops.aten

_VECTOR = "what a sparse matrix is multiplied with must have 2 dimensions: use A @ x.unsqueeze(1)"


@dataclass(frozen=True)
class SparseProduct(Operation):
    """A sparse matrix (COO, CSR or CSC) times a dense one, ``table``."""

    takes_results = True
    targets: ClassVar[tuple[Overload, ...]] = (_aten.mm.default, _aten.matmul.default, _aten._sparse_mm.default)
    line = Line(
        "`torch.sparse.mm(A, x)`, `A @ x`, A in COO (also `A.t()`, also not coalesced), CSR or CSC",
        "a weighted sum for each row",
        "2-D; CSR and CSC where PyTorch adds in order, which it may not for 4 to 24 columns; `daedal.compile` only, as "
        "Dynamo does not trace sparse inputs; other layouts are refused with what to convert them to",
    )
    remark = SORTED
    adds_rows = True

    matrix: object
    is_exact: bool = field(default=True, kw_only=True)

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if not _has_sparse(node):
            return product_of(node, found)
        if len(node.args) < 2:
            return "it must be a product of two matrices alone"
        matrix, table, *others = node.args
        layouts = _layouts(node)
        if layouts[1] is not torch.strided:
            return (
                "a sparse matrix must be the first of the two, and the other one dense: for x @ A use "
                "(A.t() @ x.t()).t(), for a sparse x use x.to_dense()"
            )
        if layouts[0] not in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
            return f"the matrix must be COO, CSR or CSC, not {layouts[0]}: use to_sparse_csr() or to_sparse_coo()"
        if getattr(example_of(table), "ndim", 2) == 1:
            return _VECTOR
        if not is_rows(table) or example_of(matrix).dtype is not example_of(table).dtype:
            return f"matrix and rows must have 2 dimensions and be of one type, {KNOWN}: use float()"
        if layouts[0] is not torch.sparse_coo and example_of(matrix).dtype is not torch.float32:
            return f"a matrix of {example_of(matrix).dtype} must be COO, not {layouts[0]}: use to_sparse_coo()"
        return cls._of(node, table, matrix, others)

    @classmethod
    def _of(cls, node: fx.Node, table: object, matrix: object, others: Sequence[object]) -> Operation | str | None:
        """The operation, with the arguments behind the matrices."""
        return "it must be a product of two matrices alone" if others else cls(node.name, table, matrix)

    @property
    def sources(self) -> tuple[object, ...]:
        """The two matrices."""
        return self.matrix, self.table

    def request(self, matrix: Tensor, table: Tensor) -> Request:
        """See ``coo_request`` and ``csr_request``: of rows in COO, PyTorch adds with fused products, in CSR often."""
        table = table_of(self.name, table, ROW_TYPES)
        if matrix.dim() != 2 or matrix.dense_dim() or matrix.shape[1] != len(table):
            raise UnsupportedOperation(
                f"{self.name}: the matrix must have 2 dimensions, the second of {len(table)}, "
                f"not shape {tuple(matrix.shape)}"
            )
        if matrix.layout is torch.sparse_coo:
            row, column = map(array_of, matrix._indices())
            return coo_request(self.name, table, (row, column), numbers_of(matrix._values()), len(matrix))
        if matrix.layout is torch.sparse_csc:
            matrix = matrix.to_sparse_csr()  # as PyTorch does
        return self._compressed(matrix, table)

    def _compressed(self, matrix: Tensor, table: Tensor) -> Request:
        """The request for a CSR matrix."""
        is_fused = self._is_fused(table.shape[1])
        columns, offsets, values = map(array_of, (matrix.col_indices(), matrix.crow_indices(), matrix.values()))
        return csr_request(self.name, table, columns, offsets, values, is_fused=is_fused)

    def _is_fused(self, width: int, reduce: str = "") -> bool:
        """Whether PyTorch rounds products and sums at once; UnsupportedOperation for an order that bags do not have."""
        order = csr_order.order_of(width, reduce)
        if order is None and self.is_exact:
            raise UnsupportedOperation(
                f"{self.name}: PyTorch adds the products of a CSR matrix with rows of {width} elements in an order of "
                "its own on this processor: use to_sparse_coo(), or exact=False"
            )
        return order != csr_order.ROUNDED

    def inexact(self) -> Operation:
        """See ``Operation``."""
        return replace(self, is_exact=False)

    def in_torch(self, matrix: Tensor, table: Tensor) -> Tensor:
        """The product."""
        product: Tensor = torch.sparse.mm(matrix, table)
        return product


@dataclass(frozen=True)
class SparseReduction(SparseProduct):
    """The same with a reduction of its own, ``mode``."""

    targets = (_aten._sparse_mm.reduce,)
    line = Line(
        "`torch.sparse.mm(A, x, reduce)` (`sum`, `mean`, `amax`, `amin`)",
        "a bag for each row",
        "CSR; for amax and amin a matrix of ones, and what a maximum asks for",
    )

    mode: str = "sum"

    @classmethod
    def _of(cls, node: fx.Node, table: object, matrix: object, others: Sequence[object]) -> Operation | str | None:
        reduce = next(iter(others), node.kwargs.get("reduce"))
        if reduce not in MODES:
            return why_no_mode(reduce, ("sum", "mean", "amax", "amin"))
        if _layouts(node)[0] is not torch.sparse_csr:
            return f"the matrix must be CSR, not {_layouts(node)[0]}"
        return cls(node.name, table, matrix, str(reduce))

    def _compressed(self, matrix: Tensor, table: Tensor) -> Request:
        """See ``csr_request``; a maximum or minimum of products is one of rows if all weights are 1."""
        columns, offsets, values = map(array_of, (matrix.col_indices(), matrix.crow_indices(), matrix.values()))
        mode = MODES[self.mode]
        if mode not in EXTREMES:
            is_fused = self._is_fused(table.shape[1], self.mode)
            return csr_request(self.name, table, columns, offsets, values, is_fused=is_fused, mode=self.mode)
        if (values != 1).any():
            raise UnsupportedOperation(f"{self.name}: for a {mode}imum all values of the matrix must be 1")
        check_extreme(self.name, mode, table)
        check_zeros(self.name, mode, table)
        return segment_request(self.name, table, columns, None, offsets, mode)

    def in_torch(self, matrix: Tensor, table: Tensor) -> Tensor:
        """The product."""
        product: Tensor = torch.sparse.mm(matrix, table, self.mode)
        return product


@dataclass(frozen=True)
class OtherSparseProduct(SparseProduct):
    """Products of sparse matrices that the machine has no program for: it is said what to use instead."""

    targets = (_aten.mv.default, _aten.addmm.default, _aten._sparse_addmm.default)
    line = Line(
        "`mv`, `addmm`, `torch.sparse.addmm` of a sparse matrix", "nothing", "`explain()` says what to use instead"
    )

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> str | None:
        """As of any operation."""
        if not _has_sparse(node):
            return None
        if calls(node, _aten.mv.default):
            return _VECTOR
        return "it must be a product alone: use torch.sparse.mm(A, x), and add to it"


def _layouts(node: fx.Node) -> list[torch.layout]:
    return [getattr(example_of(value), "layout", torch.strided) for value in node.args]


def _has_sparse(node: fx.Node) -> bool:
    return not writes_out(node) and any(layout is not torch.strided for layout in _layouts(node))
