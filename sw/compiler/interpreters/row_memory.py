"""Rows of f32 at an address: what ``place.memref`` and lists of tables speak of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.errors import IndexOutOfRange

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Rows:
    """Rows of ``width`` elements, ``pitch`` elements apart, from byte ``address`` of ``memory`` on.

    Row 0 may lie before the memory, if nobody takes it.
    """

    memory: NDArray[np.uint8]
    address: int
    width: int
    pitch: int

    def place(self, row: int, column: int = 0) -> int:
        """The position of an element in :attr:`elements`; IndexOutOfRange outside of the memory."""
        byte = self.address + (row * self.pitch + column) * FLOAT_BYTES
        if not 0 <= byte <= len(self.memory) - FLOAT_BYTES:
            raise IndexOutOfRange(f"element {column} of row {row}, at address {byte}, is outside of memory")
        return byte // FLOAT_BYTES

    @property
    def elements(self) -> NDArray[np.float32]:
        """The whole memory, as f32; changes count."""
        return self.memory.view(np.float32)

    def __getitem__(self, row: int) -> NDArray[np.float32]:
        at = self.place(row)
        return self.elements[at : at + self.width].copy()

    def __setitem__(self, row: int, values: Any) -> None:
        at = self.place(row)
        self.elements[at : at + self.width] = values
