"""What the host gives to a launch and takes from it: in one piece of device memory, written and read at once."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.driver.device import Device
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.regions import Region
from daedal.hw.isa.address_mapping import in_class
from daedal.runtime.launch_arguments import Buffer

Array = NDArray[Any]


class Part(NamedTuple):
    """An array of this shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension."""
        return tuple(prod(self.shape[n + 1 :]) * self.dtype.itemsize for n in range(len(self.shape)))


class Layout:
    """Where arrays lie that are in one piece of memory, ``bytes`` long, one behind the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts, self.bytes = tuple(parts), 0
        self.places: list[int] = []
        for part in parts:
            self.places.append(self.bytes)
            self.bytes += -(-max(part.nbytes, 1) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT

    def arrays(self, whole: NDArray[np.uint8]) -> list[Array]:
        """The arrays in this memory."""
        return [
            whole[place : place + part.nbytes].view(part.dtype).reshape(part.shape)
            for place, part in zip(self.places, self.parts, strict=True)
        ]


class Staging:
    """Memory on the host for all arrays that it gives to a launch, by name; they are filled for each launch anew.

    They take whole superblocks of the device's memory, which are written at once. What the launch writes is reserved
    behind them.
    """

    def __init__(self, device: Device, parts: Mapping[str, Part]) -> None:
        layout = Layout(list(parts.values()))
        self._superblock = device.config.superblock_bytes
        self._class = in_class(0, device.memory.array_mapping, device.config)
        self._whole = np.zeros(-(-layout.bytes // self._superblock) * self._superblock, np.uint8)
        self._places = dict(zip(parts, layout.places, strict=True))
        self.arrays = dict(zip(parts, layout.arrays(self._whole), strict=True))
        """To be filled."""

    def reserve(self, arena: Arena, outputs: int) -> tuple[int, int]:
        """Device memory for it and, behind it, for so many bytes that the launch writes: the addresses of both."""
        first = arena.reserve(len(self._whole) + max(outputs, 1), self._superblock)
        return first | self._class, first + len(self._whole)

    def upload(self, arena: Arena, address: int) -> None:
        """Write all arrays to this address."""
        arena.fill(address, self._whole)

    def buffers(self, address: int) -> dict[str, Buffer]:
        """The buffers that the arrays are at this address, by name."""
        return {
            name: Buffer(address + self._places[name], array.shape, array.strides)
            for name, array in self.arrays.items()
        }


class Outputs:
    """Fresh memory for what a launch writes, in one piece that is read at once, and the arrays in it."""

    def __init__(self, layout: Layout) -> None:
        self._whole: Array
        if len(layout.parts) == 1:
            self._whole = np.empty(*layout.parts[0])
            self.arrays = [self._whole]
        else:
            self._whole = np.empty(layout.bytes, np.uint8)
            self.arrays = layout.arrays(self._whole)

    def region(self, address: int) -> Region:
        """The memory that the launch writes if they begin at this address."""
        return Region(address, self._whole.nbytes)

    def fetch(self, arena: Arena, address: int) -> None:
        """Fill the arrays with what is at this address."""
        arena.fetch(address, self._whole)
