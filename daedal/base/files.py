"""Files that are there as a whole, or as they were; and what a user gives to be read."""

import json
import math
import os
from pathlib import Path
from typing import IO, Any

from daedal.errors import FileError

MOST_BYTES = 16 << 20
"""Bytes of the largest file that is read as text or as programs: thirty times the longest program of a machine."""

MOST_DIGITS = 400
"""Digits of the longest number that is read: more than any binary64 has."""


def read_whole(source: Path | IO[bytes], name: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file, or what is left of a stream, which messages call ``name``: at most ``most``.

    Raises FileError for more, also of a device that never ends, and for what cannot be read.
    """
    try:
        if isinstance(source, Path):
            with source.open("rb") as stream:
                raw = stream.read(most + 1)
        else:
            raw = source.read(most + 1)
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise FileError(f"{name} cannot be read: {reason}") from error
    if len(raw) > most:
        raise FileError(f"{name} cannot be read: it must have at most {most:,} bytes, and has more")
    return raw


def decode_text(raw: bytes, name: str) -> str:
    """Text in UTF-8, of what messages call ``name``; FileError says from which byte on it is none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{name} must be text in UTF-8, not bytes (from byte {error.start} on)") from error


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text in a file; FileError as :func:`read_whole`, and if it is not in UTF-8."""
    return decode_text(read_whole(path, str(path), most), str(path))


def parse_json(text: str, what: str) -> object:
    """The value that the JSON ``text`` of ``what`` has.

    Raises ValueError for what is no JSON, for a key that an object has twice, for numbers that are none (``NaN``,
    ``1e999``) or have more than ``MOST_DIGITS`` digits, and for values that are nested too deeply.
    """
    try:
        value: object = json.loads(
            text, object_pairs_hook=_once, parse_int=_integer, parse_float=_real, parse_constant=_real
        )
    except RecursionError:
        raise ValueError(f"it must be {what}, not nested so deeply") from None
    return value


def read_json(path: Path, what: str) -> Any:
    """The value in a JSON file of ``what``; FileError as :func:`read_text`, and where :func:`parse_json` has errors."""
    text = read_text(path)
    try:
        return parse_json(text, what)
    except ValueError as error:
        raise FileError(f"{path} cannot be used: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError for a key that it has twice."""
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"{name} must be given once")
            seen.add(name)
    return table


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number must have at most {MOST_DIGITS} digits, not {len(digits)}")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"a number must be finite, not {digits[:40]}")
    return value


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path``, then put it in its place; links are followed.

    What is there and is no regular file (a terminal, a pipe) is written to directly. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        if target.exists():
            part.chmod(target.stat().st_mode)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Write ``document`` as :func:`write_whole` does; folders on the way are made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
