"""What the host gives to a launch and takes from it: in one piece of device memory, written and read at once."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT, Address
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

    They take whole superblocks of the device's memory, which are written at once.
    """

    def __init__(self, device: Device, parts: Mapping[str, Part]) -> None:
        layout, superblock = Layout(list(parts.values())), device.config.superblock_bytes
        self.whole = np.zeros(-(-layout.bytes // superblock) * superblock, np.uint8)
        """All of it."""
        self._places = dict(zip(parts, layout.places, strict=True))
        self.arrays = dict(zip(parts, layout.arrays(self.whole), strict=True))
        """To be filled."""

    def buffers(self, address: int) -> dict[str, Buffer]:
        """The buffers that the arrays are at this address, by name."""
        return {
            name: Buffer(address + self._places[name], array.shape, array.strides)
            for name, array in self.arrays.items()
        }


class Placed(NamedTuple):
    """What a launch is told for inputs and outputs in some places: its arguments, and the memory that it reads."""

    arguments: tuple[int, ...]
    reads: Sequence[Region]


class StagedProgram(Handle):
    """A program whose inputs are staged, with what it writes behind them in one piece: one write, one read.

    Parameters
    ----------
    program
        Where it is in device memory.
    staging, outputs
        What it is given, and what it writes.
    placed
        Says what it is told if its inputs begin at one address and its outputs at another; may fill a part of the
        staging that depends on these. It is asked again only for other addresses.
    """

    def __init__(
        self, device: Device, program: int, staging: Staging, outputs: Layout, placed: Callable[[int, int], Placed]
    ) -> None:
        self._device, self._program, self._placed = device, program, placed
        self._whole, self._outputs = staging.whole, outputs
        self._is_one = len(outputs.parts) == 1
        self._superblock = device.config.superblock_bytes
        self._class = in_class(0, device.memory.array_mapping, device.config)
        self._bytes = len(self._whole) + max(outputs.bytes, 1)
        self._first = -1
        """Where its inputs were last; what the launch was told then, and the memory that it wrote."""
        self._last = Placed((), ())
        self._writes: list[Region] = []

    def submit(self, filled: Callable[[list[Array]], None] | None = None) -> tuple[list[Array], Launch]:
        """Submit a launch with what is in the staging; the arrays that it will have filled. When it has ended well,
        ``filled`` is given these.
        """
        device = self._device
        memory, allocator = device.memory, device.allocator
        held: list[Address] = [allocator.allocate(self._bytes, self._superblock)]
        first, behind = held[0], held[0] + len(self._whole)
        whole, arrays = self._fresh()
        if first != self._first:
            self._first = -1
            self._last = self._placed(first | self._class, behind)
            size = self._outputs.parts[0].nbytes if self._is_one else self._outputs.bytes
            self._writes = [Region(behind, max(size, 1))]
            self._first = int(first)
        memory.write(first | self._class, self._whole.data)

        def ended(record: Record | None) -> None:
            try:
                if record is not None:
                    memory.read_into(behind, whole)
                    if filled is not None:
                        filled(arrays)
            finally:
                while held:
                    allocator.free(held.pop())

        arguments, reads = self._last
        return arrays, device.submit(self._program, arguments, reads=reads, writes=self._writes, ended=ended)

    def _fresh(self) -> tuple[Array, list[Array]]:
        """Memory for what a launch writes, and the arrays in it."""
        if self._is_one:
            one = np.empty(*self._outputs.parts[0])
            return one, [one]
        whole: Array = np.empty(self._outputs.bytes, np.uint8)
        return whole, self._outputs.arrays(whole)
