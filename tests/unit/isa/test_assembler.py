"""Assembler and disassembler: text and bytes say the same."""

import numpy as np
import pytest

from daedal.errors import ProgramError
from daedal.hw.isa.assembler import assemble, disassemble
from daedal.hw.isa.execute import VectorOp
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.program_words import (
    ControlField,
    Destination,
    InstructionField,
    LevelField,
    Source,
    StepField,
)
from tests.unit.isa.words import random_words

EXAMPLE = """
config 0x81ca7515
; the comment of a line
level 1 control enable=1 induction=r0 lower=r1 upper=r2
level 1 load0_base = arg4 + 8   ; and of a part
step 0 fetch_pitch = 256
step 3 scalar = arg2
level 2 lower = -1
instruction 2 code op=add a.kind=queue last=1
control 0 run = 0
"""
WORDS = (
    Word.packed(LevelField.CONTROL, 1, enable=1, induction=Destination.R0, lower=Source.R1, upper=Source.R2),
    Word(LevelField.LOAD0_BASE, 1, 8, 4),
    Word(StepField.FETCH_PITCH, 0, 256),
    Word(StepField.SCALAR, 3, 0, 2),
    Word(LevelField.LOWER, 2, (1 << 40) - 1),
    Word.packed(InstructionField.CODE, 2, op=VectorOp.ADD, a={"kind": 1}, last=1),
    Word(ControlField.RUN),
)


def test_example() -> None:
    assert Program.from_bytes(assemble(EXAMPLE)) == Program(0x81CA7515, WORDS)


def test_disassembly_is_readable() -> None:
    lines = disassemble(assemble(EXAMPLE)).splitlines()
    assert lines[0] == "config 0x81ca7515"
    assert lines[1] == "level 1 control enable=1 induction=r0 lower=r1 upper=r2"
    assert lines[2] == "level 1 load0_base = arg4 + 0x8"
    assert lines[6] == "instruction 2 code op=add a.kind=queue last=1"


@pytest.mark.parametrize("part", range(5))
def test_random_programs_round_trip(rng: np.random.Generator, part: int) -> None:
    rng = np.random.default_rng([part, int(rng.integers(1 << 30))])
    raw = Program(int(rng.integers(1 << 32)), random_words(rng, 150)).to_bytes()
    text = disassemble(raw)
    assert assemble(text) == raw
    assert disassemble(assemble(text)) == text


@pytest.mark.parametrize(("line", "message"), [
    ("nonsense", "unit index field"),
    ("level x control enable=1", "cannot be read"),
    ("shelf 0 control enable=1", "cannot be read"),
    ("level 0 colour = 1", "cannot be read"),
    ("level 0 control enable=2", "must fit 1 bits, not 2"),
    ("level 0 control colour=1", "must be one of enable"),
    ("level 0 control induction=r9", "cannot be read"),
    ("level 0 lower = ", "must be a number"),
    ("level 0 lower = 0x10000000000", "must fit 40 bits"),
    ("level 0 lower = arg99", "cannot be read|must fit 5 bits, not 99"),
    ("level 64 lower = 1", "must fit 6 bits, not 64"),
    ("level 0 lower", "cannot be read"),
])  # fmt: skip
def test_lines_that_cannot_be_read_are_named(line: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        assemble(f"config 1\n{line}\n")


def test_the_line_is_numbered() -> None:
    with pytest.raises(ProgramError, match="line 3: 'nonsense'"):
        assemble("config 1\n\nnonsense")


def test_a_configuration_is_needed() -> None:
    with pytest.raises(ProgramError, match="config"):
        assemble("level 0 lower = 1")


def test_only_programs_are_disassembled(rng: np.random.Generator) -> None:
    with pytest.raises(ProgramError):
        disassemble(rng.bytes(64))
