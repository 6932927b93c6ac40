"""Copies of programs behind launch blocks: when the driver makes them, and when it writes them again."""

import pytest

from daedal.driver.device import Device
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, PRESETS
from daedal.hw.isa.launch import BLOCK_REGION, LAUNCH_HEADER_WORDS, LaunchFlags, LaunchWord
from daedal.hw.isa.program import WORD_BYTES, Program, Word, unpack
from daedal.hw.isa.words import LevelField
from tests.driver.fake_target import FakeTarget

CONFIG = PRESETS["edge"]
HEAD = LAUNCH_HEADER_WORDS
LONGEST = (BLOCK_REGION // WORD_BYTES) - HEAD - 1
"""Words of a program that fits behind a block with one argument."""


def program(words: int, *, argument: int | None = None, value: int = 0) -> bytes:
    """A program of so many words, one of which uses an argument."""
    return Program(CONFIG.hash, [Word(LevelField.LOWER, 0, value, argument)] * (words - 3)).to_bytes()


class Written(FakeTarget):
    """Remembers what is written to memory; with ``refuse`` a write fails in its middle."""

    refuse = False

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self.writes: list[tuple[int, int]] = []

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        if self.refuse:
            super().mem_write(address, data[:-WORD_BYTES])
            raise ConnectionError("the cable is out")
        self.writes.append((address, len(data)))
        super().mem_write(address, data)


@pytest.fixture
def target() -> Written:
    return Written()


@pytest.fixture
def dev(target: Written) -> Device:
    return Device(target, CONFIG)


def launched(dev: Device, target: Written, raw: bytes, arguments: list[int]) -> tuple[dict[str, int], bytes, int]:
    """Launch it; the flags in its block, the bytes from the program's place behind it on, how many were written."""
    address = dev.load_program(raw)
    target.writes.clear()
    dev.launch(address, arguments)
    block, size = target.writes[0]
    flags = unpack(LaunchFlags, int.from_bytes(target.mem_read(block + 8 * LaunchWord.FLAGS.value, 8), "little"))
    assert block % BLOCK_REGION == 0
    assert target.mem_read(block, 8) == address.to_bytes(8, "little")
    start = block + 8 * (LaunchWord.ARGUMENTS.value + flags["last_argument"] + 1)
    return flags, target.mem_read(start, len(raw)), size


def test_a_program_is_written_behind_each_block_once(dev, target):
    raw = program(6, argument=2)
    sizes = []
    for _ in range(2 * LAUNCH_QUEUE_DEPTH):
        flags, behind, size = launched(dev, target, raw, [1, 2, 3])
        assert (flags["last_word"], flags["last_argument"], behind) == (5, 2, raw)
        sizes.append(size)
    assert sizes == [8 * (HEAD + 3 + 6)] * LAUNCH_QUEUE_DEPTH + [8 * (HEAD + 3)] * LAUNCH_QUEUE_DEPTH


def test_programs_take_turns_behind_a_block(dev, target):
    first, second = program(6), program(6, value=1)
    for raw in [first] * LAUNCH_QUEUE_DEPTH + [second] + [first] * 2 * LAUNCH_QUEUE_DEPTH + [second]:
        assert launched(dev, target, raw, [])[1] == raw


def test_one_that_did_not_fit_lets_another_one_lie_behind_the_block_no_more(dev, target):
    short, long = program(6), program(LONGEST + 1)
    for raw in (*[short] * LAUNCH_QUEUE_DEPTH, *[long] * LAUNCH_QUEUE_DEPTH, *[short] * LAUNCH_QUEUE_DEPTH):
        flags, behind, size = launched(dev, target, raw, [])
        assert flags["last_word"] == (5 if raw is short else 0)
        assert size == 8 * (HEAD + 1 + 6 if raw is short else HEAD + CONFIG.arguments)
        assert raw is long or behind == short


@pytest.mark.parametrize(("words", "follows"), [(3, False), (4, True), (LONGEST, True), (LONGEST + 1, False)])
def test_those_follow_that_fit(dev, target, words, follows):
    flags, behind, _ = launched(dev, target, program(words), [])
    assert flags["last_word"] == (words - 1 if follows else 0)
    assert flags["last_argument"] == 0
    assert (behind == program(words)) == follows


@pytest.mark.parametrize(
    ("used", "given", "count"), [(None, 0, 1), (None, 5, 5), (0, 0, 1), (6, 2, 7), (6, 7, 7), (31, 0, 32)]
)
def test_a_block_has_the_arguments_that_are_used_or_given(dev, target, used, given, count):
    flags, behind, _ = launched(dev, target, program(5, argument=used), list(range(1, given + 1)))
    assert flags["last_argument"] == count - 1
    assert target.arguments[:count] == [*range(1, given + 1), *[0] * (count - given)]
    assert behind == program(5, argument=used)


def test_more_arguments_move_the_program(dev, target):
    for count in (1, 3, 2, 3):
        for _ in range(LAUNCH_QUEUE_DEPTH):
            flags, behind, _ = launched(dev, target, program(5), [7] * count)
            assert (flags["last_argument"], behind) == (count - 1, program(5))


def test_what_was_not_written_is_written_again(dev, target):
    first, second = program(6), program(6, value=1)
    for _ in range(LAUNCH_QUEUE_DEPTH):
        launched(dev, target, first, [])
    address = dev.load_program(second)
    target.refuse = True
    with pytest.raises(ConnectionError):
        dev.launch(address)
    target.refuse = False
    for _ in range(LAUNCH_QUEUE_DEPTH):
        assert launched(dev, target, first, [])[1] == first


def test_a_launch_of_an_address_that_no_program_was_loaded_to(dev, target):
    """It is for the machine to say what is wrong."""
    dev.launch(4096)
    block, size = target.writes[-2]
    assert size == 8 * (HEAD + CONFIG.arguments)
    assert unpack(LaunchFlags, int.from_bytes(target.mem_read(block + 24, 8), "little"))["last_word"] == 0
