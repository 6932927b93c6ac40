"""Digests of the host's memory in C++, for ``driver/tables/digests.py``."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from daedal.cosim.builder.library import build_library, load_library, read_sources

_WORDS, _POINT_BITS = 258, 60
"""Words of a key; the last two are points, of so many bits."""


class HostDigests:
    """Digests under a key that is drawn when this is made.

    The digests of two contents are equal with a probability below 2^-60, whatever they are: nobody knows the key.

    Parameters
    ----------
    flags
        Further options of the compiler; ``-DWITH_INTEGERS`` leaves out what not every processor has.

    Raises ToolchainNotFound or BuildError if its library is not there and cannot be built.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        sources = read_sources(Path(__file__).parent / "host", "digest.cpp")
        library = load_library(build_library("host", sources, flags=flags))
        self._digests, self._have = library.host_digests, library.host_have_digests
        pointer = ctypes.c_void_p
        self._digests.restype, self._have.restype = None, ctypes.c_int
        self._digests.argtypes = self._have.argtypes = (ctypes.c_uint64, pointer, pointer, pointer)
        key = [int.from_bytes(os.urandom(8), "little") for _ in range(_WORDS)]
        key[-2:] = [word >> (64 - _POINT_BITS) for word in key[-2:]]
        self._key = (ctypes.c_uint64 * _WORDS)(*key)

    def of(self, count: int, regions: int, digests: int) -> None:
        """Write the digests, of two words, of regions of memory, address and bytes, to an address; the regions are at
        another one, in words.
        """
        self._digests(count, regions, self._key, digests)

    def are(self, count: int, regions: int, digests: int) -> bool:
        """Whether the regions have these digests."""
        return bool(self._have(count, regions, self._key, digests))


def open_digests() -> HostDigests:
    """The digests of this process."""
    return HostDigests()
