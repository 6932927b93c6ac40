"""Pieces of device memory that launches read and write, and the store window made of them."""

from collections.abc import Sequence
from typing import NamedTuple

from amaranth.lib import data

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import PLAIN, class_of, place_of
from daedal.hw.isa.launch import STORE_GRANULE, StoreWindow
from daedal.hw.isa.program import pack

LAST: int = data.Layout.cast(StoreWindow)["last"].offset
"""First bit of ``StoreWindow.last``."""

EVERYWHERE = pack(StoreWindow, {"last": (1 << 32) - 1})
"""Word WINDOW of a launch that may write all of memory."""

NOWHERE = pack(StoreWindow, {"first": 1})
"""Word WINDOW of a launch that writes nothing: it ends before it begins."""


class Region(NamedTuple):
    """``size`` bytes of device memory from ``address`` on."""

    address: int
    size: int

    def overlaps(self, other: "Region") -> bool:
        """Whether they have a byte in common."""
        return self.address < other.address + other.size and other.address < self.address + self.size


def store_window(writes: Sequence[Region] | None, config: Config) -> int:
    """Word WINDOW of a launch that writes these regions: the least window that has them all, EVERYWHERE if they are not
    known (None).

    Of what is in a mapping class other than PLAIN it has whole superblocks. Raises ValueError for a region that is not
    inside of memory.
    """
    if writes is None:
        return EVERYWHERE
    first, end = 1 << config.place_bits, 0
    for region in writes:
        start, size = place_of(region.address, config), region.size
        if size <= 0:
            continue
        step = STORE_GRANULE if class_of(region.address, config) == PLAIN else config.superblock_bytes
        if region.address < 0 or start + size > 1 << config.place_bits:
            raise ValueError(f"what a launch writes must lie in memory, not at {region.address:#x}, {size} bytes")
        first, end = min(first, start - start % step), max(end, -(-(start + size) // step) * step)
    if not end:
        return NOWHERE
    return first // STORE_GRANULE | (end // STORE_GRANULE - 1) << LAST
