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
    waiting = _promised.get(device)
    if waiting is None:
        return
    taken = None if arrays is None else list(arrays)
    for pair in list(waiting):  # each is kept until it is over, whatever comes in between
        launch, filled = pair
        if taken is None or any(np.may_share_memory(a, b) for a in filled for b in taken):
            launch.exception()
        if launch.done():
            waiting.remove(pair)
