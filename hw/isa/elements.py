"""The types that elements of rows have in device memory: their size, and what the software calls them.

What else is 32 bits wide has another name: ``LANE`` is what the execute unit computes with and its registers hold,
``ROW_GRANULE`` what rows are made of, ``hw.isa.program.WORD_BYTES`` a word of a program; indices are integers.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Element:
    """The type of a row's elements in device memory.

    Attributes
    ----------
    name
        What the documents call it.
    bits
        Of an element; a multiple of 8.
    mlir
        Its type in MLIR, which is its name in a kernel's source as well.
    dtype
        What NumPy and PyTorch call it.
    """

    name: str
    bits: int
    mlir: str
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.bits // 8


BINARY32 = Element("binary32", 32, mlir="f32", dtype="float32")

ELEMENTS = (BINARY32,)
"""All that rows can be made of."""

LANE = BINARY32
"""What a lane computes with: an element of a register's row, or a scalar."""

ROW_GRANULE = 4
"""Bytes: the size of a row and the address of a store are multiples of it, and the store unit writes no less."""
