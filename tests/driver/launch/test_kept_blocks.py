"""Launch blocks that are kept for launches of the same arguments: only what is the same stays in them."""

import struct

from daedal.driver.device import Device
from daedal.driver.memory.regions import EVERYWHERE, Region, store_window
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, Config
from daedal.hw.isa.launch import LaunchFlags, LaunchWord, launch_block_words
from daedal.hw.isa.program import unpack
from daedal.hw.isa.registers import Register
from daedal.hw.isa.words import VALUE_BITS
from tests.driver.fake_target import FakeTarget

PROGRAM = 8192


def words_of(target: FakeTarget, config: Config) -> list[int]:
    """The launch block that was given to the machine last."""
    block = target.registers[Register.LAUNCH_LOW]
    return list(struct.unpack_from(f"<{launch_block_words(config.arguments)}Q", target.memory, block))


def test_each_launch_has_its_own_block() -> None:
    """The number of the launch, the record of the slot, the fence, the window and the arguments."""
    config = Config.preset("edge")
    target = FakeTarget(config)
    device, records = Device(target, config), set()
    arguments, others = (5, -1, 7), (5, -1, 8)
    cases = [(each, [Region(4096, 64)], []) for each in [*[arguments] * 9, *[others] * 9]]
    cases += [(arguments, [Region(8192, 64)], []), (others, [], []), ([*arguments], [], []), (arguments, None, [])] * 4
    for number, (given, writes, reads) in enumerate(cases, 1):
        launch = device.submit(PROGRAM, given, writes=writes, reads=reads)
        words = words_of(target, config)
        records.add(words[LaunchWord.RECORD.value])
        first = LaunchWord.ARGUMENTS.value
        assert words[LaunchWord.LAUNCH.value] == number == launch.result().launch
        assert words[LaunchWord.WINDOW.value] == (EVERYWHERE if writes is None else store_window(writes, config))
        assert words[first : first + 3] == [value % (1 << VALUE_BITS) for value in given]
    assert len(records) == LAUNCH_QUEUE_DEPTH


def test_fences() -> None:
    """One of two launches with the same arguments may read what the one before it writes."""
    config = Config.preset("edge")
    target = FakeTarget(config)
    device, arguments, written = Device(target, config), (1, 2), [Region(4096, 64)]
    for _ in range(3 * LAUNCH_QUEUE_DEPTH):
        for reads, is_fenced in (([], False), (written, True)):
            device.submit(PROGRAM, arguments, reads=[], writes=written)
            device.submit(PROGRAM, arguments, reads=reads, writes=written)
            assert unpack(LaunchFlags, words_of(target, config)[LaunchWord.FLAGS.value])["fence"] == is_fenced
            device.reset()  # this target ends one launch at a time
