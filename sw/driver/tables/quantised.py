"""Rows of integers with a scale and a bias: as frameworks have them, and as they lie in device memory.

On a device each row is ``scale | bias``, binary32, and then the integers, the lowest bits of a byte first, with zeros
up to a multiple of 4 bytes: one form for all layouts, which differ in where scale and bias stand and in their size.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daedal.hw.isa.elements import HEAD_WORDS, LANE, UNSIGNED8


class Form(Protocol):
    """How the rows of a source become those of its table on a device; forms that are equal do the same."""

    @property
    def dtype(self) -> str:
        """The type of the elements on the device."""
        ...

    def pack(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows as they lie on the device."""
        ...


@dataclass(frozen=True)
class SignedRows:
    """int8, each with 128 added: unsigned integers, of which the machine takes it off again."""

    dtype: str = UNSIGNED8.dtype

    def pack(self, rows: NDArray[np.int8]) -> NDArray[np.uint8]:
        """uint8 of the same shape."""
        packed: NDArray[np.uint8] = rows.view(np.uint8) ^ np.uint8(0x80)
        return packed


@dataclass(frozen=True)
class QuantisedRows:
    """How rows lie in the host's memory: bytes, of which the last may have bits that are no element.

    Attributes
    ----------
    bits
        Of an integer: 8, 4 or 2.
    dim
        Integers of a row.
    number
        The type of scale and bias: ``float32`` or ``float16``, which is widened exactly.
    is_first
        Scale and bias stand in front of the integers, not behind them.
    """

    bits: int
    dim: int
    number: str = "float32"
    is_first: bool = False

    @property
    def dtype(self) -> str:
        """The type of the words of a row on the device."""
        return LANE.dtype

    @property
    def integer_bytes(self) -> int:
        """Bytes of the integers of a row."""
        return -(-self.dim * self.bits // 8)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.integer_bytes + HEAD_WORDS * np.dtype(self.number).itemsize

    @property
    def words(self) -> int:
        """Words of a row on the device."""
        return HEAD_WORDS + -(-self.integer_bytes // LANE.bytes)

    def pack(self, rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows as they lie on the device, of rows of ``row_bytes`` bytes."""
        size, head_bytes = self.integer_bytes, self.row_bytes - self.integer_bytes
        at = 0 if self.is_first else size
        packed = np.zeros((len(rows), self.words * LANE.bytes), np.uint8)
        head = np.ascontiguousarray(rows[:, at : at + head_bytes]).view(self.number)
        packed[:, : HEAD_WORDS * LANE.bytes] = _as_float32(head).view(np.uint8)
        first = head_bytes if self.is_first else 0
        packed[:, HEAD_WORDS * LANE.bytes :][:, :size] = rows[:, first : first + size]
        return packed.view(np.float32)


def _as_float32(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """The same numbers; every bit of those that are binary32."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(numbers.astype(np.float32, copy=False))
