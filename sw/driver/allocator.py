"""The allocator of device memory: first fit, with neighbours joined again on free."""

from collections.abc import Callable

from daedal.errors import OutOfDeviceMemory
from daedal.hw.config import Config
from daedal.hw.isa.mapping import PLAIN, in_class, place_of

BUFFER_ALIGNMENT = 64
"""Alignment of buffers, programs, launch blocks and records, bytes."""

TABLE_ALIGNMENT = 4096
"""Alignment of tables, bytes."""


class Allocator:
    """Hands out ranges of ``[start, end)``.

    Parameters
    ----------
    start, end
        The range to manage, bytes. Address 0 should lie outside, so that a forgotten address is never valid.
    config
        The machine: what has a mapping class other than PLAIN gets whole superblocks of it.
    """

    def __init__(self, start: int, end: int, config: Config) -> None:
        if not 0 <= start <= end:
            raise ValueError(f"start must be from 0 to end = {end!r}, not {start!r}")
        self._config, self._superblock = config, config.superblock_bytes
        self._free: list[tuple[int, int]] = [(start, end)] if start < end else []
        self._held: dict[int, int] = {}
        self.reclaim: Callable[[], bool] = lambda: False
        """Called when there is no room: gives back what nobody needs any more, and says whether there was anything."""

    @property
    def free_bytes(self) -> int:
        """Bytes that are not handed out, in all."""
        return sum(end - start for start, end in self._free)

    @property
    def largest_free(self) -> int:
        """Bytes of the largest range that is not handed out."""
        return max((end - start for start, end in self._free), default=0)

    def held_bytes(self, address: int) -> int:
        """Bytes that were handed out at ``address``: more than were asked for if it got whole superblocks."""
        return self._held[address]

    def allocate(
        self, size: int, alignment: int = BUFFER_ALIGNMENT, *, mapping: int = PLAIN, what: str = "a buffer"
    ) -> int:
        """The address, with its mapping class, of ``size`` bytes (at least one) at a multiple of ``alignment``.

        Raises OutOfDeviceMemory, with the bytes asked for, free, and in the largest free range.
        """
        if size < 0:
            raise ValueError(f"size must be at least 0, not {size!r}")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"alignment must be a power of two, not {alignment!r}")
        size = room = max(size, 1)
        if mapping != PLAIN:
            alignment = max(alignment, self._superblock)
            room = -(-size // self._superblock) * self._superblock
        for position, (start, end) in enumerate(self._free):
            place = -(-start // alignment) * alignment
            if place + room <= end:
                address = in_class(place, mapping, self._config)
                rest = [(start, place), (place + room, end)]
                self._free[position : position + 1] = [(low, high) for low, high in rest if low < high]
                self._held[address] = room
                return address
        if self.reclaim():
            return self.allocate(size, alignment, mapping=mapping, what=what)
        raise OutOfDeviceMemory(
            f"{what} of {size} bytes does not fit into device memory: {self.free_bytes} bytes are free, "
            f"{self.largest_free} in one piece; drop tables or open the device with a larger memory_bytes"
        )

    def free(self, address: int) -> None:
        """Take back what :meth:`allocate` handed out at ``address``; ValueError if it did not."""
        size = self._held.pop(address, None)
        if size is None:
            raise ValueError(f"address must be one that was allocated, not {address:#x}")
        place = place_of(address, self._config)
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self._free, (place, place + size)]):
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._free = merged
