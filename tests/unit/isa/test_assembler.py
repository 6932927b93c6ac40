"""Assembler and disassembler: text and bytes say the same."""

import re

import numpy as np
import pytest

from daedal.errors import ProgramError
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.program import UNIT_FIELDS, Program, Word, end_of
from daedal.hw.isa.tools.assembler import assemble, disassemble
from daedal.hw.isa.words import (
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


def framed(head: int, length: int, body: list[int]) -> bytes:
    """A program of these words, with CONFIG, LENGTH and END where they belong; the first two else as given."""
    first = head & ~(0xF << 46 | 0xFF << 56)
    second = length & ~((1 << 40) - 1 | 0xF << 46 | 0xFF << 56) | 1 << 56 | len(body) + 3
    raw = b"".join(word.to_bytes(8, "little") for word in (first, second, *body))
    return raw + end_of(raw)


def decodes(word: int) -> bool:
    try:
        Word.decode(word, 0)
    except ProgramError:
        return False
    return True


def some_words(rng: np.random.Generator, count: int) -> list[int]:
    """Words of 64 random bits, those that machines and assembler give no meaning too, of every unit and field."""
    fields = [field for kind in UNIT_FIELDS.values() for field in kind]
    listed = [Word(field).encode() for field in fields]
    free = (1 << 64) - 1 & ~(0xF << 46 | 0xFF << 56)
    chosen = (listed[int(k)] for k in rng.integers(len(listed), size=count))
    return [word | int.from_bytes(rng.bytes(8), "little") & free for word in chosen]


@pytest.mark.parametrize("part", range(4))
def test_programs_of_any_bits_come_back(rng: np.random.Generator, part: int) -> None:
    rng = np.random.default_rng([part, 7, int(rng.integers(1 << 30))])
    for _ in range(12):
        head, length = (int.from_bytes(rng.bytes(8), "little") for _ in range(2))
        raw = framed(head, length, some_words(rng, int(rng.integers(60))))
        text = disassemble(raw)
        assert assemble(text) == raw
        assert disassemble(assemble(text)) == text
        assert Program.from_bytes(raw).to_bytes() == raw


def test_random_words_that_decode_come_back(rng: np.random.Generator) -> None:
    words = [int.from_bytes(rng.bytes(8), "little") for _ in range(20_000)]
    legal = [word for word in words if decodes(word)]
    assert len(legal) > 100
    assert assemble(disassemble(framed(0, 0, legal))) == framed(0, 0, legal)


@pytest.mark.parametrize("word", ["head", "length", "body"])
def test_each_bit_of_a_word_comes_back(word: str) -> None:
    usual = {"head": 0, "length": 0, "body": Word(LevelField.CONTROL).encode()}
    for bit in range(64):
        changed = usual | {word: usual[word] ^ 1 << bit}
        if word == "body" and not decodes(changed["body"]):
            continue
        raw = framed(changed["head"], changed["length"], [changed["body"]])
        assert assemble(disassemble(raw)) == raw


def test_what_no_compiler_writes_has_a_form() -> None:
    text = "config 0x00000001 spare=3 index=2 length.argument=0 length.index=1\nlevel 0 lower = 5 spare=4\n"
    assert disassemble(assemble(text)) == text
    assert "spare" not in disassemble(assemble(EXAMPLE))


@pytest.mark.parametrize(("line", "message"), [
    ("instruction 0 code a.kind.b=1", "member 'a.kind.b' must be a name alone: it has no part 'b'"),
    ("instruction 0 code op.x=1", "member 'op.x' must be a name alone"),
    ("instruction 0 code op=add =1", "member must be one of op"),
    ("instruction 0 code a..kind=1", "member must be one of number, kind, not ''"),
    (f"level 0 lower = {'9' * 900}", "a value must be a number, not '999"),
    (f"level 0 lower = 0x{'f' * 900}", "a value must be a number, not '0xf"),
    (f"level 0 lower = 0x{'f' * 5000}", "a line must have at most 1000 characters, not 5018"),
    (f"level 0 lower = arg{'9' * 900}", "an argument's number must be a number"),
    (f"level {'9' * 900} lower = 1", "an index must be a number"),
    (f"level 0 control enable={'9' * 900}", "member enable must be a number"),
    ("level ٣ lower = 1", "a line must be `unit index field"),
    ("level 0 lower = 1 spare=32", "ProgramWord.argument must fit 5 bits, not 32"),
    ("level 0 lower = arg1 spare=2", "spare must be 0 where an argument is added"),
    ("level 0 lower = 1 spare=x", "spare must be a number"),
    (f"config {'9' * 900}", "a configuration's hash must be a number"),
    ("config 0x10000000000", "a configuration's hash must fit 40 bits"),
    ("config 1 colour=1", "a member must be one of argument, spare, index, length.argument"),
    ("config 1 index=64", "ProgramWord.index must fit 6 bits, not 64"),
    ("config 1 index=1 index=2", "a member must be given once, not index twice"),
    ("config 1 2", "a line must be `config HASH`"),
])  # fmt: skip
def test_hostile_lines_are_one_line(line: str, message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)) as caught:
        assemble(f"config 1\n{line}\n")
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value)
