"""Operands that are tried in all combinations."""

_POSITIVE = [
    0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007FFFFF,  # zero, subnormals
    0x00800000, 0x00800001, 0x01000000, 0x0C800000, 0x20000000,  # smallest normals, products that underflow
    0x33800000, 0x34000000, 0x3F000000, 0x3F7FFFFF, 0x3F800000,  # 2**-24 and neighbours of 1
    0x3F800001, 0x40000000, 0x4B800000, 0x5F7FFFFF, 0x5F800000,  # 2**24, products that barely overflow
    0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC12345,  # largest, infinity, NaNs
]  # fmt: skip

CORNERS = [*_POSITIVE, *(value | 1 << 31 for value in _POSITIVE)]
"""Patterns at the edges of the number range, of both signs."""

_FRACTIONS = [0x000000, 0x7FFFFF, 0x000001, 0x400000, 0x555555, 0x2AAAAB, 0x7FFFFE, 0x3FFFFF, 0x400001, 0x000003]
"""Fractions that leave a single bit, or a carry through all of them, at the end of the aligner."""

_ONE = 127
"""Exponent of 1.0."""


def alignments(*, fractions: int) -> tuple[list[int], list[int], list[int]]:
    """Values for a, b and c: factors of about 1, and addends from 80 binades below to 40 above.

    ``fractions`` (at most 10) of each exponent.
    """
    chosen = _FRACTIONS[:fractions]
    factors = [_ONE << 23 | fraction for fraction in chosen]
    return factors, factors, [e << 23 | fraction for e in range(_ONE - 80, _ONE + 41) for fraction in chosen]
