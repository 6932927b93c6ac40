"""Frames: what is written to a board, cut into pieces that it checks, and the checksum of what is read."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daedal.hw.isa.link import (
    LINK_BASE,
    SLOT_ADDRESS,
    SLOT_WORDS,
    SLOTS,
    FrameHead,
)
from daedal.hw.isa.program import pack

ALL_BYTES = 0xF

HEAD_WORDS = SLOT_WORDS - SLOT_ADDRESS
"""Words of a frame besides its data."""


@dataclass(frozen=True)
class Piece:
    """Whole words for consecutive addresses, and which bytes of the first and the last are meant."""

    address: int
    data: bytes
    first: int
    last: int

    def frame(self, sequence: int) -> tuple[int, bytes]:
        """Where the frame with this number goes, and its words."""
        count = len(self.data) // 4
        head = pack(FrameHead, {"count": count, "first": self.first, "last": self.last, "sequence": sequence})
        body = self.data + struct.pack("<II", self.address, head)
        start = 4 * (sequence % SLOTS * SLOT_WORDS + SLOT_ADDRESS - count)
        return LINK_BASE + start, body + struct.pack("<I", zlib.crc32(body))


def pieces(address: int, data: bytes | memoryview, most: int) -> Iterator[Piece]:
    """The frames that write these bytes, of at most so many words each.

    Bytes of a word that are not meant are sent as 0 and not written.
    """
    before, size = address % 4, len(data)
    after = -(before + size) % 4
    start = 0
    while start < size:
        lead = before if start == 0 else 0
        part = min(4 * most - lead, size - start)
        trail = after if start + part == size else 0
        yield Piece(
            address + start - lead,
            bytes(lead) + bytes(data[start : start + part]) + bytes(trail),
            ALL_BYTES << lead & ALL_BYTES,
            ALL_BYTES >> trail,
        )
        start += part


def read_crc(*reads: tuple[int, bytes]) -> int:
    """The CRC that the board has after these reads: of address and word, for each word."""
    crc = 0
    for address, words in reads:
        both = np.empty((len(words) // 4, 2), "<u4")
        both[:, 0] = np.arange(address, address + len(words), 4, dtype=np.uint64)
        both[:, 1] = np.frombuffer(words, "<u4")
        crc = zlib.crc32(both.tobytes(), crc)
    return crc
