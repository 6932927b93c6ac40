"""The launch block, which the host writes for the machine to read, and what else is known of a launch."""

import functools
import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

from daedal.driver.memory.regions import EVERYWHERE, Region
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import LaunchFlags, LaunchWord, launch_block_words
from daedal.hw.isa.program import WORD_BYTES, pack
from daedal.hw.isa.words import VALUE_BITS

_PROGRAM, _RECORD, _LAUNCH, _FLAGS, _WINDOW, _ARGUMENTS = (int(word.value) for word in LaunchWord)
_BEHIND_LAUNCH = WORD_BYTES * (_LAUNCH + 1)
_LEAST, _MOST = -(1 << (VALUE_BITS - 1)), (1 << VALUE_BITS) - 1
"""Looked up once, for a block is written in every launch."""


def needs(reads: Sequence[Region] | None, task: "Task") -> bool:
    """Whether who reads this memory, or who knows what (None), reads what the task writes."""
    if reads is None or task.writes is None:
        return True
    return any(read.overlaps(written) for read in reads for written in task.writes)


class Block(NamedTuple):
    """The bytes of a launch block, and what they were made of but for the number of the launch."""

    key: tuple[object, ...]
    raw: bytes

    def of(self, launch: int) -> bytes:
        """The bytes for a launch of this number."""
        return self.raw[: WORD_BYTES * _LAUNCH] + launch.to_bytes(WORD_BYTES, "little") + self.raw[_BEHIND_LAUNCH:]


class Task(NamedTuple):
    """What a launch is to do: its program's address, its slot, the bytes of its launch block, and those of the program
    that follow it; the memory that it reads and writes, or None if that is not known.
    """

    program: int
    slot: int
    block: bytes
    follows: bytes
    reads: Sequence[Region] | None
    writes: Sequence[Region] | None

    def needs(self, other: "Task") -> bool:
        """Whether it reads what the other one writes, as far as is known."""
        return needs(self.reads, other)

    @property
    def can_be_repeated(self) -> bool:
        """Whether it gives the same again after it has written a part of what it writes."""
        return not self.needs(self)


@functools.cache
def _flags(*, fence: bool, follows: int, count: int) -> int:
    """``follows``: words of the program that follows, or 0; ``count``: arguments of the block."""
    return pack(
        LaunchFlags, {"fence": fence, "last_word": max(follows - 1, 0), "last_argument": (count - 1) * bool(follows)}
    )


def launch_block(
    config: Config, program: int, record: int, launch: int, arguments: Sequence[int], *, fence: bool = False,
    follows: bytes = b"", least: int = 1, window: int = EVERYWHERE,
) -> bytes:  # fmt: skip
    """The bytes of a launch block, which has all of the machine's arguments.

    If the program ``follows``, these are its bytes, and the block has only as many arguments as are given, but at least
    ``least``. ``window`` is word WINDOW (``store_window``).

    Raises ValueError if there are too many arguments or something does not fit, TypeError for what is no integer.
    """
    try:
        if not 0 <= operator.index(program) < 1 << config.address_bits:
            raise ValueError(f"the program's address must fit {config.address_bits} bits, not {program!r}")
        if len(arguments) > config.arguments:
            raise ValueError(f"a launch must have at most {config.arguments} arguments, not {len(arguments)}")
        count = max(len(arguments), least) if follows else config.arguments
        words = [0] * launch_block_words(count)
        words[_PROGRAM], words[_RECORD], words[_LAUNCH] = program, record, launch
        words[_WINDOW] = window
        words[_FLAGS] = _flags(fence=fence, follows=len(follows) // WORD_BYTES, count=count)
        if arguments and not _LEAST <= min(arguments) <= max(arguments) <= _MOST:
            position = next(n for n, value in enumerate(arguments) if not _LEAST <= value <= _MOST)
            raise ValueError(f"argument {position} must fit {VALUE_BITS} bits, not {arguments[position]!r}")
        words[_ARGUMENTS : _ARGUMENTS + len(arguments)] = [value & _MOST for value in arguments]
        return struct.pack(f"<{len(words)}Q", *words)
    except (TypeError, struct.error):
        raise TypeError(
            f"a program's address and a launch's arguments must be integers, not {program!r} and {arguments!r}"
        ) from None
