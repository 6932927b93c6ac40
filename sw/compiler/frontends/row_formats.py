"""The layouts of rows that ``daedal.quantized`` takes, by name, and what is uploaded of each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.messages import shown
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source, stand_in
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BFLOAT16, FLOAT8_E4, FLOAT8_E5
from daedal.runtime.tensors import tensor_of

EXPONENT_BITS, EXPONENT_BIAS = 4, 7
"""Those of FP8 rows if nothing else is said, as FBGEMM has them."""


@dataclass(frozen=True)
class PlainRows:
    """Numbers of this type, one behind the other, as NumPy calls it."""

    dtype: str
    dim: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dim * np.dtype(self.dtype).itemsize

    def source(self, rows: NDArray[np.uint8], config: Config) -> Source:
        """What is uploaded of rows of bytes: the same bytes."""
        return rows.view(self.dtype)


@dataclass(frozen=True)
class Float8Rows:
    """Numbers of 8 bits, one behind the other: a sign, ``exponent_bits`` of exponent with this bias, and a fraction.

    All are finite: the largest exponent is one like the others, as FBGEMM has it.
    """

    exponent_bits: int
    bias: int
    dim: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dim

    def decoded(self) -> NDArray[np.float32]:
        """The number of each code: the bits of its magnitude where those of binary32 are, scaled by a power of two."""
        codes = np.arange(256, dtype=np.uint32)
        magnitudes = ((codes & 0x7F) << (16 + self.exponent_bits)).view(np.float32).astype(np.float64)
        with np.errstate(over="ignore"):
            numbers = np.ldexp(magnitudes, 127 - self.bias).astype(np.float32)
        return np.where(codes & 0x80, -numbers, numbers)

    def source(self, rows: NDArray[np.uint8], config: Config) -> Source:
        """What is uploaded of rows of bytes: the same bytes if the machine has such numbers, or these as bfloat16."""
        element = _FLOATS8.get((self.exponent_bits, self.bias))
        if element is not None and config.float8:
            return stand_in(rows, element.dtype)
        patterns = (self.decoded().view(np.uint32) >> 16).astype(np.uint16)
        return tensor_of(patterns[rows], rows.shape, BFLOAT16.dtype)

    def check(self) -> None:
        """UnsupportedOperation for numbers that no FP8 has, or that are not exactly numbers of bfloat16."""
        if not 1 <= self.exponent_bits <= 6:
            raise UnsupportedOperation(f"exponent_bits must be from 1 to 6, not {self.exponent_bits}")
        decoded = self.decoded()
        if not np.isfinite(decoded).all() or (decoded.view(np.uint32) & 0xFFFF).any() or not decoded[1]:
            raise UnsupportedOperation(
                f"exponent_bias must leave all numbers of {self.exponent_bits} bits of exponent within bfloat16, not "
                f"{self.bias}"
            )


_FLOATS8 = {(4, 7): FLOAT8_E4, (5, 15): FLOAT8_E5}
"""Bits and bias of an exponent -> the element of rows on a device."""

Rows = QuantisedRows | PlainRows | Float8Rows

FORMATS: Mapping[str, Rows] = {
    "torch-int8": QuantisedRows(8, 0, "float32"),
    "torch-int4": QuantisedRows(4, 0, "float16"),
    "torch-int2": QuantisedRows(2, 0, "float16"),
    "fbgemm-int8": QuantisedRows(8, 0, "float16", is_first=True),
    "fbgemm-int4": QuantisedRows(4, 0, "float16", is_first=True),
    "fbgemm-int2": QuantisedRows(2, 0, "float16", is_first=True),
    "fbgemm-fp32": PlainRows("float32"),
    "fbgemm-fp16": PlainRows("float16"),
    "fbgemm-fp8": Float8Rows(EXPONENT_BITS, EXPONENT_BIAS),
}
"""Layouts of rows by name, of no elements."""


def rows_of(format: str, dim: int, exponent_bits: int | None, exponent_bias: int | None) -> Rows:
    """The layout of rows of so many elements; UnsupportedOperation for a format that there is not, and for what does
    not go with it.
    """
    rows = replace(FORMATS[format], dim=dim)
    if isinstance(rows, Float8Rows):
        bits = rows.exponent_bits if exponent_bits is None else exponent_bits
        bias = rows.bias if exponent_bias is None else exponent_bias
        for what, number in (("exponent_bits", bits), ("exponent_bias", bias)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise UnsupportedOperation(f"{what} must be an integer, not {shown(number)}")
        rows = replace(rows, exponent_bits=int(bits), bias=int(bias))
        rows.check()
    elif exponent_bits is not None or exponent_bias is not None:
        raise UnsupportedOperation(f"exponent_bits and exponent_bias must go with format fbgemm-fp8, not {format}")
    return rows


def rounded(pooled: NDArray[Any], dtype: str) -> NDArray[Any]:
    """binary32 as results of this type have it: float16 to nearest even, bfloat16 (its bits) with ties away from zero.

    A NaN stays one.
    """
    if dtype == "bfloat16":
        bits = pooled.view(np.uint32)
        away = ((bits.astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)
        return np.where(np.isnan(pooled), (bits >> 16 | 0x40).astype(np.uint16), away)
    with np.errstate(all="ignore"):
        return pooled.astype(dtype, copy=False)
