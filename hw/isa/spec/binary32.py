"""Binary32 as the machine computes it, in NumPy: float32 arrays in and out, element by element, bit for bit.

Round to nearest even, subnormals kept; every NaN that arithmetic produces is 0x7fc00000, while moves, comparisons and
selections keep all bits of what they pass on. ``rational.py`` says the same of sums and products in exact arithmetic.
NumPy warns of what overflows or is invalid unless the caller has it ignored (``np.errstate``).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]

CANONICAL_NAN = 0x7FC00000
"""The only NaN that arithmetic produces: quiet, positive, no payload."""

COUNT_BITS = 24
"""Bits of a count that rows are divided by."""

_NAN = np.uint32(CANONICAL_NAN).view(np.float32)
_ONE, _ZERO = np.float32(1), np.float32(0)
_LARGEST_SCALE = 700
"""Scales beyond give an infinity or a zero, as this one does; binary64 holds what it gives exactly."""


def as_bits(values: Any) -> NDArray[np.uint32]:
    """The patterns of these elements."""
    return np.asarray(values, np.float32).view(np.uint32)


def from_bits(patterns: Any) -> Floats:
    """The elements of these patterns."""
    return np.asarray(patterns, np.uint32).view(np.float32)


def canonical(values: Any) -> Floats:
    """The result of arithmetic: any NaN becomes the canonical one."""
    values = np.asarray(values, np.float32)
    return np.where(np.isnan(values), _NAN, values)


def add(a: Floats, b: Floats) -> Floats:
    """``a + b``."""
    return canonical(a + b)


def subtract(a: Floats, b: Floats) -> Floats:
    """``a - b``."""
    return canonical(a - b)


def multiply(a: Floats, b: Floats) -> Floats:
    """``a * b``."""
    return canonical(a * b)


def divide(a: Floats, b: Floats) -> Floats:
    """``a / b``."""
    return canonical(a / b)


def square_root(a: Floats) -> Floats:
    """The square root of ``a``."""
    return canonical(np.sqrt(a))


def fused(a: Floats, b: Floats, c: Floats) -> Floats:
    """``a * b + c``, rounded once: the sum in binary64 is rounded to odd, so that rounding it again is right."""
    product, addend = np.float64(a) * np.float64(b), np.asarray(c, np.float64)
    total = np.atleast_1d(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + step, bits).view(np.float64).astype(np.float32)
    return canonical(odd.reshape(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))))


def absolute(a: Floats) -> Floats:
    """``a`` with its sign cleared, also of a NaN."""
    return np.abs(a)


def greater(a: Floats, c: Floats) -> Floats:
    """``a > c ? a : c``: ``c`` stays when either is a NaN, and between zeros."""
    return np.where(a > c, a, c)


def less(a: Floats, c: Floats) -> Floats:
    """``a < c ? a : c``, with the same rules."""
    return np.where(a < c, a, c)


def select(mask: Floats, a: Floats, c: Floats) -> Floats:
    """``a`` where ``mask`` is not a zero (a NaN is none), else ``c``."""
    return np.where(mask != 0, a, c)


def truth(holds: Any) -> Floats:
    """1.0 where it holds, else +0.0."""
    return np.where(holds, _ONE, _ZERO)


def divide_count(a: Floats, count: Any) -> Floats:
    """``a`` divided by the low ``COUNT_BITS`` of an unsigned integer; ``a`` itself if they are 0 or 1."""
    low = np.asarray(count, np.uint32) & np.uint32((1 << COUNT_BITS) - 1)
    return np.where(low <= 1, a, divide(a, np.asarray(np.maximum(low, 1), np.float32)))


def to_integer(a: Floats) -> Integers:
    """The nearest integer of 32 signed bits, ties to even; of what does not fit the nearest that does, of a NaN 0."""
    whole = np.clip(np.rint(np.float64(a)), -(1 << 31), (1 << 31) - 1)
    return np.where(np.isnan(a), 0, whole).astype(np.int32)


def to_float(a: Any) -> Floats:
    """A signed integer of 32 bits, rounded."""
    return np.asarray(a).astype(np.float32)


def scale(a: Floats, power: Any) -> Floats:
    """``a * 2**power``, rounded once; ``power`` a signed integer of 32 bits."""
    limited = np.clip(power, -_LARGEST_SCALE, _LARGEST_SCALE)
    return canonical(np.ldexp(np.float64(a), limited).astype(np.float32))
