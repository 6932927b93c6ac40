"""Programs as bytes: nothing is lost, nothing altered gets through, nothing that does not fit gets in."""

from typing import Any

import numpy as np
import pytest

from daedal.errors import ProgramError
from daedal.hw.isa.instructions import INSTRUCTION_BITS, Instruction, OperandKind, VectorOp
from daedal.hw.isa.program import (
    FIELD_STRUCTS,
    UNIT_FIELDS,
    WORD_BYTES,
    Program,
    Word,
    pack,
    struct_width,
    unpack,
)
from daedal.hw.isa.words import (
    VALUE_BITS,
    CheckControl,
    ControlField,
    InstructionField,
    LevelField,
    ProgramWord,
    StepField,
    Unit,
)
from tests.unit.isa.words import random_words


def test_round_trip(rng: np.random.Generator) -> None:
    for count in (0, 1, 2, 100):
        program = Program(int(rng.integers(1 << 32)), random_words(rng, count))
        raw = program.to_bytes()
        assert len(raw) == WORD_BYTES * (count + 3)
        assert Program.from_bytes(raw) == program
        assert Program.from_bytes(raw).to_bytes() == raw


def test_layout_of_a_word() -> None:
    word = Word(StepField.TOKEN, 5, 0xAB, 7)
    bits = word.encode()
    assert bits & (1 << VALUE_BITS) - 1 == 0xAB
    assert unpack(ProgramWord, bits) == {
        "value": 0xAB, "argument": 7, "substitute": 1, "unit": Unit.STEP.value, "index": 5,
        "field": StepField.TOKEN.value,
    }  # fmt: skip
    assert Word(LevelField.LOWER, 0, -1).encode() & (1 << VALUE_BITS) - 1 == (1 << VALUE_BITS) - 1


def test_every_structure_fits_a_word() -> None:
    assert struct_width(ProgramWord) == 8 * WORD_BYTES
    assert struct_width(Instruction) == INSTRUCTION_BITS
    assert all(struct_width(struct) <= VALUE_BITS for struct in FIELD_STRUCTS.values())


def test_fields_belong_to_one_unit() -> None:
    for unit, fields in UNIT_FIELDS.items():
        assert {Word(field).unit for field in fields} == {unit}


@pytest.mark.parametrize("bit", range(8))
def test_any_altered_bit_is_noticed(rng: np.random.Generator, bit: int) -> None:
    raw = Program(0x1234, random_words(rng, 6)).to_bytes()
    for at in range(len(raw)):
        altered = bytearray(raw)
        altered[at] ^= 1 << bit
        with pytest.raises(ProgramError):
            Program.from_bytes(bytes(altered))


def test_any_truncation_is_noticed(rng: np.random.Generator) -> None:
    raw = Program(0x1234, random_words(rng, 20)).to_bytes()
    for size in range(len(raw)):
        with pytest.raises(ProgramError):
            Program.from_bytes(raw[:size])
    with pytest.raises(ProgramError, match="must have 23 words, as it says, not 24"):
        Program.from_bytes(raw + raw[-WORD_BYTES:])


def test_random_bytes_are_no_program(rng: np.random.Generator) -> None:
    for size in (0, 24, 64, 65, 800):
        with pytest.raises(ProgramError):
            Program.from_bytes(rng.bytes(size))


def test_unknown_unit_and_field_are_named() -> None:
    bits = pack(ProgramWord, {"unit": 15, "field": 3})
    with pytest.raises(ProgramError, match=r"word 4 .* not unit 15 field 3"):
        Word.decode(bits, 4)
    with pytest.raises(ProgramError, match=f"not unit {Unit.LEVEL.value} field 255"):
        Word.decode(pack(ProgramWord, {"unit": Unit.LEVEL, "field": 255}), 0)


def test_members_that_do_not_exist_or_fit() -> None:
    with pytest.raises(ProgramError, match="CheckControl must have a member 'limits'; it has enable"):
        Word.packed(LevelField.CHECK, 0, limits=1)
    for value in (-1, 4):
        with pytest.raises(ProgramError, match=f"CheckControl.load must fit 2 bits, not {value}"):
            pack(CheckControl, {"load": value})


def test_nested_members() -> None:
    word = Word.packed(InstructionField.CODE, 3, op=VectorOp.FMA, b={"kind": OperandKind.SCALAR, "number": 2}, last=1)
    members = word.members()
    assert (members["op"], members["b.kind"], members["b.number"]) == (VectorOp.FMA.value, 2, 2)
    assert word.index == 3


def test_random_structures_round_trip(rng: np.random.Generator) -> None:
    for struct in {*FIELD_STRUCTS.values()}:
        bits = int(rng.integers(1 << struct_width(struct)))
        nested: dict[str, Any] = {}
        for name, value in unpack(struct, bits).items():
            outer, _, inner = name.partition(".")
            if inner:
                nested.setdefault(outer, {})[inner] = value
            else:
                nested[outer] = value
        assert pack(struct, nested) == bits


def test_header_and_end_are_the_programs_own() -> None:
    words = [
        Word.decode(int.from_bytes(raw, "little"), 0)
        for raw in np.frombuffer(Program(7, []).to_bytes(), dtype="V8").tolist()
    ]
    assert [word.field for word in words] == [ControlField.CONFIG, ControlField.LENGTH, ControlField.END]
