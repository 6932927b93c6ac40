"""Rows whose bytes are not those of a length of their type."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import LENGTH_ELEMENTS, UNSIGNED
from daedal.hw.isa.instructions import HEAD, Mode, OperandKind, VectorOp
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField, LengthField
from tests.unit.emulator.conftest import MEMORY_BYTES
from tests.unit.emulator.programs import Bench
from tests.unit.emulator.test_faults import DIM, bag_of, reset, run_changed

KINDS = (LengthField.BINARY16, LengthField.BFLOAT16, LengthField.BFLOAT16_AWAY)


@pytest.fixture
def halves() -> Iterator[Bench]:
    config = replace(
        Config.preset("edge"), name="types", register_beats=128, store_beats=256, binary16=1, bfloat16=1, quantised=1
    )
    with EmulatorTarget(config, MEMORY_BYTES) as target:
        yield Bench(target, config)


def fault_of(bench: Bench, kind: LengthField, elements: int) -> tuple[Cause, Queue, int]:
    """Of a bag whose rows have the bytes of ``DIM`` binary32, if its length is of this type and value."""

    def change(word: Word) -> Word:
        return Word(kind, 0, elements) if word.field is LengthField.ELEMENTS else word

    record = run_changed(bench, change)
    return record.cause, record.queue, record.value


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_bytes_of_their_type(halves: Bench, kind: LengthField) -> None:
    assert fault_of(halves, kind, 2 * DIM)[0] is Cause.NONE
    assert fault_of(halves, kind, DIM) == (Cause.FRAMING, Queue.VECTOR0, DIM)


@pytest.mark.parametrize("elements", [DIM // 2, 2 * DIM])
def test_rows_of_binary32_are_not_of_16_bits(halves: Bench, elements: int) -> None:
    assert fault_of(halves, LengthField.ELEMENTS, elements) == (Cause.FRAMING, Queue.VECTOR0, elements)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_lengths(halves: Bench, kind: LengthField) -> None:
    """A row of one element more is popped as an odd one, which is then not as long as the address says."""
    for elements in (2 * DIM - 3, 2 * DIM + 1):
        assert fault_of(halves, kind, elements) == (Cause.FRAMING, Queue.VECTOR0, elements)
        reset(halves)
    assert fault_of(halves, kind, 2 * DIM - 1) == (Cause.FRAMING, Queue.STORE_DATA, 4 * DIM)


def heads(taken: int, kind: LengthField, elements: int, *, mode: Mode = Mode.SCALAR) -> list[Word]:
    """A callback that takes so many numbers off a row, and then the row; behind it, the store of the bag."""
    head = {"kind": OperandKind.QUEUE, "number": HEAD}
    code = [{"op": VectorOp.MOVE, "mode": mode, "a": head, "destination": 1}] * taken
    code += [{"op": VectorOp.ADD, "a": {"kind": OperandKind.QUEUE}, "length": 1, "last": 1}]
    code += [{"op": VectorOp.STORE, "a": {}, "clear": 1, "last": 1}]
    listed = [Word(LengthField.ELEMENTS, 0, DIM), Word(kind, 1, elements)]
    listed += [Word(CallbackField.START, 0, 0), Word(CallbackField.START, 1, taken + 1)]
    return listed + [Word.packed(InstructionField.CODE, n, **members) for n, members in enumerate(code)]


def headed(bench: Bench, taken: int, kind: LengthField, elements: int, **options: Mode) -> tuple[Cause, Queue, int]:
    """The fault of a bag whose rows have the bytes of ``DIM`` binary32, taken off so."""
    execute = (LengthField, CallbackField, InstructionField)
    access = [word for word in bag_of(bench).words(bench.config) if not isinstance(word.field, execute)]
    record = bench.run([*heads(taken, kind, elements, **options), *access])
    reset(bench)
    return record.cause, record.queue, record.value


@pytest.mark.parametrize("mode", [Mode.SCALAR, Mode.VECTOR])
@pytest.mark.parametrize("kind", UNSIGNED)
def test_heads(halves: Bench, kind: LengthField, mode: Mode) -> None:
    bits = LENGTH_ELEMENTS[kind].bits
    whole = DIM * 32 // bits
    behind = (DIM - 2) * 32 // bits
    assert headed(halves, 2, kind, behind, mode=mode)[0] is Cause.NONE
    assert headed(halves, 0, kind, whole, mode=mode)[0] is Cause.NONE
    for taken, elements in ((0, behind), (2, whole), (1, (DIM - 1) * 32 // bits)):
        assert headed(halves, taken, kind, elements, mode=mode) == (Cause.FRAMING, Queue.VECTOR0, elements)
    expected = DIM if mode is Mode.VECTOR else 1
    assert headed(halves, 3, kind, behind, mode=mode) == (Cause.FRAMING, Queue.VECTOR0, expected)


def test_other_rows_have_no_heads(halves: Bench) -> None:
    assert headed(halves, 2, LengthField.ELEMENTS, DIM - 2) == (Cause.FRAMING, Queue.VECTOR0, DIM - 2)
    for kind in (LengthField.FLOAT8_E4, LengthField.FLOAT8_E5):
        assert headed(halves, 0, kind, 4 * DIM)[0] is Cause.NONE
        assert headed(halves, 2, kind, 4 * DIM - 8) == (Cause.FRAMING, Queue.VECTOR0, 4 * DIM - 8)
    assert headed(halves, 2, LengthField.BINARY16, 2 * DIM - 4) == (Cause.FRAMING, Queue.VECTOR0, 2 * DIM - 4)
