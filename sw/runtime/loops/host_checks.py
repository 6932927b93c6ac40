"""What the host does of a kernel's loads and checks, where the machine has too few slots and loops for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.errors import IndexOutOfRange, InvalidOffsets
from daedal.runtime.loops.arrays import span
from daedal.runtime.loops.bounds import Bounds, text
from daedal.runtime.loops.chains import first_outside
from daedal.runtime.loops.integers import evaluate
from daedal.runtime.loops.kernel_function import Source
from daedal.runtime.tensors import array_of


def chained_arrays(
    source: Source, bounds: Bounds, mode: str, arrays: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays that ``bounds`` has chains for, by name, and what a call with ``mode`` "warn" warns of.

    IndexOutOfRange, with line and place, for a number that chooses nothing, if ``mode`` is "fatal", or if there is no
    number 0 to take instead.
    """
    made: dict[str, NDArray[Any]] = {}
    warnings: list[str] = []
    for name, chain in bounds.chains.items():
        array = array_of(arrays[chain.array])
        indices = made[chain.indices] if chain.indices in made else array_of(arrays[chain.indices])
        limits, offset = chain.limits(bounds.chains.values(), sizes), evaluate(chain.offset, sizes)
        place = None if mode == "none" else first_outside(indices, limits)
        if place is not None:
            found = (
                f"{source.place(chain.line)}: {chain.indices} must be from {limits[0]} to {limits[1] - 1}, but its "
                f"element {place} is {indices.flat[place]} (the host looks at all of it)"
            )
            if mode == "fatal" or not limits[0] <= 0 < limits[1]:
                raise IndexOutOfRange(found)
            if mode == "warn":
                warnings.append(f"{found}: 0 was taken instead")
        is_empty = mode == "none" and limits[0] >= limits[1]  # nobody says what comes of it
        made[name] = np.zeros_like(indices) if is_empty else chain.made(array, indices, limits, offset)
    return made, warnings


def check_hosted(source: Source, bounds: Bounds, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Check all of the arrays that loaded indices and ends of loops are from that the machine does not check.

    IndexOutOfRange or InvalidOffsets, with line and place.
    """
    for element, limit in bounds.ends.items():
        if bounds.ends_on_host or element in bounds.hosted:
            array = array_of(arrays[element.array])
            place = _outside(array, evaluate(limit, sizes))
            if place is not None:
                raise InvalidOffsets(
                    f"{source.place(bounds.lines[element])}: {element.array} must be from 0 to "
                    f"{evaluate(limit, sizes) - 1} where a loop ends, but its element {place} is {array.flat[place]}"
                )
    for element, limit in bounds.limits.items():
        if element in bounds.hosted:
            array = array_of(arrays[element.array])
            place = _outside(array, evaluate(limit, sizes))
            if place is not None:
                raise IndexOutOfRange(
                    f"{source.place(bounds.lines[element])}: {text(element)} must be from 0 to "
                    f"{evaluate(limit, sizes) - 1}, but element {place} of {element.array} is {array.flat[place]} (the "
                    "host looks at all of it)"
                )


def _outside(array: NDArray[Any], limit: int) -> int | None:
    """The place of a number outside of 0 … ``limit`` - 1: the least if that is negative, else the greatest."""
    low, high = span(array)
    if not array.size or 0 <= low <= high < limit:
        return None
    return int(array.argmin() if low < 0 else array.argmax())
