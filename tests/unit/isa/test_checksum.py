"""The checksum of programs: what it is, and what it notices."""

import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from daedal.errors import ProgramError
from daedal.hw.isa.checksum import SUM_BITS, SUM_POLYNOMIAL, checksum, folded, next_sum
from daedal.hw.isa.program import WORD_BYTES, Program, Word
from daedal.hw.isa.words import ControlField
from tests.unit.isa.words import random_words

NEAR = 224
"""Two wrong bits less than so many words apart are noticed."""


def split(raw: bytes) -> list[int]:
    return np.frombuffer(raw, "<u8").tolist()


def product(a: int, b: int) -> int:
    """Of two polynomials, modulo the checksum's."""
    result = 0
    for bit in range(SUM_BITS):
        result ^= (a << bit) * (b >> bit & 1)
    for bit in reversed(range(SUM_BITS, 2 * SUM_BITS)):
        result ^= ((1 << SUM_BITS | SUM_POLYNOMIAL) << (bit - SUM_BITS)) * (result >> bit & 1)
    return result


def by_the_book(words: Sequence[int]) -> int:
    """The same from bits and polynomials."""
    total = 0
    for word in words:
        quarters = [[word >> (16 * k + n) & 1 for n in range(16)] for k in range(4)]
        bits = quarters[0]
        for quarter, places in zip(quarters[1:], (3, 5, 6), strict=True):
            bits = [(bits[n] + quarter[n] + quarter[n - places]) % 2 for n in range(16)]
        total = product(total, 0b11) ^ sum(bit << n for n, bit in enumerate(bits))
    return total


def test_the_sum_of_a_program_is_0(rng: np.random.Generator) -> None:
    for count in (0, 1, 7, 200):
        words = split(Program(0x1234, random_words(rng, count)).to_bytes())
        assert checksum(words) == by_the_book(words) == 0
        assert Word.decode(words[-1], 0).value < 1 << SUM_BITS
        assert checksum(words[:-1]) == by_the_book(words[:-1])


def test_two_wrong_bits_near_each_other_are_noticed() -> None:
    """What is left of a wrong bit after so many words is what no other bit makes."""
    made = [folded(1 << bit) for bit in range(64)]
    assert len(set(made)) == 64
    assert 0 not in made
    left = list(made)
    for _ in range(1, NEAR):
        left = [next_sum(each, 0) for each in left]
        assert not set(left) & set(made)
    assert {next_sum(each, 0) for each in left} & set(made), "the page says less than is so"


def test_words_in_another_order_are_noticed(rng: np.random.Generator) -> None:
    raw = Program(0x1234, random_words(rng, 40)).to_bytes()
    words = split(raw)
    for at in range(2, len(words) - 2):
        if words[at] != words[at + 1]:
            swapped = [*words[:at], words[at + 1], words[at], *words[at + 2 :]]
            with pytest.raises(ProgramError, match="checksum"):
                Program.from_bytes(np.array(swapped, "<u8").tobytes())


def test_programs_of_the_first_revision_are_refused(rng: np.random.Generator) -> None:
    raw = Program(0x1234, random_words(rng, 5)).to_bytes()[:-WORD_BYTES]
    old = raw + Word(ControlField.END, value=zlib.crc32(raw)).encode().to_bytes(WORD_BYTES, "little")
    with pytest.raises(ProgramError, match="must be for revision 2 of the programming interface, not 1: compile or"):
        Program.from_bytes(old)
