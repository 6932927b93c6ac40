"""Device memory at a program's addresses: what the host writes and reads is mapped here."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.memory.layout import array_mapping
from daedal.driver.targets.target import Target
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import (
    COPIED,
    HASHED,
    class_of,
    copies,
    granule_bytes,
    granules,
    memory_address,
    memory_addresses,
    place_of,
)

MOST_BYTES = 1 << 24
"""Most bytes that are put in another order at a time."""

MOST_ORDERS, SMALL_BYTES = 256, 1 << 18
"""How many orders of granules are kept, of ranges of at most so many bytes."""


class _Order(NamedTuple):
    """Granules from a ``place`` on: of each one in the program's order, which one it is in memory (``given``), and the
    other way round (``taken``).
    """

    place: int
    given: NDArray[np.intp]
    taken: NDArray[np.intp]


class DeviceMemory(Handle):
    """Reads and writes ranges of one mapping class each; a target's own primitives know memory addresses only.

    What is of class COPIED is written to all copies and read from the first one. ValueError if it is not in the first
    page of a superblock.
    """

    def __init__(self, target: Target, config: Config) -> None:
        self._target, self._config = target, config
        self.array_mapping = array_mapping(config)
        self._orders: dict[tuple[int, int], _Order] = {}
        """Of whole superblocks, by address and size."""
        self._granule_types = [np.dtype((np.void, size)) for size in granules(config)]
        self.bytes_up = self.bytes_down = 0
        """Bytes that were written and read: tables and buffers, without programs, launch blocks and records."""

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write a contiguous buffer's bytes from this address on."""
        self.bytes_up += len(data)
        mapping = class_of(address, self._config)
        if mapping not in HASHED:
            for place in self._unmoved(address, len(data)):
                self._target.mem_write(place, data)
            return
        raw = np.frombuffer(data, np.uint8)
        order = self._orders.get((address, len(raw)))
        if order is not None:  # as launches have it: nothing but whole superblocks, where some were before
            taken = raw.view(np.uint64).reshape(len(order.taken), -1).take(order.taken, 0)
            self._target.mem_write(order.place, taken.reshape(-1).view(np.uint8).data)
            return
        for first, offset, size in self._parts(address, len(raw)):
            part = raw[offset : offset + size]
            if size % self._config.superblock_bytes == 0:
                moved = np.empty(size, np.uint8)
                self._granules(moved, address)[self._order(first, size).given] = self._granules(part, address)
                self._target.mem_write(place_of(first, self._config), moved.data)
            else:
                self._target.mem_write(memory_address(first, self._config), part.tobytes())

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from this address on."""
        self.bytes_down += size
        if class_of(address, self._config) not in HASHED:
            return self._target.mem_read(self._unmoved(address, size)[0], size)
        result = np.empty(size, np.uint8)
        for first, offset, part in self._parts(address, size):
            if part % self._config.superblock_bytes == 0:
                raw = np.frombuffer(self._target.mem_read(place_of(first, self._config), part), np.uint8)
                self._granules(result[offset : offset + part], address)[:] = self._granules(raw, address)[
                    self._order(first, part).given
                ]
            else:
                raw = np.frombuffer(self._target.mem_read(memory_address(first, self._config), part), np.uint8)
                result[offset : offset + part] = raw
        return result.tobytes()

    def read_into(self, address: int, target: NDArray[Any]) -> None:
        """Fill a contiguous array with what is at this address."""
        if target.nbytes:
            target.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.read(address, target.nbytes), np.uint8)

    def even_out(self, address: int, size: int) -> None:
        """Make the copies of what is of class COPIED equal again to the first one, which a program may have written."""
        first, *others = self._unmoved(address, size)
        data = self._target.mem_read(first, size)
        if others and data != self._target.mem_read(others[0], size):
            self.write(address, data)

    def _unmoved(self, address: int, size: int) -> range:
        """The memory addresses of what is of class PLAIN, or of each copy of it."""
        config, mapping, place = self._config, class_of(address, self._config), place_of(address, self._config)
        if mapping == COPIED and place % config.superblock_bytes + size > config.page_bytes:
            raise ValueError(f"what is copied must lie in a superblock's first page, not at {address:#x}, {size} bytes")
        each = copies(mapping, config)
        return range(place + each.start, place + each.stop, each.step)

    def _parts(self, address: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Address, offset and bytes of parts: whole superblocks together, and at the ends what one granule has."""
        config = self._config
        superblock, granule = config.superblock_bytes, granule_bytes(class_of(address, config), config)
        most = max(1, MOST_BYTES // superblock) * superblock
        offset = 0
        while offset < size:
            at, left = address + offset, size - offset
            if at % superblock == 0 and left >= superblock:
                part = min(most, left // superblock * superblock)
            else:
                part = min(left, granule - at % granule)
            yield at, offset, part
            offset += part

    def _order(self, address: int, size: int) -> "_Order":
        """The order of the granules of whole superblocks."""
        if (address, size) in self._orders:
            return self._orders[address, size]
        mapping, first = class_of(address, self._config), place_of(address, self._config)
        granule = granule_bytes(mapping, self._config)
        places = np.arange(first, first + size, granule, dtype=np.uint64)
        given = (memory_addresses(places, mapping, self._config) - np.uint64(first)) // np.uint64(granule)
        order = _Order(first, given.astype(np.intp), np.argsort(given))
        if size <= SMALL_BYTES:  # the buffers of launches, which are in the same places again and again
            if len(self._orders) == MOST_ORDERS:
                self._orders.clear()
            self._orders[address, size] = order
        return order

    def _granules(self, raw: NDArray[np.uint8], address: int) -> NDArray[np.void]:
        """Bytes as granules of the address's mapping class."""
        return raw.view(self._granule_types[class_of(address, self._config)])
