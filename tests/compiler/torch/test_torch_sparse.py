"""Products of sparse matrices of every layout: on the device, or an error that names the way out."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits
from tests.compiler.torch.dynamo_support import Layer

__all__ = ["ddr3"]

# PyTorch calls its support of compressed layouts new.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

ROWS, COLUMNS, WIDTH = 6, 8, 16
DENSE = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(1)) * (torch.arange(COLUMNS) % 3 == 0)
COO = DENSE.to_sparse()
TWICE = torch.sparse_coo_tensor(
    torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.tensor([1.5, 2.5, 3.0]), (ROWS, COLUMNS), check_invariants=True
)
SHORT, LONG = (torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(2)) for size in (ROWS, COLUMNS))


def product(matrix: Tensor, rows: Tensor) -> Tensor:
    return matrix @ rows


def transposed(matrix: Tensor, rows: Tensor) -> Tensor:
    return matrix.t() @ rows


RIGHT: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor]] = {
    "a transposed input": (product, COO.t(), SHORT),
    "transposed in the module": (transposed, COO, SHORT),
    "not coalesced": (product, TWICE, LONG),
    "not coalesced, transposed": (product, TWICE.t(), SHORT),
    "transposed twice": (transposed, COO.t(), LONG),
    "coalesced in the module": (lambda matrix, rows: matrix.t().coalesce() @ rows, COO, SHORT),
}


@pytest.mark.parametrize("name", RIGHT)
def test_matrices_of_coordinates(name: str, ddr3: daedal.Device) -> None:
    layer, matrix, rows = RIGHT[name]
    executable = daedal.compile(Layer(layer), (matrix, rows), device=ddr3)
    assert same_bits(executable(matrix, rows), layer(matrix, rows))
    assert executable.stats.launches == 1


def test_a_plain_matrix_and_then_a_transposed_one(ddr3: daedal.Device) -> None:
    executable = daedal.compile(Layer(product), (COO, LONG), device=ddr3)
    for matrix, rows in ((COO, LONG), (COO.t(), SHORT), (TWICE, LONG)):
        assert same_bits(executable(matrix, rows), product(matrix, rows))
        assert executable.stats.launches == 1


LAYOUT = r"must be COO or CSR, not torch.sparse_{}: use to_sparse_csr\(\) or to_sparse_coo\(\)"
REFUSED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[], Tensor], Tensor, str]] = {
    "CSR, transposed": (transposed, DENSE.to_sparse_csr, SHORT, LAYOUT.format("csc")),
    "CSR, a transposed input": (product, lambda: DENSE.to_sparse_csr().t(), SHORT, LAYOUT.format("csc")),
    "CSC": (product, DENSE.to_sparse_csc, LONG, LAYOUT.format("csc")),
    "BSR": (product, lambda: DENSE.to_sparse_bsr((2, 2)), LONG, LAYOUT.format("bsr")),
    "on the right": (lambda matrix, rows: rows.t() @ matrix, lambda: COO, SHORT, "must be the first of the two"),
    "a vector": (lambda matrix, rows: matrix @ rows[:, 0], lambda: COO, LONG, r"use A @ x.unsqueeze\(1\)"),
    "added": (
        lambda matrix, rows: torch.sparse.addmm(rows[:6] * 2, matrix, rows),
        lambda: COO,
        LONG,
        r"use torch.sparse.mm\(A, x\), and add to it",
    ),
    "double": (lambda matrix, rows: matrix.double() @ rows.double(), lambda: COO, LONG, r"use float\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_the_way_out(name: str, ddr3: daedal.Device) -> None:
    layer, make, rows, message = REFUSED[name]
    with pytest.raises(daedal.UnsupportedOperation, match=message) as error:
        daedal.compile(Layer(layer), (make(), rows), device=ddr3)
    assert "\n" not in str(error.value)


def test_the_way_out_of_another_layout(ddr3: daedal.Device) -> None:
    matrix = DENSE.to_sparse_csr().t()
    executable = daedal.compile(Layer(product), (matrix.to_sparse_coo(), SHORT), device=ddr3)
    assert same_bits(executable(matrix.to_sparse_coo(), SHORT), product(matrix.to_sparse_coo(), SHORT))
    assert executable.stats.launches == 1
