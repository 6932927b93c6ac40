"""What a lane computes, in exact rational arithmetic: slow, and plainly right."""

from fractions import Fraction

from daedal.hw.execute_unit.fpu.float_format import CANONICAL_NAN, EXPONENT_SPECIAL, INFINITY
from daedal.hw.execute_unit.fpu.lane_op import LaneOp

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


def lane_result(
    op: LaneOp, a: int, b: int, c: int, *, negate_product: bool = False, negate_addend: bool = False
) -> int:
    """The result of one lane operation on binary32 patterns."""
    one, factor, addend = 0x3F800000, a ^ negate_product << 31, c ^ negate_addend << 31
    match op:
        case LaneOp.MOVE:
            return a
        case LaneOp.ABS:
            return a & ~_SIGN
        case LaneOp.MAX | LaneOp.MIN:
            return a if _beats(a, c, op) else c
        case LaneOp.ADD:
            return multiply_add(factor, one, addend)
        case LaneOp.MUL:
            return multiply_add(factor, b, (factor ^ b) & _SIGN)
        case LaneOp.FMA:
            return multiply_add(factor, b, addend)
        case LaneOp.MUL_ADD:
            return multiply_add(multiply_add(factor, b, (factor ^ b) & _SIGN), one, addend)
        case LaneOp.SELECT:
            return a if b & ~_SIGN else c
        case LaneOp.GREATER | LaneOp.LESS:
            return one if _beats(a, c, LaneOp.MAX if op is LaneOp.GREATER else LaneOp.MIN) else 0
        case LaneOp.EQUAL:
            return one if not (is_nan(a) or is_nan(c)) and (a == c or not (a | c) & ~_SIGN) else 0
    raise ValueError(f"Operation must be a LaneOp, not {op!r}")


def _beats(a: int, c: int, op: LaneOp) -> bool:
    """Whether ``a`` replaces ``c`` under ``MAX`` or ``MIN``."""
    if is_nan(a) or is_nan(c):
        return False
    left, right = (-(x & ~_SIGN) if x & _SIGN else x for x in (a, c))
    return left > right if op is LaneOp.MAX else left < right
