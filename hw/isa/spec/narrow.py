"""Elements of less than 32 bits, in NumPy: what they are widened to, and what binary32 is rounded to."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.hw.isa.elements import LENGTH_ELEMENTS, UNSIGNED, UNSTORED
from daedal.hw.isa.spec.binary32 import Floats, as_bits, from_bits
from daedal.hw.isa.words import LengthField

Patterns = NDArray[Any]
"""Elements of rows in memory: uint32, or uint16 where they have 16 bits; those of fewer as bytes."""

_SIGN, _EXPONENT, _QUIET = 0x8000, 0x7C00, 0x0200

_FLOAT8 = {LengthField.FLOAT8_E4: (3, 7), LengthField.FLOAT8_E5: (2, 15)}
"""Bits of a fraction, and the bias of an exponent."""


def pattern_type(kind: LengthField) -> type[np.uint32] | type[np.uint16] | type[np.uint8]:
    """What has the pattern of one element of a row, or of several."""
    if kind in UNSTORED:
        return np.uint8
    return np.uint32 if kind is LengthField.ELEMENTS else np.uint16


def patterns_in(elements: int, kind: LengthField) -> int:
    """Patterns of a row of so many elements."""
    return LENGTH_ELEMENTS[kind].row_bytes(elements) // np.dtype(pattern_type(kind)).itemsize


def _unsigned(row: Patterns, bits: int) -> Floats:
    """The numbers in bytes, the lowest bits of each first."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    return (row[:, None] >> places & ((1 << bits) - 1)).reshape(-1).astype(np.float32)


@cache
def _float8(kind: LengthField) -> Floats:
    """The number of each code."""
    digits, bias = _FLOAT8[kind]
    found = []
    for code in range(256):
        exponent, fraction = (code & 0x7F) >> digits, (code & (1 << digits) - 1) / (1 << digits)
        magnitude = (fraction + (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias)
        found.append(-magnitude if code & 0x80 else magnitude)
    return np.array(found, np.float32)


def widen(patterns: Patterns, kind: LengthField) -> Floats:
    """The binary32 that elements of a row are. A NaN keeps its sign, and its payload as the upper bits."""
    if kind is LengthField.ELEMENTS:
        return from_bits(patterns)
    if kind in UNSIGNED:
        return _unsigned(patterns, LENGTH_ELEMENTS[kind].bits)
    if kind in _FLOAT8:
        return _float8(kind)[patterns]
    wide = patterns.astype(np.uint32)
    if kind is not LengthField.BINARY16:
        return from_bits(wide << 16)
    special = (wide & _EXPONENT) == _EXPONENT
    finite = as_bits(np.where(special, 0, patterns).astype(np.uint16).view(np.float16).astype(np.float32))
    bits = (wide & _SIGN) << 16 | 0x7F800000 | (wide & 0x3FF) << 13
    return from_bits(np.where(special, bits, finite))


def narrow(values: Floats, kind: LengthField) -> Patterns:
    """The elements of a row that binary32 is rounded to: a NaN to the quiet one without payload, of its sign.

    ValueError for elements of fewer than 16 bits, which no row is rounded to.
    """
    if kind in UNSTORED:
        raise ValueError(f"kind must be a type that is stored, not {kind.name}")
    bits = as_bits(values)
    if kind is LengthField.ELEMENTS:
        return bits
    sign, is_nan = (bits >> 16) & _SIGN, np.isnan(values)
    if kind is LengthField.BINARY16:
        with np.errstate(all="ignore"):
            rounded = np.where(is_nan, 0, values).astype(np.float16).view(np.uint16).astype(np.uint32)
        return np.where(is_nan, sign | _EXPONENT | _QUIET, rounded).astype(np.uint16)
    half = 0x8000 if kind is LengthField.BFLOAT16_AWAY else 0x7FFF + ((bits >> 16) & 1)
    return np.where(is_nan, sign | 0x7FC0, (bits.astype(np.uint64) + half) >> 16).astype(np.uint16)


def rounded(values: Floats, kind: LengthField) -> Floats:
    """What elements of a row are that binary32 is rounded to."""
    return widen(narrow(values, kind), kind)
