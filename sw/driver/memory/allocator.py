"""The allocator of device memory: first fit, with neighbours joined again on free."""

import weakref
from collections.abc import Callable
from typing import NamedTuple

from daedal.base.handle import Handle
from daedal.errors import OutOfDeviceMemory
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, PLAIN, in_class, place_of

BUFFER_ALIGNMENT = 64
"""Alignment of buffers, programs, launch blocks and records, bytes."""

TABLE_ALIGNMENT = 4096
"""Alignment of tables, bytes."""


class _Owner:
    """What an address has, and nothing else; Python has no weak references to numbers."""


class Address(int):
    """An address that was handed out: its memory is held until it is freed, or as long as this very object is kept.

    So whoever is interrupted before it has put the address somewhere, wherever that is, has not taken any memory.
    """

    def __init__(self, _: int) -> None:
        self.owner = _Owner()


class _Held(NamedTuple):
    """Bytes that were handed out, and who has them."""

    room: int
    owner: "weakref.ref[_Owner]"


class Allocator(Handle):
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
        self._start, self._end = start, end
        self._held: dict[int, _Held] = {}
        self._free = self._gaps()
        """What can be handed out; less than there is if an interrupt came in between, or if an owner is gone."""
        self.reclaim: Callable[[], bool] = lambda: False
        """Called when there is no room, again and again: gives something back, and says whether there was anything."""

    @property
    def free_bytes(self) -> int:
        """Bytes that are not handed out, in all."""
        return sum(end - start for start, end in self._gaps())

    @property
    def largest_free(self) -> int:
        """Bytes of the largest range that is not handed out."""
        return max((end - start for start, end in self._gaps()), default=0)

    def held_bytes(self, address: int) -> int:
        """Bytes that were handed out at ``address``: more than were asked for if it got whole superblocks."""
        return self._held[address].room

    def allocate(
        self, size: int, alignment: int = BUFFER_ALIGNMENT, *, mapping: int = PLAIN, what: str = "a buffer"
    ) -> Address:
        """The address, with its mapping class, of ``size`` bytes (at least one) at a multiple of ``alignment``.

        They are held until they are freed, or nobody keeps what this returned. Raises OutOfDeviceMemory, with the
        bytes asked for, free, and in the largest free range; ValueError for more than a page of class COPIED.
        """
        if size < 0:
            raise ValueError(f"size must be at least 0, not {size!r}")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"alignment must be a power of two, not {alignment!r}")
        if mapping == COPIED and size > self._config.page_bytes:
            raise ValueError(f"what is copied must have at most {self._config.page_bytes} bytes, not {size!r}")
        size = room = max(size, 1)
        if mapping != PLAIN:
            alignment = max(alignment, self._superblock)
            room = -(-size // self._superblock) * self._superblock
        while (place := self._take(room, alignment)) is None and (self._collect() or self.reclaim()):
            pass
        if place is not None:
            address = Address(in_class(place, mapping, self._config))
            self._held[int(address)] = _Held(room, weakref.ref(address.owner))
            return address
        raise OutOfDeviceMemory(
            f"{what} of {size} bytes does not fit into device memory: {self.free_bytes} bytes are free, "
            f"{self.largest_free} in one piece; drop tables, open the device with a larger "
            "memory_bytes, or leave tables in the framework (budget=)"
        )

    def _take(self, room: int, alignment: int) -> int | None:
        """The first place that is free; None if there is none."""
        for position, (start, end) in enumerate(self._free):
            place = -(-start // alignment) * alignment
            if place + room <= end:
                rest = [(start, place), (place + room, end)]
                self._free[position : position + 1] = [(low, high) for low, high in rest if low < high]
                return place
        return None

    def _living(self) -> dict[int, _Held]:
        """What is held by an owner that is still there."""
        return {address: each for address, each in self._held.copy().items() if each.owner() is not None}

    def _gaps(self) -> list[tuple[int, int]]:
        """What is between all that is held."""
        held = sorted((place_of(address, self._config), each.room) for address, each in self._living().items())
        ends = [self._start, *(place + room for place, room in held)]
        starts = [*(place for place, _ in held), self._end]
        return [(low, high) for low, high in zip(ends, starts, strict=True) if low < high]

    def _collect(self) -> bool:
        """Take back what has no owner any more; whether there was anything."""
        self._held = self._living()
        before, self._free = self._free, self._gaps()
        return self._free != before

    def free(self, address: int) -> None:
        """Take back what :meth:`allocate` handed out at ``address``; ValueError if it did not."""
        held = self._held.pop(address, None)
        if held is None:
            raise ValueError(f"address must be one that was allocated, not {address:#x}")
        place = place_of(address, self._config)
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self._free, (place, place + held.room)]):
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._free = merged
