"""The checksum of programs: 16 bits, one whole word in each step, made for few gates.

Words are taken in order, END's too, and the sum of a whole program is 0. It begins with 0; with each word it is
multiplied by `x + 1`, modulo `x^16 + x^14 + x^12 + x + 1` over the field of two elements, and then the folded word is
added. A word is folded by adding up its quarters of 16 bits and, once more, those but the lowest rotated up by 3, 5 and
6 bits. END's value, below 2**16, is what makes the sum 0.

So every wrong bit is noticed, and any two wrong bits less than 224 words apart; of other changes all but 1 in 65,536.
"""

from collections.abc import Iterable

SUM_BITS = 16

SUM_POLYNOMIAL = 0x5003
"""What the polynomial has below ``x^16``."""

SUM_ROTATIONS = (3, 5, 6)
"""How far the second, third and fourth quarter of a word is rotated up, bits."""

_MASK = (1 << SUM_BITS) - 1


def folded(word: int) -> int:
    """The 16 bits to which a word of 64 bits is folded."""
    result = word & _MASK
    for number, places in enumerate(SUM_ROTATIONS, 1):
        quarter = word >> SUM_BITS * number & _MASK
        result ^= quarter ^ (quarter << places & _MASK) ^ quarter >> (SUM_BITS - places)
    return result


def next_sum(so_far: int, word: int) -> int:
    """The sum behind one word more."""
    carried = SUM_POLYNOMIAL if so_far >> (SUM_BITS - 1) else 0
    return so_far ^ (so_far << 1 & _MASK) ^ carried ^ folded(word)


def checksum(words: Iterable[int]) -> int:
    """The sum of these words; 0 for all of a program."""
    result = 0
    for word in words:
        result = next_sum(result, word)
    return result
