"""Ends of runs that come behind iterations of the next one: the loops, compared with Python bit for bit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.reduction import reduce
from tests.compiler.kernels.kernel_support import floats, same_bits
from tests.compiler.scalars.test_software_pipelining import OPENED, rectified, twice, weighted

V, N, E, D = daedal.dims("V N E D")


@daedal.kernel
def with_own(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    """Its end reads the node's row once more."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d] + y[v, d]


@daedal.kernel
def from_own(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    """Its beginning writes what its end stores."""
    for v in range(V):
        row = daedal.zeros(D)
        for d in range(D):
            row[d] = y[v, d]
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def onto(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    """It reads what it stores."""
    for v in range(V):
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                out[v, d] += s * x[columns[e], d]


@daedal.kernel
def from_one(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    """Its first row is not row 0, which must stay as it is."""
    for v in range(1, V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d]


@daedal.kernel
def averaged(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E]):
    """Its end takes a count."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[v, d] = row[d] / max(pointers[v + 1] - pointers[v], 1)


@daedal.kernel
def elsewhere(out: f32[V, D], x: f32[N, D], y: f32[V, D], pointers: i32[V + 1], columns: i32[E], at: i32[V]):
    """Its rows go to places that are loaded."""
    for v in range(V):
        row = daedal.zeros(D)
        for e in range(pointers[v], pointers[v + 1]):
            s = daedal.dot(x[columns[e], :], y[v, :])
            for d in range(D):
                row[d] += s * x[columns[e], d]
        for d in range(D):
            out[at[v], d] = row[d]


JOINED = (weighted, twice, rectified)
APART = (with_own, from_own, onto, from_one, averaged)
EDGES = {
    "no node": [],
    "an empty node": [0],
    "a node": [3],
    "empty nodes": [0, 0, 0],
    "empty ones around": [0, 0, 1, 9, 0, 2, 0],
    "short ones": [1, 1, 2, 1, 3, 1],
    "long ones": [7, 12, 6, 0, 8],
}


@pytest.fixture(params=OPENED, scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, config="ddr3") as opened:
        yield opened


@pytest.fixture(params=["ddr3", "wide", "narrow16"], scope="module")
def emulator(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=request.param) as opened:
        yield opened


def arguments(edges: list[int], width: int, rng: np.random.Generator) -> list[Any]:
    """Nodes with so many edges each; outputs that are not 0, and rows with infinities, NaNs and -0.0."""
    x, y = floats(rng, 30, width), floats(rng, len(edges), width)
    for value in (np.inf, np.nan, -0.0):
        x[rng.integers(30), rng.integers(width)] = value
    pointers = np.concatenate([[0], np.cumsum(edges)]).astype(np.int32)
    return [floats(rng, len(edges), width), x, y, pointers, rng.integers(0, 30, pointers[-1]).astype(np.int32)]


def expected(kernel: Any, out: Any, x: Any, y: Any, pointers: Any, columns: Any) -> Any:
    """What the loops give, with sums along rows in the machine's order."""
    result, begins = out.copy(), {from_own: y, onto: out}
    with np.errstate(all="ignore"):
        for v in range(kernel is from_one, len(out)):
            row = begins[kernel][v] if kernel in begins else np.zeros_like(out[v])
            for column in columns[pointers[v] : pointers[v + 1]]:
                s = np.float32(reduce(VectorOp.MUL_ADD, x[column], x[column] if kernel is twice else y[v]))
                s = np.float32(0) if kernel is rectified and s < 0 else s
                row = row + s * x[column]
            row = row + y[v] if kernel is with_own else row
            result[v] = row / np.float32(max(pointers[v + 1] - pointers[v], 1)) if kernel is averaged else row
    return result


def check(device: daedal.Device, kernel: Any, given: list[Any]) -> Any:
    """The executable, after a call with the right result."""
    wanted = expected(kernel, *given)
    executable = daedal.compile(kernel, given, device=device)
    executable(*given)
    assert same_bits(given[0], wanted)
    return executable


def is_joined(executable: Any) -> bool:
    """Whether explain() says so."""
    return " iteration of the next run" in executable.explain()


@pytest.mark.parametrize("kernel", JOINED, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("width", [16, 64, 100])
def test_nodes_with_few_edges_and_none(
    device: daedal.Device, kernel: Any, edges: list[int], width: int, rng: np.random.Generator
) -> None:
    executable = check(device, kernel, arguments(edges, width, rng))
    assert is_joined(executable)
    rows = sum(edges) + (len(edges) if kernel is not twice else 0)
    assert executable.stats.rows == rows
    assert executable.stats.lookups == sum(edges)
    assert bool(executable.stats.lines_written) == bool(edges)


@pytest.mark.parametrize("kernel", [*JOINED, *APART], ids=lambda kernel: kernel.name)
def test_whatever_loops_do(emulator: daedal.Device, kernel: Any, rng: np.random.Generator) -> None:
    for edges in ([*rng.integers(0, 10, 24)], [*rng.integers(0, 3, 24)]):
        executable = check(emulator, kernel, arguments(edges, 64, rng))
        assert is_joined(executable) == (kernel in JOINED), executable.asm()


def test_rows_that_go_elsewhere(emulator: daedal.Device, rng: np.random.Generator) -> None:
    edges = [*rng.integers(0, 5, 24)]
    given, places = arguments(edges, 64, rng), rng.permutation(24).astype(np.int32)
    wanted = np.empty_like(given[0])
    wanted[places] = expected(weighted, *given)
    executable = daedal.compile(elsewhere, [*given, places], device=emulator)
    executable(*given, places)
    assert same_bits(given[0], wanted)
    assert not is_joined(executable)


@pytest.mark.parametrize("bad", [0, 3, 11, 15])
def test_a_bad_index(device: daedal.Device, bad: int, rng: np.random.Generator) -> None:
    """Places of rows that are not stored any more are known by then; the next launch knows nothing of them."""
    given = arguments([3, 1, 0, 7, 0, 5], 64, rng)
    executable = check(device, weighted, given)
    column, given[4][bad] = given[4][bad], 30
    with pytest.raises(daedal.IndexOutOfRange, match="30"):
        executable(*given)
    given[4][bad] = column
    wanted = expected(weighted, *given)
    executable(*given)
    assert same_bits(given[0], wanted)


@pytest.mark.parametrize("change", [{"registers": 4}, {"alus": (1, 1, 0, 0)}, {"callbacks": 3}, {"steps": 4},
                                    {"instructions": 8}], ids=lambda change: next(iter(change)))  # fmt: skip
def test_a_machine_with_less(change: dict[str, Any], rng: np.random.Generator) -> None:
    """Runs stay apart where the machine has not what joining them takes."""
    with daedal.Device.open("emulator", config=replace(Config.preset("ddr3"), name="less", **change)) as opened:
        assert not is_joined(check(opened, weighted, arguments([0, 0, 1, 9, 0, 2, 0], 64, rng)))


@pytest.mark.parametrize("name", ["ddr3", "wide", "narrow16"])
@pytest.mark.parametrize("instructions", range(10, 64, 6))
def test_machines_with_fewer_instructions(name: str, instructions: int, rng: np.random.Generator) -> None:
    """Runs end behind earlier iterations of the next ones, and rows wait for fewer."""
    config = replace(Config.preset(name), name="fewer", instructions=instructions)
    with daedal.Device.open("emulator", config=config) as opened:
        for edges in ([*rng.integers(0, 10, 24)], [*rng.integers(0, 3, 24)]):
            check(opened, rectified if instructions > 30 else weighted, arguments(edges, 64, rng))


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("edges", [0, 1, 2, 3, 5, 8])
def test_what_a_node_costs_beside_its_rows(edges: int, rng: np.random.Generator) -> None:
    """An edge takes 37 cycles of the lanes, and the node's row 16. Of the tree's 66, or of a store, little is left."""
    cycles = []
    with daedal.Device.open("verilator", config="ddr3") as opened:
        for nodes in (40, 120):
            given = arguments([edges] * nodes, 64, rng)
            executable = daedal.compile(weighted, given, device=opened)
            executable(*given)
            cycles.append(executable.stats.cycles)
    assert (cycles[1] - cycles[0]) / 80 <= 37 * edges + 16 + 17
