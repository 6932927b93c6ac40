"""Sums and products of binary32 patterns in exact rational arithmetic: slow, and plainly right."""

from fractions import Fraction

from daedal.hw.isa.spec.binary32 import CANONICAL_NAN

INFINITY = 0x7F800000
EXPONENT_SPECIAL = 0xFF
"""Exponent field of infinities and NaNs."""

_SIGN = 1 << 31


def is_nan(bits: int) -> bool:
    """Whether a binary32 pattern is a NaN."""
    return bits & ~_SIGN > INFINITY


def exact(bits: int) -> Fraction:
    """The value of a finite binary32 pattern."""
    exponent, fraction = bits >> 23 & EXPONENT_SPECIAL, bits & (1 << 23) - 1
    significand = fraction | (exponent > 0) << 23
    return Fraction(-significand if bits & _SIGN else significand) * Fraction(2) ** (max(exponent, 1) - 150)


def rounded(value: Fraction, *, zero_sign: int = 0) -> int:
    """The binary32 pattern nearest to ``value``, ties to even; a zero gets the sign bit ``zero_sign``."""
    if value == 0:
        return zero_sign
    sign, magnitude = (_SIGN if value < 0 else 0), abs(value)
    binade = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** binade:
        binade -= 1
    last = max(binade - 23, -149)
    units = round(magnitude / Fraction(2) ** last)
    return sign | min(units + (last + 149 << 23), INFINITY)


def multiply_add(a: int, b: int, c: int) -> int:
    """``a * b + c`` on binary32 patterns with one rounding."""
    product_sign, magnitudes = (a ^ b) & _SIGN, [x & ~_SIGN for x in (a, b, c)]
    infinite = INFINITY in magnitudes[:2]
    if is_nan(a) or is_nan(b) or is_nan(c) or (infinite and 0 in magnitudes[:2]):
        return CANONICAL_NAN
    if infinite:
        return CANONICAL_NAN if c == INFINITY | (product_sign ^ _SIGN) else product_sign | INFINITY
    if magnitudes[2] == INFINITY:
        return c
    return rounded(exact(a) * exact(b) + exact(c), zero_sign=product_sign & c)
