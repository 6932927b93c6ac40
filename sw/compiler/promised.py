"""Arrays that submitted launches will fill: whoever takes one of them waits for its launch first."""

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from daedal.driver.device import Device
from daedal.driver.launcher import Launch

Array = NDArray[Any]

_promised: "WeakKeyDictionary[Device, list[tuple[Launch, Sequence[Array]]]]" = WeakKeyDictionary()


def promise(device: Device, launch: Launch, arrays: Sequence[Array]) -> None:
    """``launch`` fills ``arrays`` when it has ended well."""
    _promised.setdefault(device, []).append((launch, arrays))


def wait_for(device: Device, arrays: Iterable[Array] | None = None) -> None:
    """Wait for the launches that fill anything of ``arrays``, of all if left out.

    What has gone wrong with them comes with their own futures: their arrays are as before then.
    """
    if device not in _promised:
        return
    taken = None if arrays is None else list(arrays)
    left = []
    for launch, filled in _promised.pop(device):
        if taken is None or any(np.may_share_memory(a, b) for a in filled for b in taken):
            launch.exception()
        elif not launch.done():
            left.append((launch, filled))
    if left:
        _promised[device] = left
