"""Whether memory of the host is as it was: by digests where a C++ compiler has been, else by copies."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from daedal.driver.targets.target_registry import HOST_DIGESTS, imported
from daedal.errors import DaedalError


class Digests(Protocol):
    """Digests of regions of memory; addresses are the host's."""

    def of(self, count: int, regions: int, digests: int, /) -> None:
        """Write the digests, of two words, of so many regions, address and bytes, to an address."""
        ...

    def are(self, count: int, regions: int, digests: int, /) -> bool:
        """Whether the regions have these digests."""
        ...


_kept: dict[str, Digests | None] = {}
"""What makes digests, by ``HOST_DIGESTS``. No lock: an interrupt where one is released would leave it taken."""


def digests() -> Digests | None:
    """What makes digests in this process, the same for all threads; None if it can neither be found nor built."""
    if HOST_DIGESTS not in _kept:
        try:
            made = cast(Callable[[], Digests], imported(HOST_DIGESTS))()
        except DaedalError:
            made = None
        _kept.setdefault(HOST_DIGESTS, made)  # of several threads the first one's
    return _kept[HOST_DIGESTS]


Region = tuple[int, int]
"""Address and bytes of some of the host's memory."""

Digest = tuple[int, int]
"""What a region has had in it."""


def digest_of(region: Region) -> Digest | None:
    """The digest of a region; None where there are none."""
    found = digests()
    if found is None:
        return None
    words = np.array([*region, 0, 0], np.uint64)
    address = address_of(words)
    found.of(1, address, address + 16)
    return int(words[2]), int(words[3])


class SameContents:
    """Regions with their digests, to be looked at together."""

    def __init__(self, regions: Sequence[Region], wanted: Iterable[Digest]) -> None:
        self._words = np.array([*regions, *wanted], np.uint64).reshape(-1)
        self._count, self._address = len(regions), address_of(self._words)
        self._are = None if (found := digests()) is None else found.are

    def are_as_before(self) -> bool:
        """Whether all regions have their digests."""
        return self._are is None or self._are(self._count, self._address, self._address + 16 * self._count)


def address_of(array: "np.ndarray[Any, Any]") -> int:
    """Where an array is in the host's memory."""
    address: int = array.__array_interface__["data"][0]  # a tenth of the time of array.ctypes.data
    return address
