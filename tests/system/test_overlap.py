"""Sums along rows that are computed while later iterations go on: the loops, compared with NumPy bit for bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32
from daedal.compiler.functions import numpy_sigmoid
from daedal.hw.isa.execute import VectorOp
from tests.system.kernel_support import floats, same_bits
from tests.unit.execute_unit.model import reduce

V, N, E, D = daedal.dims("V N E D")
OPENED = ["emulator", pytest.param("verilator", marks=(pytest.mark.rtl, pytest.mark.slow))]


@daedal.kernel
def weighted(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def rectified(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = max(daedal.dot(x[columns[e], :], y[v, :]), 0.0)
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def onto(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    for v in range(V):
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                out[v, d] += s * x[columns[e], d]


@daedal.kernel
def shifted(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.sigmoid(daedal.dot(x[columns[e], :], y[v, :]))
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


OVERLAPPED, NOT = (weighted, rectified), (onto, shifted)


@pytest.fixture(params=OPENED, scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, config="ddr3") as opened:
        yield opened


def arguments(rng: np.random.Generator, width: int) -> list[Any]:
    """Nodes with 0 to 9 edges, and rows with infinities, NaNs and -0.0."""
    x, y = floats(rng, 30, width), floats(rng, 24, width)
    for value in (np.inf, -np.inf, np.nan, -0.0):
        x[rng.integers(30), rng.integers(width)] = value
    x[7], y[5] = -0.0, -0.0
    pointers = np.concatenate([[0], np.cumsum(rng.integers(0, 10, 24))]).astype(np.int32)
    columns = rng.integers(0, 30, pointers[-1]).astype(np.int32)
    return [floats(rng, 24, width), x, y, pointers, columns]


def expected(kernel: Any, out: Any, x: Any, y: Any, pointers: Any, columns: Any) -> Any:
    """What the loops give, with sums along rows in the machine's order."""
    result = out.copy() if kernel is onto else np.zeros_like(out)
    with np.errstate(all="ignore"):
        for v in range(len(out)):
            for e in range(pointers[v], pointers[v + 1]):
                row = x[columns[e]]
                s = np.uint32(reduce(VectorOp.MUL_ADD, row.view(np.uint32), y[v].view(np.uint32))).view(np.float32)
                if kernel is rectified:
                    s = np.float32(0) if s < 0 else s
                if kernel is shifted:
                    s = numpy_sigmoid(np.array([s], np.float32))[0]
                result[v] = result[v] + s * row
    return result


def run(device: daedal.Device, kernel: Any, given: list[Any], opt: int = 3) -> Any:
    """The executable, after a call with the right result."""
    wanted = expected(kernel, *given)
    executable = daedal.compile(kernel, given, device=device, opt=opt)
    executable(*given)
    assert same_bits(given[0], wanted)
    return executable


@pytest.mark.parametrize("kernel", [*OVERLAPPED, *NOT], ids=["weighted", "rectified", "onto", "shifted"])
@pytest.mark.parametrize("width", [5, 16, 33, 64, 256])
def test_same_bits_as_numpy(device: daedal.Device, kernel: Any, width: int, rng: np.random.Generator) -> None:
    executable = run(device, kernel, arguments(rng, width))
    # Rows that fit a context's share come from several nodes in turn instead.
    assert ("rotate=1" in executable.asm()) == (kernel in OVERLAPPED and width > 16), executable.asm()


def test_both_ways_give_the_same_bits(device: daedal.Device, rng: np.random.Generator) -> None:
    for opt in (2, 3):
        executable = run(device, weighted, arguments(rng, 64), opt)
        assert ("rotate=1" in executable.asm()) == (opt == 3)
