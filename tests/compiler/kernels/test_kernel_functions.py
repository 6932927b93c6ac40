"""Square roots, exponentials and sigmoids of elements: right, or refused where a local row would take them."""

from pathlib import Path

import numpy as np
import pytest

import daedal
from tests.compiler.kernels.kernel_support import check, floats, load_kernel
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

U, D = 3, 8
ARGUMENTS = "out: f32[U, D], total: f32[U], x: f32[U, D], y: f32[P, D], off: i64[U + 1]"
TAKEN = "for d in range(D):\n    out[u, d] = r[d]"
OF_BAGS = "for p in range(off[u], off[u + 1]):\n    for d in range(D):\n        r[d] "

IN_LOCAL_ROWS = {
    "exp": "for d in range(D):\n    r[d] = daedal.exp(x[u, d])\n" + TAKEN,
    "a sum with exp": "for d in range(D):\n    r[d] += daedal.exp(x[u, d])\n" + TAKEN,
    "sqrt": "for d in range(D):\n    r[d] = daedal.sqrt(x[u, d])\n" + TAKEN,
    "sigmoid before a sum along the row": (
        "for d in range(D):\n    r[d] = daedal.sigmoid(x[u, d])\ntotal[u] = daedal.dot(r, x[u, :])"
    ),
    "exp over a bag": OF_BAGS + "+= daedal.exp(y[p, d])\n" + TAKEN,
    "a maximum of roots over a bag": OF_BAGS + "= max(r[d], daedal.sqrt(y[p, d]))\n" + TAKEN,
    "a condition on the column": "for d in range(D):\n    if d > 2:\n        r[d] = x[u, d]\n" + TAKEN,
    "elements read one by one": (
        "for d in range(D):\n    r[d] = x[u, d]\nfor p in range(off[u], off[u + 1]):\n    out[u, p] = r[p]"
    ),
}


def arguments(rng: np.random.Generator) -> tuple[object, ...]:
    x, y = abs(floats(rng, U, D)), abs(floats(rng, 7, D))
    return np.zeros((U, D), np.float32), np.zeros(U, np.float32), x, y, np.array([0, 2, 2, 7])


def body(text: str) -> str:
    lines = "".join(f"        {line}\n" for line in text.splitlines())
    return f"@daedal.kernel\ndef f({ARGUMENTS}):\n    for u in range(U):\n{lines}"


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("name", IN_LOCAL_ROWS)
def test_not_in_a_local_row(ddr3: daedal.Device, tmp_path: Path, name: str, opt: int, rng: np.random.Generator) -> None:
    kernel = load_kernel(tmp_path, body("r = daedal.zeros(D)\n" + IN_LOCAL_ROWS[name]))
    with pytest.raises(daedal.UnsupportedOperation, match=r"local row %r must be used in loops along it.*") as refused:
        daedal.compile(kernel, arguments(rng), device=ddr3, opt=opt)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("function", ["sqrt", "exp", "sigmoid"])
def test_straight_into_an_array(ddr3: daedal.Device, tmp_path: Path, function: str, rng: np.random.Generator) -> None:
    text = f"for d in range(D):\n    out[u, d] = daedal.{function}(x[u, d])"
    check(ddr3, load_kernel(tmp_path, body(text)), *arguments(rng))


def test_of_a_row_of_one_element(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    text = "r = daedal.zeros(1)\nfor d in range(1):\n    r[d] = daedal.exp(x[u, d])\ntotal[u] = r[0]"
    check(ddr3, load_kernel(tmp_path, body(text)), *arguments(rng))
