"""Products of sparse matrices of every layout: on the device, or an error that names the way out."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import daedal
from daedal.compiler.frontends.torch.ops import csr_order
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
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


def reduced(how: str) -> Callable[[Tensor, Tensor], Tensor]:
    """A product with a reduction of its own."""

    def layer(matrix: Tensor, rows: Tensor) -> Tensor:
        found: Tensor = torch.sparse.mm(matrix, rows, how)
        return found

    return layer


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


LAYOUT = r"must be COO, CSR or CSC, not torch.sparse_{}: use to_sparse_csr\(\) or to_sparse_coo\(\)"
REFUSED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[], Tensor], Tensor, str]] = {
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


COMPRESSED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor], Tensor], int]] = {
    "CSR": (product, lambda matrix: matrix.to_sparse_csr(), COLUMNS),
    "CSC": (product, lambda matrix: matrix.to_sparse_csc(), COLUMNS),
    "CSR, transposed": (transposed, lambda matrix: matrix.to_sparse_csr(), ROWS),
    "CSC, transposed": (transposed, lambda matrix: matrix.to_sparse_csc(), ROWS),
    "CSR, a transposed input": (product, lambda matrix: matrix.to_sparse_csr().t(), ROWS),
    "CSR in the module": (lambda matrix, rows: matrix.to_sparse_csr() @ rows, lambda dense: dense.to_sparse(), COLUMNS),
    "sum": (reduced("sum"), lambda matrix: matrix.to_sparse_csr(), COLUMNS),
    "mean": (reduced("mean"), lambda matrix: matrix.to_sparse_csr(), COLUMNS),
    "amax": (reduced("amax"), lambda matrix: (matrix != 0).float().to_sparse_csr(), COLUMNS),
    "amin": (reduced("amin"), lambda matrix: (matrix != 0).float().to_sparse_csr(), COLUMNS),
}  # fmt: skip


@pytest.mark.parametrize("width", [1, 3, 33, 64, 700])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_matrices(name: str, width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Of widths that PyTorch adds in order, here and on most processors; the first row and column are empty."""
    layer, form, count = COMPRESSED[name]
    rows = wild_table(count, width, rng)
    if name == "amax":
        rows = rows.nan_to_num().abs()
    executable = None
    for density in (0.5, 1.0, 0.1):
        dense = wild_table(ROWS, COLUMNS, rng).nan_to_num() * torch.from_numpy(rng.random((ROWS, COLUMNS)) < density)
        dense[0], dense[:, 0] = 0, 0
        matrix = form(dense)
        executable = daedal.compile(Layer(layer), (matrix, rows), device=ddr3)
        assert same_bits(executable(matrix, rows), layer(matrix, rows))
        assert executable.stats.launches == 1


@pytest.mark.parametrize("width", [4, 8, 12, 16, 20, 24])
def test_widths_that_a_library_may_have_an_order_for(width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    matrix, rows = wild_table(30, 40, rng).nan_to_num().to_sparse_csr(), wild_table(40, width, rng)
    executable = daedal.compile(Layer(product), (matrix, rows), device=ddr3)
    assert same_bits(executable(matrix, rows), product(matrix, rows))
    assert executable.stats.launches == (csr_order.order_of(width) is not None)


def test_a_maximum_of_products_is_pytorchs(ddr3: daedal.Device) -> None:
    layer = reduced("amax")
    matrix = (DENSE != 0).float().mul(2).to_sparse_csr()
    executable = daedal.compile(Layer(layer), (matrix, LONG), device=ddr3)
    assert same_bits(executable(matrix, LONG), layer(matrix, LONG))
    assert not executable.stats.launches and "all values of the matrix must be 1" in executable.explain()


def test_the_way_out_of_another_layout(ddr3: daedal.Device) -> None:
    matrix = DENSE.to_sparse_csr().t()
    executable = daedal.compile(Layer(product), (matrix.to_sparse_coo(), SHORT), device=ddr3)
    assert same_bits(executable(matrix.to_sparse_coo(), SHORT), product(matrix.to_sparse_coo(), SHORT))
    assert executable.stats.launches == 1
