"""The allocator of device memory."""

import random

import pytest

from daedal.driver.memory.allocator import Allocator
from daedal.errors import OutOfDeviceMemory
from daedal.hw.config.core import Config


def test_first_fit_and_alignment():
    allocator = Allocator(100, 10_000, Config())
    first = allocator.allocate(10)
    second = allocator.allocate(1, 4096)
    third = allocator.allocate(60)
    assert (first, second, third) == (128, 4096, 192)
    assert allocator.free_bytes == 9_900 - 71


def test_empty_buffers_have_addresses_of_their_own():
    allocator = Allocator(64, 1024, Config())
    assert allocator.allocate(0) != allocator.allocate(0)


def test_out_of_memory_says_what_there_is():
    allocator = Allocator(0, 1024, Config())
    held = [allocator.allocate(256) for _ in range(4)]
    allocator.free(held[0])
    allocator.free(held[2])
    with pytest.raises(OutOfDeviceMemory, match=r"table of 300 bytes.*512 bytes are free, 256 in one"):
        allocator.allocate(300, what="a table")
    assert allocator.allocate(256) == held[0]


def test_neighbours_join_again():
    allocator = Allocator(0, 1024, Config())
    for address in [allocator.allocate(128) for _ in range(8)]:
        allocator.free(address)
    assert allocator.largest_free == 1024


def test_random_use_never_overlaps_and_loses_nothing():
    rng, allocator = random.Random(1), Allocator(64, 1 << 16, Config())
    total, held = allocator.free_bytes, {}
    for _ in range(2000):
        if held and rng.random() < 0.5:
            address = rng.choice(list(held))
            allocator.free(address)
            del held[address]
            continue
        size, alignment = rng.randrange(1, 3000), 1 << rng.randrange(0, 12)
        try:
            address = allocator.allocate(size, alignment)
        except OutOfDeviceMemory:
            continue
        assert address % alignment == 0
        assert 64 <= address <= (1 << 16) - size
        assert all(address + size <= other or other + held[other] <= address for other in held)
        held[address] = size
        assert allocator.free_bytes == total - sum(held.values())
    for address in held:
        allocator.free(address)
    assert allocator.largest_free == total


def test_wrong_use():
    allocator = Allocator(0, 1024, Config())
    with pytest.raises(ValueError, match="alignment must be a power of two, not 3"):
        allocator.allocate(1, 3)
    with pytest.raises(ValueError, match="size must be at least 0, not -1"):
        allocator.allocate(-1)
    with pytest.raises(ValueError, match="must be one that was allocated, not 0x40"):
        allocator.free(64)
    with pytest.raises(ValueError, match="start must be from 0"):
        Allocator(5, 4, Config())


def test_what_was_given_back_cannot_be_given_back_again():
    allocator = Allocator(64, 4096, Config())
    address = allocator.allocate(100)
    allocator.free(address)
    with pytest.raises(ValueError, match="must be one that was allocated"):
        allocator.free(address)
