"""Buffers that live for one run of an executable."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from daedal.base.handle import Handle
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT, Address, Allocator
from daedal.driver.memory.device_memory import DeviceMemory
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, PLAIN, in_class


class Arena(Handle):
    """Allocates, fills and reads buffers, and gives all of them back at the end of its ``with`` block.

    If it has none, they are given back when nobody keeps the arena. Buffers of one mapping class share superblocks.
    """

    def __init__(self, memory: DeviceMemory, allocator: Allocator, config: Config) -> None:
        self._memory, self._allocator, self._config = memory, allocator, config
        self._addresses: list[Address] = []
        self._rest: dict[int, tuple[int, int]] = {}
        """What is left of the last superblock of each mapping class: address and bytes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def reserve(self, size: int, alignment: int = BUFFER_ALIGNMENT, *, mapping: int = PLAIN) -> int:
        """The address of ``size`` bytes whose content is undefined; OutOfDeviceMemory if there is no room."""
        start, left = self._rest.get(mapping, (0, 0))
        address, end = start + -start % alignment, start + left
        if address + max(size, 1) > end:
            self._addresses.append(self._allocator.allocate(size, alignment, mapping=mapping))
            address = self._addresses[-1]
            end = address + (self._config.page_bytes if mapping == COPIED else self._allocator.held_bytes(address))
        if mapping != PLAIN:
            after = address + max(size, 1)
            self._rest[mapping] = after, end - after
        return address

    def reserve_together(self, sizes: Sequence[int], mappings: Sequence[int] | None = None) -> list[int]:
        """Addresses of so many bytes each, next to each other: what one launch writes, so that its window is small.

        ``mappings``: the mapping class of each, PLAIN if left out. Those of one class share superblocks.
        """
        mappings = [PLAIN] * len(sizes) if mappings is None else mappings
        superblock, places, end = self._config.superblock_bytes, [0] * len(sizes), 0
        for mapping in sorted(set(mappings), reverse=True):  # PLAIN last: it needs no whole superblocks
            for number in (n for n, each in enumerate(mappings) if each == mapping):
                places[number] = end
                end += -(-max(sizes[number], 1) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
            if mapping != PLAIN:
                end = -(-end // superblock) * superblock
        first = self.reserve(end, superblock if set(mappings) - {PLAIN} else BUFFER_ALIGNMENT)
        return [in_class(first + place, each, self._config) for place, each in zip(places, mappings, strict=True)]

    def upload(self, source: Any, *, mapping: int | None = None) -> int:
        """The address of a copy of ``source``, a NumPy array or a torch tensor, element after element.

        Left out, ``mapping`` is the class for arrays that loads read.
        """
        array = np.ascontiguousarray(source.detach().numpy() if hasattr(source, "detach") else source)
        address = self.reserve(array.nbytes, mapping=self._memory.array_mapping if mapping is None else mapping)
        self.fill(address, array)
        return address

    def fill(self, address: int, array: NDArray[Any]) -> None:
        """Write a contiguous array to this address."""
        if array.nbytes:
            self._memory.write(address, array.reshape(-1).view(np.uint8).data)

    def download(self, address: int, shape: Sequence[int], dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """A writable array of this shape with what is at ``address``."""
        result = np.empty(shape, dtype)
        self.fetch(address, result)
        return result

    def fetch(self, address: int, target: NDArray[Any]) -> None:
        """Fill ``target``, a contiguous array, with what is at ``address``."""
        self._memory.read_into(address, target)

    def release(self) -> None:
        """Give back all buffers."""
        while self._addresses:
            self._allocator.free(self._addresses.pop())
        self._rest.clear()
