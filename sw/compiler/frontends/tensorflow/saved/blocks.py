"""A sorted table of keys and values (LevelDB's), which is the index of a bundle of tensors."""

from collections.abc import Iterator
from pathlib import Path

from daedal.base.files import read_whole
from daedal.compiler.frontends.tensorflow.saved.checksum import crc32c, masked
from daedal.compiler.frontends.tensorflow.saved.messages import varint
from daedal.errors import FileError

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER, _TRAILER = 48, 5
_NONE, _SNAPPY = 0, 1
_MOST_BYTES = 1 << 30


def read_table(path: Path) -> dict[bytes, bytes]:
    """All keys and values of a file, in order; FileError for one that is no such table, or damaged."""
    raw = read_whole(path, str(path), _MOST_BYTES)
    if len(raw) < _FOOTER or not raw.endswith(_MAGIC):
        raise FileError(f"{path} must be a table of LevelDB, with its mark at the end, and is not: name another")
    try:
        place = len(raw) - _FOOTER
        _, place = varint(raw, place)
        _, place = varint(raw, place)
        found = dict[bytes, bytes]()
        for _, handle in _entries(_block(raw, *_handle(raw, place))):
            found.update(_entries(_block(raw, *_handle(handle, 0))))
        return found
    except (ValueError, IndexError) as error:
        raise FileError(f"{path} must be a table of LevelDB, and is damaged: {error}") from error


def _handle(raw: bytes, place: int) -> tuple[int, int]:
    """Where a block begins, and its bytes."""
    first, place = varint(raw, place)
    size, _ = varint(raw, place)
    return first, size


def _block(raw: bytes, first: int, size: int) -> bytes:
    if first + size + _TRAILER > len(raw):
        raise ValueError("a block ends behind it")
    body, kind = raw[first : first + size], raw[first + size]
    kept = int.from_bytes(raw[first + size + 1 : first + size + _TRAILER], "little")
    if masked(crc32c(raw[first : first + size + 1])) != kept:
        raise ValueError(f"the block at byte {first} has another checksum")
    if kind not in (_NONE, _SNAPPY):
        raise ValueError(f"the block at byte {first} must be plain or compressed by Snappy, not by method {kind}")
    return _from_snappy(body) if kind == _SNAPPY else body


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values, each key as what it shares with the one before and what it has else."""
    restarts = int.from_bytes(block[-4:], "little")
    place, end, key = 0, len(block) - 4 - 4 * restarts, b""
    if end < 0:
        raise ValueError("a block has more restarts than bytes")
    while place < end:
        shared, place = varint(block, place)
        own, place = varint(block, place)
        size, place = varint(block, place)
        if shared > len(key) or place + own + size > end:
            raise ValueError("an entry ends behind its block")
        key = key[:shared] + block[place : place + own]
        yield key, block[place + own : place + own + size]
        place += own + size


def _from_snappy(raw: bytes) -> bytes:
    """What Snappy has compressed."""
    size, place = varint(raw, 0)
    found = bytearray()
    while place < len(raw):
        tag = raw[place]
        place += 1
        if tag & 3 == 0:
            count = tag >> 2
            more = max(count - 59, 0)
            if more:
                count = int.from_bytes(raw[place : place + more], "little")
            place += more
            found += raw[place : place + count + 1]
            place += count + 1
            continue
        more = (1, 1, 2, 4)[tag & 3]
        count = (tag >> 2 & 7) + 4 if tag & 3 == 1 else (tag >> 2) + 1
        distance = int.from_bytes(raw[place : place + more], "little") | (tag >> 5 << 8 if tag & 3 == 1 else 0)
        place += more
        if not 0 < distance <= len(found) or len(found) + count > size:
            raise ValueError("a copy in a compressed block begins before it")
        for _ in range(count):
            found.append(found[-distance])
    if len(found) != size:
        raise ValueError(f"a compressed block must have {size} bytes, not {len(found)}")
    return bytes(found)
