"""Where in memory the bytes of an allocation are: its mapping class.

The highest three bits of an address are its class, the others a place. What the memory ports see is the place with its
bits moved inside of a *superblock*, which is a page in each bank:

    program    class | superblock |  upper  | bank select | in the granule
    memory           | superblock | bank |      upper     | in the granule

So granules that follow each other lie in different banks. The map is a bijection in each superblock; the bits of the
superblock's number do not move. Class 0, for plain arrays, programs and records, moves nothing: its granule is a page.
Those of the classes 1, 2, 3, … are 64, 128, 256, … bytes, up to a page; bit `k` of the bank is the XOR of all bits of
the place, from the granule up, that are `k` modulo `log2(banks)` bits above the page. So rows at any power of two apart
take all banks round-robin.

The last class, COPIED, is for tables of at most a page. It moves nothing, and a superblock has the table once for each
port, a page apart: a row is fetched from any of them, whatever the place's bits above the page say that choose a port.
Loads and stores have the copy that the place names, which is the first one.
"""

# One definition for RTL, driver and emulator: every bit of a memory address is the XOR of some bits of the place.
# ``memory_bits`` is that table; everything else, here and elsewhere, works from it.

from functools import cache

import numpy as np
from amaranth.utils import exact_log2
from numpy.typing import NDArray

from daedal.hw.config.core import MAPPING_BITS, SMALLEST_GRANULE, Config

CLASSES = 1 << MAPPING_BITS
"""Mapping classes that there are."""

PLAIN = 0
"""The class of plain arrays, programs and records: memory addresses are those of the program."""

COPIED = CLASSES - 1
"""The class of tables of which each port has a copy."""

HASHED = range(PLAIN + 1, COPIED)
"""The classes whose granules are spread over the banks, smaller granules first."""


def granule_bytes(mapping: int, config: Config) -> int:
    """Bytes that follow each other in one bank: a page for PLAIN and COPIED, else 64, 128, … up to a page."""
    _check(mapping)
    return config.page_bytes if mapping not in HASHED else min(config.page_bytes, SMALLEST_GRANULE << (mapping - 1))


def copies(mapping: int, config: Config) -> range:
    """Bytes from a place of this class to each copy of what is there; only one if the class is not COPIED."""
    return range(0, config.page_bytes * (config.ports if mapping == COPIED else 1), config.page_bytes)


def class_of(address: int, config: Config) -> int:
    """The mapping class of an address."""
    return address >> config.place_bits & (CLASSES - 1)


def place_of(address: int, config: Config) -> int:
    """An address without its class."""
    return address & ((1 << config.place_bits) - 1)


def in_class(place: int, mapping: int, config: Config) -> int:
    """The address of class ``mapping`` for this place; ValueError if there is none."""
    _check(mapping)
    if not 0 <= place < 1 << config.place_bits:
        raise ValueError(f"place must be from 0 to {(1 << config.place_bits) - 1:#x}, not {place:#x}")
    return mapping << config.place_bits | place


@cache
def memory_bits(mapping: int, config: Config) -> tuple[int, ...]:
    """For each bit of a memory address: the bits of the place whose XOR it is, as a mask."""
    page, banks = exact_log2(config.page_bytes), exact_log2(config.banks)
    granule = exact_log2(granule_bytes(mapping, config))
    masks = [1 << bit for bit in range(config.place_bits)]
    if mapping not in HASHED or not banks:
        return tuple(masks)
    masks[granule:page] = [1 << (bit + banks) for bit in range(granule, page)]
    for bit in range(banks):
        masks[page + bit] = sum(1 << k for k in range(granule, config.place_bits) if (k - page) % banks == bit)
    return tuple(masks)


@cache
def place_bits(mapping: int, config: Config) -> tuple[int, ...]:
    """The inverse of ``memory_bits``: for each bit of a place, the bits of the memory address whose XOR it is."""
    forward = list(memory_bits(mapping, config))
    inverse = [1 << bit for bit in range(config.place_bits)]
    for bit in range(config.place_bits):  # Gauss and Jordan over two elements
        pivot = next(row for row in range(bit, config.place_bits) if forward[row] >> bit & 1)
        for rows in (forward, inverse):
            rows[bit], rows[pivot] = rows[pivot], rows[bit]
        for row in range(config.place_bits):
            if row != bit and forward[row] >> bit & 1:
                forward[row] ^= forward[bit]
                inverse[row] ^= inverse[bit]
    return tuple(inverse)


def memory_address(address: int, config: Config) -> int:
    """The memory address of a program's address."""
    place, result = place_of(address, config), 0
    keeps, moved = moved_bits(class_of(address, config), config)
    for bit, mask in moved:
        result |= ((place & mask).bit_count() & 1) << bit
    return place & keeps | result


@cache
def moved_bits(mapping: int, config: Config) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The bits of a place that stay where they are, as a mask; each other bit of the memory address with its mask."""
    masks = tuple(enumerate(memory_bits(mapping, config)))
    moved = tuple((bit, mask) for bit, mask in masks if mask != 1 << bit)
    return sum(mask for bit, mask in masks if mask == 1 << bit), moved


def memory_addresses(places: NDArray[np.uint64], mapping: int, config: Config) -> NDArray[np.uint64]:
    """The memory addresses of these places of class ``mapping``."""
    result = places.astype(np.uint64)
    for bit, mask in enumerate(memory_bits(mapping, config)):
        if mask != 1 << bit:
            found = np.bitwise_count(places & np.uint64(mask)).astype(np.uint64) & np.uint64(1)
            result = result & np.uint64(~(1 << bit) % (1 << 64)) | found << np.uint64(bit)
    return result


def granules(config: Config) -> tuple[int, ...]:
    """``granule_bytes`` of all classes."""
    return tuple(granule_bytes(mapping, config) for mapping in range(CLASSES))


def class_table(config: Config) -> tuple[int, ...]:
    """``memory_bits`` of all classes, one after the other: what the emulator works from."""
    return tuple(mask for mapping in range(CLASSES) for mask in memory_bits(mapping, config))


def _check(mapping: int) -> None:
    if not 0 <= mapping < CLASSES:
        raise ValueError(f"mapping must be from 0 to {CLASSES - 1}, not {mapping!r}")
