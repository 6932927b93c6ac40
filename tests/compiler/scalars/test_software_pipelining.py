"""Sums along rows that are computed while later iterations go on: the loops, compared with NumPy bit for bit."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32
from daedal.compiler.backend.software_pipelining import Overlap, Parts
from daedal.compiler.functions import numpy_sigmoid
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import KEPT as OLDEST_KEPT
from daedal.hw.isa.instructions import Mode, OperandKind, VectorOp
from daedal.hw.isa.spec.reduction import reduce
from tests.compiler.kernels.kernel_support import floats, same_bits
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

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


@daedal.kernel
def twice(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], x[columns[e], :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def beside_sigmoid(
    out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E], more: f32[N], z: f32[N]
):
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]
    for n in range(N):
        more[n] = daedal.sigmoid(z[n])


KERNELS = (weighted, rectified, onto, shifted, twice)
KEPT = (weighted, rectified, onto, twice)
"""What a machine that keeps rows overlaps."""

ROTATED = (weighted, rectified, twice)
"""What others do."""

WITHOUT = replace(Config.preset("ddr3"), name="keeps-none", kept_beats=0)


@pytest.fixture(params=OPENED, scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, config="ddr3") as opened:
        yield opened


@pytest.fixture(params=[16, 40, 64, 100], scope="module")
def small(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    """Room for few rows or none."""
    config = replace(Config.preset("ddr3"), name=f"keeps-{request.param}", kept_beats=request.param)
    with daedal.Device.open("emulator", config=config) as opened:
        yield opened


def keeps(executable: Any) -> bool:
    """Whether a row is kept."""
    return re.search(r"a\.number=[23] a\.kind=queue", executable.asm()) is not None


def second_use(executable: Any) -> list[str]:
    """What explain() says of rows that wait."""
    lines = executable.explain().splitlines()
    return [line for line in lines if line.startswith("code generation: loop %e: rows wait for the sum along them")]


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
                other = row if kernel is twice else y[v]
                s = np.float32(reduce(VectorOp.MUL_ADD, row, other))
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


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("width", [5, 16, 33, 64, 256])
def test_same_bits_as_numpy(device: daedal.Device, kernel: Any, width: int, rng: np.random.Generator) -> None:
    executable = run(device, kernel, arguments(rng, width))
    assert keeps(executable) == (kernel in KEPT), executable.asm()
    # Short rows come from several nodes in turn where they cannot wait for their sums.
    assert ("come in turn" in executable.explain()) == (kernel not in KEPT and width <= 16)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("width", [16, 33, 64, 256])
def test_a_machine_that_keeps_none(kernel: Any, width: int, rng: np.random.Generator) -> None:
    with daedal.Device.open("emulator", config=WITHOUT) as device:
        executable = run(device, kernel, arguments(rng, width))
    assert not keeps(executable)
    assert ("rotate=1" in executable.asm()) == (kernel in ROTATED), executable.asm()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("width", [33, 64, 80, 200])
def test_room_for_few_rows(small: daedal.Device, kernel: Any, width: int, rng: np.random.Generator) -> None:
    executable = run(small, kernel, arguments(rng, width))
    room = small.config.kept_beats // -(-width // small.config.lanes)
    assert keeps(executable) == (kernel in KEPT and room > 1)


def test_constants_do_not_rotate(device: daedal.Device, rng: np.random.Generator) -> None:
    """Constants of another loop that fill the scalar registers, those that rotate among them."""
    out, x, *others = arguments(rng, 64)
    more, z = np.zeros(len(x), np.float32), floats(rng, len(x))
    given = [out, x, *others, more, z]
    wanted = expected(weighted, *given[:5])
    executable = daedal.compile(beside_sigmoid, given, device=device)
    executable(*given)
    assert same_bits(out, wanted)
    assert same_bits(more, numpy_sigmoid(z))
    assert "rotate_scalars" not in executable.asm()


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_registers_that_must_be_empty_are_written_by_no_other_callback(distance: int) -> None:
    """Those whose names rows and weights have in the iterations before the first one: 1 to the distance.

    Accumulators come last when the others rotate, so vector registers have other numbers then.
    """
    config, accumulators = Config.preset("ddr3"), 2
    overlap = Overlap(config, accumulators, 0, lambda n: 64, lambda n: True)
    parts = Parts([], [], row=accumulators, weight=0, distance=distance)
    nothing = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": {"kind": OperandKind.SCALAR}, "destination": 0}
    for kind, first in ((Mode.SCALAR, 0), (Mode.VECTOR, accumulators)):
        for name in range(config.rotating_registers):
            write = {"op": VectorOp.MOVE, "mode": kind, "a": {"kind": OperandKind.QUEUE}, "destination": first + name}
            alone = overlap.leaves_alone(parts, [[nothing], [nothing, write]])
            assert alone == (not 1 <= name <= distance), (kind, name)
    partial = {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": {"kind": OperandKind.QUEUE}, "destination": 0}
    assert not overlap.leaves_alone(parts, [[{**partial, "c": accumulators + distance}]])
    assert overlap.leaves_alone(parts, [[{**partial, "c": 0}]])


def test_both_ways_give_the_same_bits(device: daedal.Device, rng: np.random.Generator) -> None:
    for opt in (2, 3):
        executable = run(device, weighted, arguments(rng, 64), opt)
        assert keeps(executable) == (opt == 3)
        assert len(second_use(executable)) == (opt == 3)


@pytest.mark.parametrize(("kept", "wanted"), [(256, 5), (64, 3), (40, 1), (16, 2), (0, 2)])
def test_explain_says_by_how_many_iterations(kept: int, wanted: int, rng: np.random.Generator) -> None:
    """As many rows as the loop's end uses: instructions there that take one of those kept, or rotated."""
    config = replace(Config.preset("ddr3"), name="keeps-so-many", kept_beats=kept)
    with daedal.Device.open("emulator", config=config) as device:
        executable = run(device, weighted, arguments(rng, 64))
    (line,) = second_use(executable)
    uses = re.findall(r"op=mul_add .* a\.number=(\d+) .*kind=scalar_register .*c=", executable.asm())
    distance = max(map(int, uses)) - OLDEST_KEPT if keeps(executable) else len(uses) - 1
    assert keeps(executable) == (kept > 16) and distance == wanted
    how = "the machine keeps them" if keeps(executable) else "in registers that rotate"
    assert line.endswith(f"; their second use is {distance} iteration{'s' * (distance > 1)} later") and how in line
    if keeps(executable):
        assert {*map(int, uses)} == {*range(OLDEST_KEPT, OLDEST_KEPT + distance + 1)}


def test_explain_says_nothing_of_rows_used_at_once(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = run(ddr3, shifted, arguments(rng, 64))
    assert not keeps(executable) and not second_use(executable)
