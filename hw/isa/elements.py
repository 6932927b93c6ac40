"""The types that elements of rows have in device memory: their size, and what the software calls them.

What else is 32 bits wide has another name: ``LANE`` is what the execute unit computes with and its registers hold,
``ROW_GRANULE`` what rows are made of, ``hw.isa.program.WORD_BYTES`` a word of a program; indices are integers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from daedal.hw.isa.words import LengthField


@dataclass(frozen=True)
class Element:
    """The type of a row's elements in device memory.

    Attributes
    ----------
    name
        What the documents call it.
    bits
        Of an element: a multiple of 8, or 4 or 2.
    mlir
        Its type in MLIR, which is its name in a kernel's source as well.
    dtype
        What PyTorch calls it.
    array
        What NumPy calls it, or the integers of its size if NumPy does not have it.
    """

    name: str
    bits: int
    mlir: str
    dtype: str
    array: str

    @property
    def bytes(self) -> int:
        """Bytes of an element, which has 8 bits or more."""
        return self.bits // 8

    @property
    def multiple(self) -> int:
        """Of what the number of elements of a row is a multiple: of those below ``STORE_STEP`` rows fill granules."""
        return 1 if self.bits >= 8 * STORE_STEP else 8 * ROW_GRANULE // self.bits

    def row_bytes(self, elements: int) -> int:
        """Bytes of so many elements, one behind the other."""
        return self.bits * elements // 8


BINARY32 = Element("binary32", 32, mlir="f32", dtype="float32", array="float32")
BINARY16 = Element("binary16", 16, mlir="f16", dtype="float16", array="float16")
BFLOAT16 = Element("bfloat16", 16, mlir="bf16", dtype="bfloat16", array="uint16")

ELEMENTS = (BINARY32, BINARY16, BFLOAT16)
"""The numbers that rows can be made of; a machine may have converters for fewer (``Config.binary16``, ``bfloat16``)."""

UNSIGNED8 = Element("unsigned8", 8, mlir="ui8", dtype="uint8", array="uint8")
UNSIGNED4 = Element("unsigned4", 4, mlir="ui4", dtype="quint4x2", array="uint8")
UNSIGNED2 = Element("unsigned2", 2, mlir="ui2", dtype="quint2x4", array="uint8")

QUANTISED = (UNSIGNED8, UNSIGNED4, UNSIGNED2)
"""What rows with a head are made of, in machines that have them (``Config.quantised``); these are never stored."""

FLOAT8_E4 = Element("float8 of 4 bits of exponent", 8, mlir="f8E4M3", dtype="float8_e4", array="uint8")
FLOAT8_E5 = Element("float8 of 5 bits of exponent", 8, mlir="f8E5M2", dtype="float8_e5", array="uint8")

FLOATS8 = (FLOAT8_E4, FLOAT8_E5)
"""Numbers of 8 bits, of which all are finite, in machines that have them (``Config.float8``); never stored as well."""

HEAD_WORDS = 2
"""binary32 numbers in front of the elements of a quantised row: its scale and its bias."""

LANE = BINARY32
"""What a lane computes with: an element of a register's row, or a scalar."""

LENGTH_ELEMENTS: Mapping[LengthField, Element] = {
    LengthField.ELEMENTS: BINARY32,
    LengthField.BINARY16: BINARY16,
    LengthField.BFLOAT16: BFLOAT16,
    LengthField.BFLOAT16_AWAY: BFLOAT16,
    LengthField.UNSIGNED8: UNSIGNED8,
    LengthField.UNSIGNED4: UNSIGNED4,
    LengthField.UNSIGNED2: UNSIGNED2,
    LengthField.FLOAT8_E4: FLOAT8_E4,
    LengthField.FLOAT8_E5: FLOAT8_E5,
}
"""What rows of a length register of this type are made of where they are popped or stored."""

UNSIGNED = tuple(field for field, element in LENGTH_ELEMENTS.items() if element in QUANTISED)
"""Types of rows that may have a head."""

UNSTORED = tuple(field for field, element in LENGTH_ELEMENTS.items() if element.bits < 16)
"""Types of rows that are popped and not stored."""

ROW_GRANULE = 4
"""Bytes: rows begin at multiples of it, and have whole ones in the queues."""

STORE_STEP = 2
"""Bytes: size and address of a store are multiples of it, and the store unit writes no less."""
