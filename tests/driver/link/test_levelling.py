"""DRAM started and levelled over the link, on RTL: LiteDRAM, and a PHY in which a wrong delay garbles a lane."""

import random
from collections.abc import Iterator

import pytest

from daedal.driver.link.checked_link import CheckedLink
from daedal.driver.link.dram import Dram, flags, longest_run
from daedal.driver.link.uartbone import UartBridge
from daedal.errors import LevellingFailed
from tests.driver.link.lane_board import DELAYS, lane_board, open_line, window_register

pytestmark = [pytest.mark.rtl]

WINDOWS = [(1, 3, 6), (0, 0, 2)]
"""Of each lane: bit slip, first and last delay that read right."""


@pytest.fixture(scope="module")
def dram() -> Iterator[Dram]:
    line = open_line()
    yield Dram(CheckedLink(UartBridge(line)), lane_board()[1])
    line.close()


def set_windows(dram: Dram, windows: list[tuple[int, int, int]]) -> None:
    dram._write([("ddrphy_window", window_register(windows))])


def memory_keeps(dram: Dram) -> bool:
    data = random.Random(7).randbytes(64)
    dram._link.write_all([(dram._memory + 4096, data)])
    return dram._link.read(dram._memory + 4096, 64) == data


def test_each_lane_gets_the_middle_of_its_window(dram: Dram) -> None:
    set_windows(dram, WINDOWS)
    dram.start()
    assert dram.windows == [(1, 3, 4), (0, 0, 3)], "slip, first, number"
    assert memory_keeps(dram)
    for lane, (slip, first, last) in enumerate(WINDOWS):
        middle = (first + last) // 2
        for delay in range(DELAYS):
            dram.set_lanes(1 << lane, slip, delay)
            assert memory_keeps(dram) == (first <= delay <= last), f"lane {lane}, delay {delay}"
        dram.set_lanes(1 << lane, 1 - slip, middle)
        assert not memory_keeps(dram), "a wrong bit slip"
        dram.set_lanes(1 << lane, slip, middle)
    assert memory_keeps(dram)


def test_a_lane_that_never_reads_right_is_named(dram: Dram) -> None:
    set_windows(dram, [WINDOWS[0], (0, 5, 4)])
    with pytest.raises(
        LevellingFailed, match=r"lane 1 of the board's DRAM reads no pattern right with any of 8 delays"
    ):
        dram.start()


def test_memory_that_does_not_keep_what_is_written_is_noticed(dram: Dram, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without levelling, at a delay that is wrong."""
    set_windows(dram, WINDOWS)
    dram.set_lanes(3, 0, 0)
    monkeypatch.setattr(dram, "_levelled", False)
    with pytest.raises(LevellingFailed, match=r"the board's memory has 0x.. at byte 0, where 0x.. was written"):
        dram.start()


@pytest.mark.parametrize(
    ("good", "run"),
    [
        ("", (0, 0)),
        ("0000", (0, 0)),
        ("1111", (0, 4)),
        ("0110", (1, 2)),
        ("1101110", (3, 3)),
        ("110011", (0, 2)),
        ("0001", (3, 1)),
    ],
)
def test_longest_run(good: str, run: tuple[int, int]) -> None:
    assert longest_run([bit == "1" for bit in good]) == run


def test_names_of_bits() -> None:
    assert flags("DFII_COMMAND_RAS|DFII_COMMAND_CAS|DFII_COMMAND_WE|DFII_COMMAND_CS") == 15
    assert flags("DFII_CONTROL_CKE|DFII_CONTROL_ODT|DFII_CONTROL_RESET_N") == 14
