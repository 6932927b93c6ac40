"""Arrays of integers that the host makes of two arguments, where the machine has too few load slots for both."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.runtime.loops.integers import Element, Integer, Interval, evaluate


@dataclass(frozen=True)
class Chain:
    """Elements of ``array`` at the numbers that ``indices`` has, plus ``offset``; ``size`` is that of ``array``.

    ``numbers`` are the loaded numbers that it is for; ``line`` is that of the source.
    """

    array: str
    indices: str
    offset: Integer
    size: Integer
    numbers: tuple[Element, ...]
    line: int

    def limits(self, others: Collection["Chain"], given: Mapping[str, int]) -> Interval:
        """From which number on, and below which, numbers must be, for all chains that are for one of the same."""
        akin = [each for each in others if not set(self.numbers).isdisjoint(each.numbers)]
        offsets = [(evaluate(each.offset, given), evaluate(each.size, given)) for each in akin]
        return max(max(0, -offset) for offset, _ in offsets), min(size - max(0, offset) for offset, size in offsets)

    def made(self, array: NDArray[Any], indices: NDArray[Any], limits: Interval, offset: int) -> NDArray[Any]:
        """The elements, of the shape of ``indices``; a number outside of ``limits`` stands for 0, as with the machine.

        IndexError if there is no such element either.
        """
        inside = np.where((indices >= limits[0]) & (indices < limits[1]), indices, 0)
        return np.take(array, inside + offset)


def first_outside(numbers: NDArray[Any], limits: Interval) -> int | None:
    """The place of the first number, row by row, that is outside; None if all are inside."""
    outside = ((numbers < limits[0]) | (numbers >= limits[1])).reshape(-1)
    return int(outside.argmax()) if outside.any() else None
