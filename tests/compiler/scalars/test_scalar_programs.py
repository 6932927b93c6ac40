"""Programs written by hand in assembler that use scalars, on the emulator and on the RTL, bit for bit.

What they compute is also said by the operations of the specification, one by one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from daedal.driver.targets.target_registry import open_target
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.launch import Cause, State
from daedal.hw.isa.program import pack, unpack
from daedal.hw.isa.registers import Control, Register
from daedal.hw.isa.spec.binary32 import Floats, as_bits, fused
from daedal.hw.isa.spec.execute import compute
from daedal.hw.isa.spec.reduction import reduce
from daedal.hw.isa.tools.assembler import assemble
from tests.unit.emulator.programs import Bench, Record

CONFIG = PRESETS["edge"]
OPENED = ["emulator", pytest.param("verilator", marks=(pytest.mark.rtl, pytest.mark.slow))]

Bits = np.ndarray[Any, np.dtype[np.uint32]]


@pytest.fixture(params=OPENED, scope="module")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    target = open_target(request.param, CONFIG, memory="ideal:stall=0.1,seed=3", memory_bytes=1 << 22, wave=None)
    bench = Bench(target, CONFIG)
    reset(bench)
    yield bench
    target.close()


LOOP = """
level 0 control enable=1 induction=r0
level 0 upper = arg0
level 0 step = 1
"""
"""A nest of arg0 iterations, numbered in r0."""

PAIRS = """
length 0 elements = {dim}
event 1 control first=0 count=2              ; iter: a row of each table
step 0 control token_enable=1 fetch_enable=1 fetch_index=r0 {store}
step 0 token = 0
step 0 fetch_base = arg1
step 0 fetch_pitch = {pitch}
step 0 fetch_size = {pitch}
step 1 control fetch_enable=1 fetch_index=r0 queue=vector1
step 1 fetch_base = arg2
step 1 fetch_pitch = {pitch}
step 1 fetch_size = {pitch}
step {at} store_base = arg3
step {at} store_pitch = 4
step {at} store_size = {size}
callback 0 start = 0
"""
"""Rows of two tables, arg1 and arg2, side by side in the vector queues; results at arg3."""


def run(bench: Bench, text: str, arguments: list[int]) -> Record:
    record = bench.queue(assemble(text, config_hash=CONFIG.hash), arguments)
    assert bench.target.wait(60)
    bench.target.csr_write(Register.INTERRUPT.value, 1)
    return bench.read_record(record)


def reset(bench: Bench) -> None:
    bench.target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1, "interrupt_enable": 1}))
    while unpack(Control, bench.target.csr_read(Register.CONTROL.value))["reset"]:
        pass
    bench.target.csr_write(Register.INTERRUPT.value, 1)


def rows(rng: np.random.Generator, count: int, dim: int) -> Floats:
    return rng.standard_normal((count, dim)).astype(np.float32)


def stored(bench: Bench, address: int, count: int) -> Bits:
    return bench.floats(address, (count,)).view(np.uint32)


@pytest.mark.parametrize(("count", "dim"), [(5, 24), (3, 4), (4, 64)])
def test_rows_weighted_by_dot_products(bench: Bench, rng: np.random.Generator, count: int, dim: int) -> None:
    """Of each pair of rows the dot product scales the first, and all are added."""
    text = (
        LOOP
        + PAIRS.format(dim=dim, pitch=4 * dim, store="", at=2, size=4 * dim)
        + """
event 2 control first=2 count=1              ; end: the sum
step 2 control token_enable=1 store_enable=1
step 2 token = 1
instruction 0 code op=move a.kind=queue destination=0
instruction 1 code op=move a.kind=queue a.number=1 destination=1
instruction 2 code op=fma mode=reduce a.number=0 b.number=1 c=7 destination=3
instruction 3 code op=fma a.number=0 b.kind=scalar_register b.number=3 c=2 destination=2 last=1
callback 1 start = 4
instruction 4 code op=store a.number=2 clear=1 last=1
control 0 run = 0
"""
    )
    left, right = rows(rng, count, dim), rows(rng, count, dim)
    out = bench.reserve(4 * dim)
    record = run(bench, text, [count, bench.place(left), bench.place(right), out])
    assert record.state is State.DONE, record
    total: Floats = np.zeros(dim, np.float32)
    for a, b in zip(left, right, strict=True):
        total = fused(a, reduce(VectorOp.FMA, a, b), total)
    assert stored(bench, out, dim).tolist() == as_bits(total).tolist()
    a, b = left.astype(float), right.astype(float)
    exact = ((a * b).sum(1)[:, None] * a).sum(0)
    assert np.allclose(total, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("count", "dim"), [(6, 20), (2, 1), (3, 33)])
def test_distances(bench: Bench, rng: np.random.Generator, count: int, dim: int) -> None:
    """The Euclidean distance of each pair of rows, stored as a row of one element."""
    pitch = -(-dim // 4) * 16
    text = (
        LOOP
        + PAIRS.format(dim=dim, pitch=pitch, store="store_enable=1 store_index=r0", at=0, size=4).replace(
            f"fetch_size = {pitch}", f"fetch_size = {4 * dim}"
        )
        + """
instruction 0 code op=move a.kind=queue a.number=1 destination=1
instruction 1 code op=subtract a.kind=queue c=1 destination=0
instruction 2 code op=fma mode=reduce a.number=0 b.number=0 c=1 destination=0
instruction 3 code op=square_root mode=scalar a.kind=scalar_register a.number=0 destination=1
instruction 4 code op=store mode=scalar a.kind=scalar_register a.number=1 last=1
control 0 run = 0
"""
    )
    left, right = rows(rng, count, pitch // 4), rows(rng, count, pitch // 4)
    out = bench.reserve(4 * count)
    record = run(bench, text, [count, bench.place(left), bench.place(right), out])
    assert record.state is State.DONE, record
    expected = []
    for a, b in zip(left[:, :dim], right[:, :dim], strict=True):
        difference = compute(VectorOp.SUBTRACT, a, c=b)
        expected.append(compute(VectorOp.SQUARE_ROOT, reduce(VectorOp.FMA, difference, difference)))
    assert stored(bench, out, count).tolist() == as_bits(expected).tolist()
    a, b = (one[:, :dim].astype(float) for one in (left, right))
    exact = np.sqrt(((a - b) ** 2).sum(1))
    assert np.allclose(expected, exact, rtol=1e-6)


CONSTANTS = np.array(
    [np.log2(np.e), -0.693359375, 2.12194440e-4, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1], np.float32
)
"""log2(e); -ln(2) in two parts, the first with few bits; the series of exp from its last term on."""


def scalars(number: int, op: str, destination: int, a: int, *, b: int | None = None, c: int = 0, last: int = 0) -> str:
    """The line of an instruction on scalar registers."""
    second = "" if b is None else f"b.kind=scalar_register b.number={b} "
    return (
        f"instruction {number} code op={op} mode=scalar a.kind=scalar_register a.number={a} {second}c={c} "
        f"destination={destination} last={last}\n"
    )


SIGMOID = "".join(
    [
        LOOP,
        *(
            f"step {k} control scalar_enable=1 token_enable={int(k == 0)}\nstep {k} scalar = {int(bits):#x}\n"
            f"instruction {k} code op=move mode=scalar a.kind=scalar destination={k} last={int(k == 9)}\n"
            for k, bits in enumerate(CONSTANTS.view(np.uint32))
        ),
        """
event 0 control first=0 count=10             ; begin: the constants
callback 0 start = 0
level 0 load0 enable=1 size=2 destination=r1
level 0 load0_base = arg1
level 0 load0_limit = arg2
event 1 control first=10 count=1             ; iter: a number, and the place for its result
step 10 control scalar_enable=1 scalar=r1 token_enable=1 store_enable=1 store_index=r0
step 10 token = 1
step 10 store_base = arg3
step 10 store_pitch = 4
step 10 store_size = 4
callback 1 start = 10                        ; s15 is never written: +0.0
instruction 10 code op=move mode=scalar a.kind=scalar destination=10
""",
        scalars(11, "subtract", 10, 15, c=10),
        scalars(12, "multiply", 11, 10, b=0),
        scalars(13, "to_integer", 12, 11),
        scalars(14, "to_float", 13, 12),
        scalars(15, "fma", 10, 13, b=1, c=10),
        scalars(16, "fma", 10, 13, b=2, c=10),
        scalars(17, "move", 14, 3),
        *(scalars(18 + n, "fma", 14, 14, b=10, c=c) for n, c in enumerate((4, 5, 6, 7, 8, 9, 9))),
        scalars(25, "scale", 14, 14, b=12),
        scalars(26, "add", 14, 14, c=9),
        scalars(27, "reciprocal", 14, 14),
        "instruction 28 code op=store mode=scalar a.kind=scalar_register a.number=14 last=1\n",
        "control 0 run = 0\n",
    ]
)
"""1 / (1 + exp(-x)): exp by its series on [-ln(2)/2, ln(2)/2] and a power of two."""


def sigmoid(x: Floats) -> Floats:
    """What the program computes."""
    constants = [np.full_like(x, constant) for constant in CONSTANTS]
    y = compute(VectorOp.SUBTRACT, np.zeros_like(x), c=x)
    power = compute(VectorOp.TO_INTEGER, compute(VectorOp.MULTIPLY, y, constants[0]))
    whole = compute(VectorOp.TO_FLOAT, power)
    rest = fused(whole, constants[2], fused(whole, constants[1], y))
    series = constants[3]
    for constant in (*constants[4:], constants[9]):
        series = fused(series, rest, constant)
    grown = compute(VectorOp.ADD, compute(VectorOp.SCALE, series, power), c=constants[9])
    return compute(VectorOp.RECIPROCAL, grown)


SIGMOID_ULP = 2.5
"""Bound of the error for -87 <= x <= 87, units in the last place of the exact result (2.07 was the most in 15,000)."""


def test_sigmoid(bench: Bench, rng: np.random.Generator) -> None:
    count = 300
    x = np.concatenate([rng.uniform(-87, 87, count - 60), rng.uniform(-1, 1, 50), [0, -0.0, 87, -87, 1e-30, -1e-39, 0.5,
                        -0.5, 16, -16]]).astype(np.float32)  # fmt: skip
    source, out = bench.place(x), bench.reserve(4 * count)
    record = run(bench, SIGMOID, [count, source, source + 4 * count, out])
    assert record.state is State.DONE, record
    found = stored(bench, out, count)
    assert found.tolist() == as_bits(sigmoid(x)).tolist()
    assert ulps(x, found).max() <= SIGMOID_ULP


def ulps(x: np.ndarray[Any, Any], found: Bits) -> np.ndarray[Any, Any]:
    """How far these results are from the sigmoid of ``x``."""
    exact = 1 / (1 + np.exp(-x.astype(float)))
    distance: np.ndarray[Any, Any] = np.abs(found.view(np.float32) - exact) / np.spacing(exact.astype(np.float32))
    return distance


def test_bound_of_the_sigmoid(rng: np.random.Generator) -> None:
    """Of the same operations, for many numbers more."""
    x = np.concatenate([rng.uniform(-87, 87, 10_000), rng.uniform(-2, 2, 5_000)]).astype(np.float32)
    assert ulps(x, as_bits(sigmoid(x))).max() <= SIGMOID_ULP


ELEMENTS = (
    LOOP
    + """
length 0 elements = 32
event 0 control first=0 count=1              ; begin: the row
step 0 control token_enable=1 fetch_enable=1
step 0 fetch_base = arg1
step 0 fetch_size = 128
level 0 load0 enable=1 size=2 destination=r1
level 0 load0_base = arg2
level 0 load0_limit = arg3
event 1 control first=1 count=1              ; iter: the number of an element, and the place for it
step 1 control scalar_enable=1 scalar=r1 token_enable=1 store_enable=1 store_index=r0
step 1 token = 1
step 1 store_base = arg4
step 1 store_pitch = 4
step 1 store_size = 4
callback 0 start = 0
instruction 0 code op=move a.kind=queue destination=3 last=1
callback 1 start = 1
instruction 1 code op=move mode=scalar a.kind=scalar destination=0
instruction 2 code op=add mode=scalar a.number=3 indexed=1 element=0 c=1 destination=1
instruction 3 code op=store mode=scalar a.kind=scalar_register a.number=1 last=1
control 0 run = 0
"""
)
"""Running sums of elements of a row, in any order."""


def test_elements_by_index(bench: Bench, rng: np.random.Generator) -> None:
    row, numbers = rows(rng, 1, 32)[0], rng.integers(0, 32, 40).astype(np.uint32)
    out = bench.reserve(4 * len(numbers))
    places = [bench.place(row), bench.place(numbers)]
    record = run(bench, ELEMENTS, [len(numbers), *places, places[1] + 4 * len(numbers), out])
    assert record.state is State.DONE, record
    running = np.cumsum(row.view(np.float32)[numbers], dtype=np.float32)
    assert stored(bench, out, len(numbers)).tolist() == running.view(np.uint32).tolist()


@pytest.mark.parametrize("wrong", [CONFIG.vl_max, 0xFFFFFFFF])
def test_an_element_that_does_not_exist(bench: Bench, rng: np.random.Generator, wrong: int) -> None:
    """The record has its number; after a reset the machine goes on."""
    row, numbers = rows(rng, 1, 32), np.array([3, 31, wrong, 1], np.uint32)
    places = [bench.place(row), bench.place(numbers)]
    record = run(bench, ELEMENTS, [4, *places, places[1] + 16, bench.reserve(16)])
    assert (record.state, record.cause, record.value) == (State.FAULTED, Cause.PROGRAM, wrong)
    reset(bench)
    test_elements_by_index(bench, rng)
