"""Row numbers that must be there once: what is read and written at a number that is there twice depends on time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.errors import UnsupportedOperation


def check_distinct(name: str, numbers: NDArray[Any]) -> None:
    """UnsupportedOperation that names the first number of an array that was there before, and both places."""
    flat = numbers.reshape(-1)
    if (flat[1:] > flat[:-1]).all():
        return
    order = np.argsort(flat, kind="stable")
    again = order[1:][flat[order[1:]] == flat[order[:-1]]]
    if again.size:
        second = int(again.min())
        first = int(np.flatnonzero(flat == flat[second])[0])
        raise UnsupportedOperation(
            f"{name} must not have a number twice, because it chooses rows that are changed, and reads run ahead "
            f"of writes; {flat[second]} is its element {first} and {second}: give each row once"
        )
