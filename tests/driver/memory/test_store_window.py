"""What a launch writes lies in its store window, on emulator and RTL; and the driver makes windows that are tight."""

from collections.abc import Sequence

import numpy as np
import pytest

import daedal
from daedal import f32
from daedal.driver.device import Device
from daedal.driver.memory.regions import EVERYWHERE, NOWHERE, Region, store_window
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, PRESETS
from daedal.hw.isa.address_mapping import class_of, in_class, place_of
from daedal.hw.isa.launch import Cause, LaunchWord, StoreWindow
from daedal.hw.isa.program import unpack
from tests.driver.launch.test_launches import copier, dev
from tests.fuzz.snapshots import Watched

__all__ = ["copier", "dev"]

ROWS, SIZE = 40, 64
DDR3 = PRESETS["ddr3"]


def window(writes: Sequence[Region] | None) -> tuple[int, int]:
    """The bytes from and to which the window of ``ddr3`` goes."""
    found = unpack(StoreWindow, store_window(writes, DDR3))
    return 64 * found["first"], 64 * (found["last"] + 1)


@pytest.fixture
def source(rng: np.random.Generator) -> np.ndarray:
    return rng.random((ROWS, SIZE // 4), np.float32)


def test_launches_have_a_window_each(dev, copier, source):
    """While one is loaded the one before still writes; whoever writes into another's window is stopped."""
    size, count = source.nbytes, min(4, LAUNCH_QUEUE_DEPTH)
    with dev.arena() as arena:
        origin, *places = [arena.upload(source), *(arena.reserve(size) for _ in range(count))]

        def submit(place: int, allowed: int) -> daedal.driver.launch.launch.Launch:
            arguments = [origin, place, ROWS, SIZE, SIZE]
            return dev.submit(copier, arguments, reads=[Region(origin, size)], writes=[Region(allowed, size)])

        for launch in [submit(place, place) for place in places for _ in range(2)]:
            assert launch.result().stats.bytes_written == size
        assert all(np.array_equal(arena.download(place, source.shape), source) for place in places)
        for wrong in range(count):
            for place in places:
                arena.fill(place, np.zeros_like(source))
            launches = [submit(p, places[n - 1] if n == wrong else p) for n, p in enumerate(places)]
            for launch in launches[:wrong] + launches[wrong + 1 :]:  # those behind it run again
                launch.result()
            with pytest.raises(daedal.ProgramError, match=f"a store at {places[wrong]:#x} is outside") as caught:
                launches[wrong].result()
            assert caught.value.record is not None
            assert caught.value.record.cause is Cause.STORE_WINDOW
            for launch in launches[wrong + 1 :]:  # which the driver runs again
                launch.result()
            for n, place in enumerate(places):
                assert np.array_equal(arena.download(place, source.shape), source * (n != wrong)), n


@pytest.mark.parametrize(("short", "shift"), [(SIZE, 0), (3 * SIZE, 32), (ROWS * SIZE, 0)])
def test_a_launch_that_leaves_its_window_is_cut_there(dev, copier, source, short, shift):
    """Also in the middle of a row, if rows are ``shift`` bytes off."""
    inside = source.nbytes - short
    with dev.arena() as arena:
        origin, place = arena.upload(source), arena.upload(np.zeros(source.size + 16, np.float32), mapping=0)
        arguments = [origin, place + shift, ROWS, SIZE, SIZE]
        launch = dev.submit(copier, arguments, reads=[], writes=[Region(place, inside)])
        with pytest.raises(daedal.ProgramError, match=f"a store at {place + inside:#x} is outside"):
            launch.result()
        wanted = np.pad(source.reshape(-1), (shift // 4, 16 - shift // 4))
        found = arena.download(place, wanted.shape)
        assert np.array_equal(found[: inside // 4], wanted[: inside // 4])
        assert not found[inside // 4 :].any()
        dev.submit(copier, arguments).result()  # what it writes is not known: anywhere
        assert np.array_equal(arena.download(place, wanted.shape), wanted)


def test_rows_of_a_mapping_class_stay_in_its_superblocks(dev, copier, source):
    """A place in the window, but of another class, is somewhere else in memory."""
    superblock = dev.config.superblock_bytes
    with dev.arena() as arena:
        origin, place = arena.upload(source), arena.reserve(source.nbytes, mapping=1)
        plain = place_of(place, dev.config)
        dev.submit(copier, [origin, place, ROWS, SIZE, SIZE], writes=[Region(place, source.nbytes)]).result()
        assert np.array_equal(arena.download(place, source.shape), source)
        neighbour = in_class(plain + -(-source.nbytes // superblock) * superblock, 1, dev.config)
        launch = dev.submit(copier, [origin, neighbour, ROWS, SIZE, SIZE], writes=[Region(place, source.nbytes)])
        with pytest.raises(daedal.ProgramError, match="is outside") as caught:
            launch.result()
        assert caught.value.record is not None
        assert class_of(caught.value.record.address, dev.config) == 1
        assert caught.value.record.address == neighbour


def test_windows_are_the_least_that_have_all():
    page, superblock = 4096, DDR3.superblock_bytes
    assert store_window(None, DDR3) == EVERYWHERE
    assert window(None)[0] == 0
    assert store_window([], DDR3) == store_window([Region(64, 0)], DDR3) == NOWHERE
    assert window([Region(page, 4)]) == (page, page + 64)
    assert window([Region(page + 60, 8)]) == (page, page + 128)
    assert window([Region(5 * page, 64), Region(page, 65)]) == (page, 5 * page + 64)
    mapped = in_class(3 * superblock, 2, DDR3)
    assert window([Region(mapped + 100, 4)]) == (3 * superblock, 4 * superblock)
    assert window([Region(mapped + 100, superblock), Region(page, 1)]) == (page, 5 * superblock)
    end = 1 << DDR3.place_bits
    assert window([Region(end - 4, 4)]) == (end - 64, end)
    with pytest.raises(ValueError, match=f"must lie in memory, not at {end - 4:#x}, 8 bytes"):
        store_window([Region(end - 4, 8)], DDR3)


B, D = daedal.dims("B D")


@daedal.kernel
def three(a: f32[B, D], one: f32[B, D], two: f32[B, D], b: f32[B, D], last: f32[B, D]):
    for n in range(B):
        for d in range(D):
            one[n, d] = a[n, d]
            two[n, d] = b[n, d]
            last[n, d] = a[n, d] + b[n, d]


def test_what_a_kernel_writes_lies_together(rng):
    """The window has no more than the outputs, whatever lies between them in the list of arguments."""
    target = Watched(DDR3, 1 << 22)
    with Device(target, DDR3) as device:
        arenas = [device.arena() for _ in range(6)]
        for number, arena in enumerate(arenas):
            arena.reserve(130 if number % 2 else 70)
        for arena in arenas[::2]:  # memory in small pieces
            arena.release()
        arrays = [rng.random((3, 5), np.float32) for _ in range(5)]
        a, one, two, b, last = arrays
        daedal.compile(three, arrays, device=device)(*arrays)
        assert all(np.array_equal(x, y) for x, y in ((one, a), (two, b), (last, a + b)))
        assert target.rung is not None
        block, memory = target.rung
        at = block + 8 * LaunchWord.WINDOW.value
        found = unpack(StoreWindow, int.from_bytes(memory[at : at + 8], "little"))
        assert found["last"] + 1 - found["first"] <= DDR3.superblock_bytes // 64
