"""The bytes of a saved executable: a head, a text of JSON, data, and a digest of all of these."""

import hashlib
import struct
from collections.abc import Sequence

from daedal.base.files import parse_json
from daedal.errors import FileError

MAGIC = b"\x89DAEDAL\n"
"""The first bytes: no text, so that a file that was taken for one is known by them."""

VERSION = 3
"""Of the format. A file of another one is refused."""

ALIGNMENT = 8
"""Bytes: where the data begins, and where each piece of it does, is a multiple of it."""

_HEAD = struct.Struct("<8sIIQQ")
"""Magic bytes, version, zero, bytes of the file, bytes of the text."""

_DIGEST = hashlib.sha256


def pack(text: str, pieces: Sequence[bytes]) -> bytes:
    """The bytes of a file with this text and these pieces of data, which begin where :func:`places` says."""
    raw = text.encode()
    data = b"".join(piece + bytes(-len(piece) % ALIGNMENT) for piece in pieces)
    size = _HEAD.size + len(raw) + -(_HEAD.size + len(raw)) % ALIGNMENT + len(data) + _DIGEST().digest_size
    head = _HEAD.pack(MAGIC, VERSION, 0, size, len(raw))
    body = head + raw + bytes(-(len(head) + len(raw)) % ALIGNMENT) + data
    return body + _DIGEST(body).digest()


def places(pieces: Sequence[bytes]) -> list[int]:
    """Where each of these pieces begins in the data."""
    found, first = [], 0
    for piece in pieces:
        found.append(first)
        first += len(piece) + -len(piece) % ALIGNMENT
    return found


def is_container(raw: bytes) -> bool:
    """Whether these bytes begin as a saved executable does."""
    return raw.startswith(MAGIC)


def unpack(raw: bytes, name: str) -> tuple[object, bytes]:
    """The value of the text, and the data, of a file that messages call ``name``.

    FileError for what is no such file, for one of another version, and for one that is damaged or not whole.
    """
    if not is_container(raw):
        raise FileError(f"{name} must be a file that save() wrote, which begins with {MAGIC!r}, not {raw[:8]!r}")
    if len(raw) < _HEAD.size:
        raise FileError(f"{name} must be whole, but ends after {len(raw)} bytes: save it again")
    _, version, zero, size, text_bytes = _HEAD.unpack_from(raw)
    if version != VERSION or zero:
        raise FileError(
            f"{name} must be of version {VERSION} of the format, not {version}: save it again with this Daedal, or "
            "read it with the one that wrote it"
        )
    if size != len(raw):
        raise FileError(f"{name} must have the {size:,} bytes that it says, not {len(raw):,}: save it again")
    body, digest = raw[: -_DIGEST().digest_size], raw[-_DIGEST().digest_size :]
    if _DIGEST(body).digest() != digest:
        raise FileError(f"{name} must have the digest of its bytes (SHA-256), but is damaged: save it again")
    first = _HEAD.size + text_bytes + -(_HEAD.size + text_bytes) % ALIGNMENT
    if first > len(body):
        raise FileError(f"{name} must have a text within its bytes, not of {text_bytes:,}: save it again")
    try:
        value = parse_json(body[_HEAD.size : _HEAD.size + text_bytes].decode(), "a saved executable")
    except ValueError as error:
        raise FileError(f"{name} cannot be used: {error}") from error
    return value, body[first:]
