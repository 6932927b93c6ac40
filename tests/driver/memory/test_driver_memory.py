"""Device memory with mapping classes: the host's map is that of the definition, and fast."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from daedal.driver.memory.allocator import Allocator
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.device_memory import MOST_BYTES, DeviceMemory
from daedal.driver.memory.layout import array_mapping, row_mapping
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import (
    CLASSES,
    COPIED,
    HASHED,
    PLAIN,
    class_of,
    granule_bytes,
    in_class,
    memory_address,
    place_of,
)
from tests.driver.fake_target import FakeTarget
from tests.reference.mapping import memory_place

SHAPES = {
    "ddr3": Config(),
    "sixteen": replace(Config(), banks=16, page_bytes=512),
    "odd": replace(Config(), ports=2, banks=2, page_bytes=128),
    "one bank": replace(Config(), ports=1, banks=1),
}


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("mapping", [PLAIN, *HASHED])
def test_every_byte_goes_to_its_place(config: Config, mapping: int, rng: np.random.Generator) -> None:
    superblock = config.superblock_bytes
    target = FakeTarget(config, 8 * superblock)
    memory, picture = DeviceMemory(target, config), bytearray(8 * superblock)
    for start, size in ((2 * superblock, 2 * superblock), (superblock - 100, superblock + 203), (5, 1), (77, 300)):
        data = rng.bytes(size)
        memory.write(in_class(start, mapping, config), memoryview(data))
        for n in range(0, size):
            picture[memory_address(in_class(start + n, mapping, config), config)] = data[n]
        assert target.memory == picture
        assert memory.read(in_class(start, mapping, config), size) == data
    assert memory.read(in_class(0, mapping, config), 0) == b""


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_orders_that_are_kept_are_of_their_own_range(config: Config, rng: np.random.Generator) -> None:
    """Ranges of all classes that begin, or end, where another one does, each written and read several times."""
    superblock, count = config.superblock_bytes, 4
    target = FakeTarget(config, (count + 1) * superblock)
    memory, picture = DeviceMemory(target, config), np.zeros((count + 1) * superblock, np.uint8)
    ranges = [
        (mapping, first, last)
        for mapping in (1, 2, HASHED[-1])
        for first in range(count)
        for last in range(first, count)
    ]
    for choice in [*rng.permutation(len(ranges)), *rng.permutation(len(ranges))]:
        mapping, first, last = ranges[choice]
        places = np.arange(first * superblock, (last + 1) * superblock)
        where = [memory_place(int(place), mapping, config) for place in places[::64]]
        at = (np.array(where)[:, None] + np.arange(64)).reshape(-1)
        start = in_class(first * superblock, mapping, config)
        assert memory.read(start, len(places)) == picture[at].tobytes()
        data = rng.bytes(len(places))
        memory.write(start, memoryview(data))
        picture[at] = np.frombuffer(data, np.uint8)
        assert target.memory == picture.tobytes()


def test_long_ranges_go_in_parts(rng: np.random.Generator) -> None:
    config = Config()
    size = 2 * MOST_BYTES + 40_000
    memory = DeviceMemory(FakeTarget(config, size + (1 << 16)), config)
    data = rng.integers(0, 1 << 63, size // 8, np.uint64).view(np.uint8)
    memory.write(in_class(0x4100, 1, config), data.data)
    assert memory.read(in_class(0x4100, 1, config), size) == data.tobytes()
    assert memory.read(in_class(0x4100 + 1_000_000, 1, config), 777) == data.tobytes()[1_000_000:][:777]


def test_writing_a_table_takes_no_longer_than_copying_it_a_few_times(rng: np.random.Generator) -> None:
    config = Config()
    memory = DeviceMemory(FakeTarget(config, 1 << 26), config)
    data = np.zeros(1 << 26, np.uint8)
    began = time.perf_counter()
    memory.write(in_class(0, 1, config), data.data)
    assert time.perf_counter() - began < 5, "64 MiB must be put in order granule by granule, but not in Python"


def test_allocations_of_a_class_have_superblocks_of_their_own() -> None:
    config = Config()
    size = config.superblock_bytes
    allocator = Allocator(4096, 8 * size, config)
    plain = allocator.allocate(100)
    mapped = [allocator.allocate(100 + n * size, mapping=n + 1) for n in range(2)]
    assert [class_of(address, config) for address in mapped] == [1, 2]
    assert [place_of(address, config) for address in mapped] == [size, 2 * size]
    assert place_of(allocator.allocate(64), config) == plain + 128, "what is left of a superblock is for plain arrays"
    free = allocator.free_bytes
    with pytest.raises(ValueError, match="address must be one that was allocated"):
        allocator.free(place_of(mapped[1], config))
    allocator.free(mapped[1])
    assert allocator.free_bytes == free + 2 * size
    with pytest.raises(ValueError, match="mapping must be from 0 to 7, not 8"):
        allocator.allocate(1, mapping=8)
    assert allocator.free_bytes == free + 2 * size


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_allocations_of_a_class_have_any_alignment(config: Config) -> None:
    allocator = Allocator(4096, 1 << 24, config)
    for alignment in (64, config.superblock_bytes, 4 * config.superblock_bytes, 1 << 20):
        for mapping in (PLAIN, 1):
            allocator.allocate(1)
            assert place_of(allocator.allocate(1, alignment, mapping=mapping), config) % alignment == 0


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_buffers_of_all_classes_have_places_of_their_own(config: Config, rng: np.random.Generator) -> None:
    """In arenas that are filled and released in turn, one of them used again and again, beside other allocations."""
    superblock = config.superblock_bytes
    allocator = Allocator(4096, 1 << 24, config)
    free = allocator.free_bytes
    arenas = [Arena(DeviceMemory(FakeTarget(config, 1 << 10), config), allocator, config) for _ in range(3)]
    held: list[list[tuple[int, int, int]]] = [[] for _ in arenas]
    for _ in range(400):
        which = int(rng.integers(len(arenas)))
        if rng.integers(40) == 0:
            arenas[which].release()
            held[which].clear()
            continue
        mapping, size = int(rng.integers(CLASSES)), int(rng.integers(0, superblock // 2))
        size = min(size, config.page_bytes) if mapping == COPIED else size
        place = place_of(arenas[which].reserve(size, mapping=mapping), config)
        held[which].append((place, max(size, 1), mapping))
        buffers = sorted(buffer for of in held for buffer in of)
        for (first, length, one), (second, _, other) in pairwise(buffers):
            assert first + length <= second, "two buffers share memory"
            assert one == other or (first + length - 1) // superblock != second // superblock, "two classes share one"
        assert all(place >= 4096 and place + size <= 1 << 24 for place, size, _ in buffers)
    for arena in arenas:
        arena.release()
    assert allocator.free_bytes == free


def test_buffers_of_a_class_share_superblocks(rng: np.random.Generator) -> None:
    config = Config()
    target = FakeTarget(config, 1 << 20)
    allocator = Allocator(4096, 1 << 20, config)
    free = allocator.free_bytes
    with Arena(DeviceMemory(target, config), allocator, config) as arena:
        arrays = [rng.bytes(int(rng.integers(0, 3000))) for _ in range(40)]
        places = [arena.upload(np.frombuffer(data, np.uint8)) for data in arrays]
        empty, large = arena.reserve(0, mapping=1), arena.reserve(50_000, 4096, mapping=1)
        assert place_of(large, config) % 4096 == 0
        assert {class_of(address, config) for address in places} == {array_mapping(config)}
        assert len({place_of(address, config) for address in (*places, empty)}) == 41, "each has a place of its own"
        for data, address in zip(arrays, places, strict=True):
            assert address % 64 == 0
            assert arena.download(address, (len(data),), np.uint8).tobytes() == data
        used = free - allocator.free_bytes
        assert used <= sum(map(len, arrays)) + 40 * 64 + 6 * config.superblock_bytes + 50_000
    assert allocator.free_bytes == free
    with Arena(DeviceMemory(target, config), allocator, config) as arena:
        assert arena.reserve(100, mapping=1) == in_class(config.superblock_bytes, 1, config)


@pytest.mark.parametrize(
    ("pitch", "granule"),
    [(4, 64), (16, 64), (64, 64), (128, 128), (256, 256), (1024, 1024), (2048, 2048), (4096, 2048), (1 << 20, 2048),
     (20, 256), (36, 256), (68, 512), (80, 512), (96, 512), (208, 1024), (304, 2048), (2064, 2048)],
)  # fmt: skip
def test_rows_choose_their_class(pitch: int, granule: int) -> None:
    config = Config()
    mapping = row_mapping(pitch, config)
    assert mapping != PLAIN
    assert granule_bytes(mapping, config) == granule
    if granule < config.page_bytes:
        across = sum(n * pitch // granule != ((n + 1) * pitch - 1) // granule for n in range(1024))
        assert across <= 256, "more than a quarter of the rows lie in two banks"


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_every_pitch_has_a_class(config: Config) -> None:
    for pitch in range(4, 20_000, 4):
        assert row_mapping(pitch, config) in HASHED
