"""Random choices, and words whose values may come in part from launch arguments."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import VALUE_BITS
from tests.fuzz.programs.ranges import Integers

T = TypeVar("T")
MODULUS = 1 << VALUE_BITS


@dataclass
class Dice:
    """Random choices for programs of ``config``; ``arguments`` are those of the launch."""

    rng: np.random.Generator
    config: Config
    arguments: list[int] = field(default_factory=list)
    interleave: bool = False
    """Whether levels that can do so interleave activations; rows are short enough for that then."""
    updates: bool = False
    """Whether rows are read from where others are stored."""
    sizes: list[int] = field(default_factory=lambda: [4])
    """Sizes of the rows of this program, bytes."""

    def __post_init__(self) -> None:
        self.integers = Integers(self.config.address_bits)
        if not self.arguments:
            self.arguments = [self.below(MODULUS) for _ in range(self.config.arguments)]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def below(self, limit: int) -> int:
        """From 0 to ``limit`` - 1."""
        return int(self.rng.integers(limit))

    def between(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def register(self) -> int:
        """Any register as operands name it, from 1 on."""
        return self.between(1, self.config.registers)

    def destination(self) -> int:
        """Any register, seldom none (0)."""
        return self.register() if self.chance(0.93) else 0

    def constant(self, word: Enum, index: int, value: int, probability: float = 0.25) -> Word:
        """A word with this value, or with the difference from an argument to it."""
        if self.chance(probability):
            number = self.below(len(self.arguments))
            return Word(word, index, (value - self.arguments[number]) % MODULUS, number)
        return Word(word, index, value % MODULUS)

    def packed(self, word: Enum, index: int, /, **members: Any) -> Word:
        """A packed word; seldom by way of an argument, too."""
        return self.constant(word, index, Word.packed(word, index, **members).value, 0.04)

    def shuffle(self, values: list[T]) -> list[T]:
        """The same values in another order."""
        return [values[k] for k in self.rng.permutation(len(values))]
