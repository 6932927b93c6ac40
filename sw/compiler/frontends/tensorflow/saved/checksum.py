"""CRC-32C of bytes, as files of TensorFlow have it, with NumPy."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
"""What is added to a checksum that is kept with what it is of."""

_STREAMS = 4096
"""Parts of which checksums are computed side by side."""


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of these bytes."""
    array = np.frombuffer(data, np.uint8)
    length = 2 * -(-len(array) // (2 * _STREAMS))
    whole = np.zeros(length * _STREAMS, np.uint8)
    whole[len(whole) - len(array) :] = array  # zeros in front change nothing
    parts = np.zeros(_STREAMS, np.uint32)
    table = _table(16)
    for column in np.ascontiguousarray(whole.view("<u2").reshape(_STREAMS, -1).T):
        parts = table[(parts ^ column) & 0xFFFF] ^ (parts >> np.uint32(16))
    total, behind = 0, _behind(length)
    for part in parts.tolist():
        total = _moved(total, behind) ^ part
    return total ^ _moved(0xFFFFFFFF, _behind(len(array))) ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """A checksum as it is kept."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


@cache
def _table(bits: int) -> NDArray[np.uint32]:
    """What so many bits become behind which as many zeros come."""
    table = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


def _moved(value: int, matrix: tuple[int, ...]) -> int:
    """A checksum with zeros behind what it is of: bit i becomes ``matrix[i]``."""
    total, bit = 0, 0
    while value:
        if value & 1:
            total ^= matrix[bit]
        value >>= 1
        bit += 1
    return total


@cache
def _behind(count: int) -> tuple[int, ...]:
    """The matrix for so many bytes of zeros."""
    table = _table(8)
    result = tuple(1 << bit for bit in range(32))
    power = tuple(int(table[(1 << bit) & 0xFF]) ^ (1 << bit >> 8) for bit in range(32))
    while count:
        if count & 1:
            result = tuple(_moved(each, power) for each in result)
        power = tuple(_moved(each, power) for each in power)
        count >>= 1
    return result
