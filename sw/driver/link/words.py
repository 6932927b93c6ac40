"""Words as bytes: in memory lowest byte first, on LiteX's bridges highest first."""

import numpy as np

from daedal.errors import DaedalError


def swapped(words: bytes) -> bytes:
    """The bytes of each word in the other order."""
    if len(words) % 4:
        raise DaedalError(f"words must be whole, not {len(words)} bytes")
    return np.frombuffer(words, "<u4").byteswap().tobytes()
