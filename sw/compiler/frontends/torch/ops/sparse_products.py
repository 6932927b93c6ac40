"""Sparse times dense matrices."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.reductions import coo_request, csr_request
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_rows
from daedal.compiler.frontends.torch.operators import calls
from daedal.compiler.frontends.torch.ops import csr_order
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.reductions import KNOWN, SORTED
from daedal.compiler.frontends.torch.ops.tensors import array_of, numbers_of, table_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.request import Request

_aten = torch.ops.aten

_VECTOR = "what a sparse matrix is multiplied with must have 2 dimensions: use A @ x.unsqueeze(1)"


@dataclass(frozen=True)
class SparseProduct(Operation):
    """A sparse matrix (COO or CSR) times a dense one, ``table``."""

    targets = (_aten.mm.default, _aten.matmul.default, _aten._sparse_mm.default)
    line = Line(
        "`torch.sparse.mm(A, x)`, `A @ x`, A in COO (also `A.t()`, also not coalesced) or CSR",
        "a weighted sum for each row",
        "2-D; `daedal.compile` only, as Dynamo does not trace sparse inputs; other layouts are refused with what to "
        "convert them to",
    )
    remark = SORTED
    adds_rows = True

    matrix: object

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if not _has_sparse(node):
            return None
        if len(node.args) != 2:
            return "it must be a product of two matrices alone"
        matrix, table = node.args
        layouts = _layouts(node)
        if layouts[1] is not torch.strided:
            return (
                "a sparse matrix must be the first of the two, and the other one dense: for x @ A use "
                "(A.t() @ x.t()).t(), for a sparse x use x.to_dense()"
            )
        if layouts[0] not in (torch.sparse_coo, torch.sparse_csr):
            return f"the matrix must be COO or CSR, not {layouts[0]}: use to_sparse_csr() or to_sparse_coo()"
        if getattr(example_of(table), "ndim", 2) == 1:
            return _VECTOR
        if not is_rows(table) or example_of(matrix).dtype is not example_of(table).dtype:
            return f"matrix and rows must have 2 dimensions and be of one type, {KNOWN}: use float()"
        if layouts[0] is torch.sparse_csr and example_of(matrix).dtype is not torch.float32:
            return f"a matrix of {example_of(matrix).dtype} must be COO, not CSR: use to_sparse_coo()"
        return cls(node.name, table, matrix)

    @property
    def sources(self) -> tuple[object, ...]:
        """The two matrices."""
        return self.matrix, self.table

    def request(self, matrix: Tensor, table: Tensor) -> Request:
        """See ``coo_request`` and ``csr_request``: of rows in COO, PyTorch adds with fused products, in CSR not."""
        table = table_of(self.name, table, ROW_TYPES)
        if matrix.dim() != 2 or matrix.dense_dim() or matrix.shape[1] != len(table):
            raise UnsupportedOperation(
                f"{self.name}: the matrix must have 2 dimensions, the second of {len(table)}, "
                f"not shape {tuple(matrix.shape)}"
            )
        if matrix.layout is torch.sparse_coo:
            row, column = map(array_of, matrix._indices())
            return coo_request(self.name, table, (row, column), numbers_of(matrix._values()), len(matrix))
        if not csr_order.adds_in_order():
            raise UnsupportedOperation(
                f"{self.name}: PyTorch adds the products of a CSR matrix in an order of its own on this processor: use "
                "to_sparse_coo()"
            )
        columns, offsets, values = matrix.col_indices(), matrix.crow_indices(), matrix.values()
        return csr_request(self.name, table, array_of(columns), array_of(offsets), array_of(values))

    def in_torch(self, matrix: Tensor, table: Tensor) -> Tensor:
        """The product."""
        product: Tensor = torch.sparse.mm(matrix, table)
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
