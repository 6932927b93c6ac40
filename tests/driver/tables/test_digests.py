"""Digests of the host's memory, and what looks at tables without them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import daedal
from daedal.cosim.host_digests import HostDigests
from daedal.driver.tables import digests, table_sources
from daedal.driver.tables.digests import SameContents, address_of, digest_of

BLOCK = 2048
"""Bytes of a block of the digest."""


@pytest.fixture(params=["digests", "copies"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[daedal.Device]:
    if request.param == "copies":
        monkeypatch.setattr(digests, "digests", lambda: None)
    with daedal.Device.open("emulator", table_check="contents") as opened:
        yield opened


@pytest.fixture(params=["fastest", "integers"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this processor does, and what every one can."""
    made = HostDigests(["-DWITH_INTEGERS"] if request.param == "integers" else [])
    monkeypatch.setattr(digests, "digests", lambda: made)


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("size", [0, 1, 7, 8, 16, 100, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 24])
@pytest.mark.parametrize("first", [0, 3])
def test_each_bit_counts(size: int, first: int) -> None:
    """Of a region that begins at any byte; what lies around it does not."""
    memory = np.random.default_rng(size).integers(0, 256, size + 16, np.uint8)
    region = address_of(memory) + first, size
    wanted = digest_of(region)
    assert wanted is not None and digest_of(region) == wanted
    same = SameContents([region], [wanted])
    assert same.are_as_before()
    for place in {*range(min(size, 40)), *range(max(0, size - 40), size), *range(0, size, 97)}:
        memory[first + place] ^= 1 << place % 8
        assert digest_of(region) != wanted and not same.are_as_before()
        memory[first + place] ^= 1 << place % 8
    memory[:first] += 1
    memory[first + size :] += 1
    assert digest_of(region) == wanted and same.are_as_before()


@pytest.mark.usefixtures("arithmetic")
def test_blocks_that_change_places() -> None:
    """Whole blocks, words of one, and two that differ by as much."""
    memory = np.arange(4 * BLOCK // 8, dtype=np.uint64)
    region = address_of(memory), memory.nbytes
    wanted, blocks = digest_of(region), memory.reshape(4, -1)
    for some, others in ((0, 1), (2, 3), (0, 3)):
        blocks[[some, others]] = blocks[[others, some]]
        assert digest_of(region) != wanted
        blocks[[others, some]] = blocks[[some, others]]
    memory[[5, 9]] = memory[[9, 5]]
    assert digest_of(region) != wanted
    memory[[9, 5]] = memory[[5, 9]]
    memory[3] += 1
    memory[3 + BLOCK // 8] -= 1
    assert digest_of(region) != wanted


@pytest.mark.usefixtures("arithmetic")
def test_one_of_several_regions() -> None:
    arrays = [np.arange(n, dtype=np.float32) for n in (3, 700, 11)]
    regions = [(address_of(each), each.nbytes) for each in arrays]
    found = [digest_of(region) for region in regions]
    same = SameContents(regions, [each for each in found if each is not None])
    assert same.are_as_before()
    for array in arrays:
        array[-1] = -array[-1] - 1
        assert not same.are_as_before()
        array[-1] = -(array[-1] + 1)
    assert same.are_as_before()


@pytest.mark.parametrize("flags", [[], ["-DWITH_INTEGERS"]])
def test_keys_are_drawn_anew(flags: list[str]) -> None:
    """Nobody can make two contents of one digest without the key."""
    memory, found = np.zeros(BLOCK, np.uint8), np.zeros((2, 2), np.uint64)
    region = np.array([address_of(memory), BLOCK], np.uint64)
    for each in found:
        HostDigests(flags).of(1, address_of(region), address_of(each))
    assert (found[0] != found[1]).all() and found.all()


def test_tables_that_change(device: daedal.Device) -> None:
    """One that is in order, the columns of another, and an array; each time one element."""
    plain, wide, array = torch.randn(30, 8), torch.randn(20, 12), np.ones((9, 5), np.float32)
    sources = [plain, wide[:, 2:10], array]
    bound = [device.bind_table(f"table {n}", source) for n, source in enumerate(sources)]
    uploads = device.table_uploads
    assert device.find_tables(sources) == bound and device.table_uploads == uploads
    for number, source in enumerate((plain.data, wide.data, array)):
        source[-1, 4] += 1
        assert device.find_tables(sources) == bound and device.table_uploads == uploads + number + 1
        address = bound[number].address + (bound[number].rows - 1) * bound[number].pitch
        wanted = np.asarray(sources[number][-1]).tobytes()
        assert device.memory.read(address, len(wanted)) == wanted
    wide.data[-1, 0] += 1  # beside the columns
    assert device.find_tables(sources) == bound and device.table_uploads == uploads + 3


def test_copies_are_made_where_there_are_no_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.randn(4, 4)
    assert table_sources.Origin(table, "contents").content is None
    assert table_sources.Origin(table[:, :2], "contents").content is not None
    monkeypatch.setattr(digests, "digests", lambda: None)
    origin = table_sources.Origin(table, "contents")
    assert origin.content is not None and origin.digest is None and origin.is_current(table)
    table[0, 0] += 1
    assert not origin.is_current(table)


def test_all_threads_have_the_same_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of a system may be the first to ask, side by side: what one has seen is not changed to the other."""

    class Slow:
        def __init__(self) -> None:
            time.sleep(0.02)

    monkeypatch.setattr(digests, "imported", lambda name: Slow)
    monkeypatch.setattr(digests, "_kept", {})
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: digests.digests(), range(8)))) == 1
