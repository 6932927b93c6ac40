"""Rows at an address: what ``place.memref`` and lists of tables speak of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.errors import IndexOutOfRange
from daedal.hw.isa.elements import Element


@dataclass(frozen=True)
class Rows:
    """Rows of ``width`` elements of a kind, ``pitch`` of them apart, from byte ``address`` of ``memory`` on.

    Row 0 may lie before the memory, if nobody takes it.
    """

    memory: NDArray[np.uint8]
    address: int
    width: int
    pitch: int
    element: Element

    def place(self, row: int, column: int = 0) -> int:
        """The position of an element in :attr:`elements`; IndexOutOfRange outside of the memory."""
        size = self.element.bytes
        byte = self.address + (row * self.pitch + column) * size
        if not 0 <= byte <= len(self.memory) - size:
            raise IndexOutOfRange(f"element {column} of row {row}, at address {byte}, is outside of memory")
        return byte // size

    @property
    def elements(self) -> NDArray[Any]:
        """The whole memory, as elements; changes count."""
        return self.memory.view(self.element.array)

    def __getitem__(self, row: int) -> NDArray[Any]:
        at = self.place(row)
        return self.elements[at : at + self.width].copy()

    def __setitem__(self, row: int, values: Any) -> None:
        at = self.place(row)
        self.elements[at : at + self.width] = values
