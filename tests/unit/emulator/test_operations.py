"""Every operation of the execute unit, with special values, registers full and empty."""

from typing import Any

import numpy as np
import pytest

from daedal.hw.isa.instructions import Mode, VectorOp
from daedal.hw.isa.launch import State
from daedal.hw.isa.operations import OPERATIONS, OperationUnit, operations_in
from daedal.hw.isa.program import Word
from daedal.hw.isa.spec.execute import compute
from daedal.hw.isa.words import (
    CallbackField,
    EventField,
    EventKind,
    FetchQueue,
    LengthField,
    LevelField,
    StepField,
)
from tests.reference import embedding_bag
from tests.reference.layers import SPECIAL, random_values
from tests.unit.emulator.programs import QUEUE0, QUEUE1, SCALAR, Bench, instruction, level, run_nest

Array = np.ndarray[Any, Any]
ELEMENTS = 48
CANONICAL_NAN = 0x7FC00000

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of NaN and overflow


def steps(listed: list[tuple[dict[str, int], dict[StepField, int]]]) -> list[Word]:
    """These steps, once, on the begin event of a nest without iterations."""
    words = [
        Word.packed(EventField.CONTROL, EventKind.BEGIN.value, count=len(listed)),
        *level(0),
        Word(LevelField.LOWER, 0),
        Word(LevelField.UPPER, 0),
    ]
    for k, (control, constants) in enumerate(listed):
        words.append(Word.packed(StepField.CONTROL, k, **control))
        words += [Word(field, k, value) for field, value in constants.items()]
    return [*words, run_nest()]


def fetch(queue: FetchQueue, address: int) -> tuple[dict[str, int], dict[StepField, int]]:
    control = {"fetch_enable": 1, "queue": queue.value}
    return control, {StepField.FETCH_BASE: address, StepField.FETCH_SIZE: 4 * ELEMENTS}


def run(bench: Bench, code: list[Word], rows: list[tuple[FetchQueue, Array]], scalars: list[int]) -> Array:
    """Run one callback of this code on these rows and scalars; what it stores."""
    out = bench.reserve(4 * ELEMENTS)
    listed = [fetch(queue, bench.place(row)) for queue, row in rows]
    for scalar in scalars:
        listed.append(({"scalar_enable": 1}, {StepField.SCALAR: scalar}))
    listed.append(
        (
            {"token_enable": 1, "store_enable": 1},
            {StepField.STORE_BASE: out, StepField.STORE_SIZE: 4 * ELEMENTS},
        )
    )
    setup = [Word(CallbackField.START, 0, 0), Word(LengthField.ELEMENTS, 0, ELEMENTS)]
    record = bench.run([*setup, *code, *steps(listed)])
    assert record.state is State.DONE, record
    return bench.floats(out, (ELEMENTS,)).view(np.uint32)


def canonical(values: Array) -> Array:
    values = values.astype(np.float32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN), values.view(np.uint32))


def bits(values: Array) -> Array:
    return values.view(np.uint32)


def fma(a: Array, b: float, c: Array) -> Array:
    """By the numeric reference, which has its fused operation from the C library."""
    ones = np.array([1.0, b], dtype=np.float32)
    return embedding_bag(np.stack([c, a]), np.array([0, 1]), np.array([0]), weights=ones)[0]


ON_LANES = [
    op
    for op in operations_in(Mode.VECTOR)
    if OPERATIONS[op].unit is OperationUnit.LANES and not OPERATIONS[op].takes_head
]
ON_LANES.remove(VectorOp.ROUND)  # of machines that convert: test_narrow_faults


@pytest.fixture
def abc(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    a, b, c = (random_values(rng, (ELEMENTS,), special=True) for _ in range(3))
    a[:12], c[11::-1] = SPECIAL, SPECIAL
    a[12:14] = np.array([0xFFC12345, 0x7F800001], dtype=np.uint32).view(np.float32)
    a[14:16], c[14:16] = (0.0, -0.0), (-0.0, 0.0)
    return a, b, c


@pytest.mark.parametrize("op", ON_LANES)
def test_operation(bench: Bench, abc: tuple[Array, Array, Array], op: VectorOp) -> None:
    """What lanes do, against the specification."""
    a, b, c = abc
    has_b = "b" in OPERATIONS[op].operands
    members = {"b": QUEUE1} if has_b else {}
    code = [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, op, a=QUEUE0, c=1, destination=0, **members),
        instruction(2, VectorOp.STORE, a={"number": 0}, last=1),
    ]
    rows = [(FetchQueue.VECTOR0, c), (FetchQueue.VECTOR0, a)]
    rows += [(FetchQueue.VECTOR1, b)] if has_b else []
    assert run(bench, code, rows, []).tolist() == bits(compute(op, a, b, c)).tolist()


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.0000001, 3e38, 1e-40, np.inf, np.nan])
def test_scalar_factor(bench: Bench, abc: tuple[Array, Array, Array], factor: float) -> None:
    a, _, c = abc
    scalar = int(np.float32(factor).view(np.uint32)) | 0xAB << 32  # its upper bits do not count
    move, store = (
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(2, VectorOp.STORE, a={"number": 2}, last=1),
    )
    rows = [(FetchQueue.VECTOR0, c), (FetchQueue.VECTOR0, a)]
    expected = {
        VectorOp.MUL_ADD: canonical((a * np.float32(factor)).astype(np.float32) + c),
        VectorOp.FMA: canonical(fma(a, factor, np.where(np.isin(bits(c), 1 << 31), 0, c).astype(np.float32))),
    }
    for op, result in expected.items():
        code = [move, instruction(1, op, a=QUEUE0, b=SCALAR, c=1, destination=2), store]
        found = run(bench, code, rows, [scalar])
        if op is VectorOp.FMA:  # the reference starts from +0, so it cannot tell -0 as an addend
            keep = (bits(c) != 1 << 31) | (a != 0)
            found, result = found[keep], result[keep]
        assert found.tolist() == result.tolist()


@pytest.mark.parametrize("count", [0, 1, 3, 7, 49, (1 << 24) - 1, (1 << 24) + 1, (1 << 24) + 5])
@pytest.mark.parametrize("stores", [False, True])
def test_divide_count(bench: Bench, abc: tuple[Array, Array, Array], count: int, stores: bool) -> None:
    a = abc[0]
    code = [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, VectorOp.DIVIDE_COUNT, a={"number": 1}, destination=0),
        instruction(2, VectorOp.STORE, a={"number": 0}, last=1),
    ]
    if stores:
        code[1:] = [instruction(1, VectorOp.STORE_QUOTIENT, a={"number": 1}, last=1)]
    low = count % (1 << 24)
    expected = canonical(a / np.float32(low)) if low > 1 else bits(a)
    assert run(bench, code, [(FetchQueue.VECTOR0, a)], [count]).tolist() == expected.tolist()


@pytest.mark.parametrize(("op", "expected"), [
    (VectorOp.ADD, lambda a: canonical(a + np.float32(0))), (VectorOp.SUBTRACT, canonical),
    (VectorOp.MAX, bits), (VectorOp.MIN, bits),
])  # fmt: skip
def test_empty_addend(bench: Bench, abc: tuple[Array, Array, Array], op: VectorOp, expected: Any) -> None:
    code = [
        instruction(0, op, a=QUEUE0, c=3, destination=3),
        instruction(1, VectorOp.STORE, a={"number": 3}, last=1),
    ]
    a = abc[0]
    assert run(bench, code, [(FetchQueue.VECTOR0, a)], []).tolist() == expected(a).tolist()


@pytest.mark.parametrize("clear", [0, 1])
def test_clear_empties_a_register_after_it_was_read(bench: Bench, abc: tuple[Array, Array, Array], clear: int) -> None:
    a = abc[2]
    code = [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=0),
        instruction(1, VectorOp.MOVE, a={"number": 0}, destination=1, clear=clear),
        instruction(2, VectorOp.STORE, a={"number": 0 if clear else 1}, last=1),
    ]
    expected = np.zeros(ELEMENTS, dtype=np.uint32) if clear else bits(a)
    assert run(bench, code, [(FetchQueue.VECTOR0, a)], []).tolist() == expected.tolist()


def test_a_callback_waits_for_what_later_steps_bring(bench: Bench, rng: np.random.Generator) -> None:
    a, c = random_values(rng, (2, ELEMENTS), special=False)
    out = bench.reserve(4 * ELEMENTS)
    token = (
        {"token_enable": 1, "store_enable": 1},
        {StepField.STORE_BASE: out, StepField.STORE_SIZE: 4 * ELEMENTS},
    )
    listed = [token, fetch(FetchQueue.VECTOR0, bench.place(a)), fetch(FetchQueue.VECTOR1, bench.place(c))]
    record = bench.run([
        Word(CallbackField.START, 0, 0), Word(LengthField.ELEMENTS, 0, ELEMENTS),
        instruction(0, VectorOp.NOP),
        instruction(1, VectorOp.MULTIPLY, a=QUEUE0, b=QUEUE1),
        instruction(2, VectorOp.STORE, a={"number": 0}, last=1),
        *steps(listed),
    ])  # fmt: skip
    assert record.state is State.DONE
    assert bench.floats(out, (ELEMENTS,)).tolist() == (a * c).tolist()
