"""Texts, cut, doubled, mixed, and with what nobody expects in them."""

import re
from collections.abc import Callable, Sequence

import numpy as np

HOSTILE = (
    b"9" * 5000, b"0x" + b"f" * 5000, b"-1", b"-0", b"1.0e+39", b"1e999", b"nan", b"inf", b"NaN", b"Infinity",
    b"18446744073709551616",
    b"340282366920938463463374607431768211456", b"0x7FC00000", b"1e-400", b"0", b"007", b"1_0",
    b'"', b'"""', b"'", b"\\", b'\\"', b"\\u0000", b"\x00", b"\x1b[31m", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\r", b"\x0b", b"\x0c", b"\x85", "\u2028".encode(), "١٢".encode(), "ß".encode(), "😀".encode(), "％".encode(),
    b"[" * 3000, b"(" * 3000, b"{" * 300, b'{"a":' * 2000, b"<" * 500, b"]" * 20, b"}", b"{}", b"[]", b"null", b"true",
    b";", b"//", b"# ", b"=", b",", b":", b".", b"a.kind.b=1", b"op=add", b"arg31", b"arg99999999999", b"argument=1",
    b"spare=7", b"length.index=3", b"config", b"config 0", b"%0", b"%x", b"@f", b"^bb0", b"!dlc.x", b"#x<", b"f32",
    b"i1", b"index", b"i999999999999", b"memref<?xf32>", b"memref<99999999999999999999xf32>", b"tensor<4xf32>",
    b"vector<0xf32>",
    b"dense<1.0>", b"%n", b"{0}", b"$(x)", b"../../x", b"a" * 3000, b"a=" * 1000, b"x," * 2000, b" " * 3000,
    b"\n" * 500,
)  # fmt: skip
"""What is put between words, or in the place of one."""

NUMBERS = (
    b"0", b"1", b"2", b"-1", b"3", b"7", b"255", b"4096", b"2147483648", b"-9223372036854775809",
    b"18446744073709551616", b"9" * 400, b"9" * 5000, b"0x7FC00000",
    b"1.0e+39", b"-1.0e-50", b"1.0e+400", b"1.5", b"0.0", b"?", b"%c0", b"f16",
)  # fmt: skip
"""What takes the place of a number in a text that is left as it is otherwise."""

GENTLE = 0.35
"""Part of the texts with nothing but another number: most of these can be read."""

_WORDS = re.compile(rb"\w+|\s+|[^\w\s]")

MOST = 1 << 16
"""Bytes of the largest text."""

Change = Callable[[list[bytes], np.random.Generator, Sequence[bytes]], None]


def damaged(text: bytes, others: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """``text`` with one to six changes; words of ``others`` get into it."""
    parts = _WORDS.findall(text)
    if rng.random() < GENTLE:
        _number(parts, rng)
        return b"".join(parts)
    for _ in range(int(rng.integers(1, 7))):
        CHANGES[int(rng.integers(len(CHANGES)))](parts, rng, others)
    raw = b"".join(parts)[:MOST]
    return _flipped(raw, rng) if rng.random() < 0.1 else raw


def _place(parts: Sequence[bytes], rng: np.random.Generator) -> int:
    return int(rng.integers(len(parts) + 1))


def _span(parts: Sequence[bytes], rng: np.random.Generator) -> slice:
    start = _place(parts, rng)
    return slice(start, min(len(parts), start + int(2 ** (rng.random() * 8))))


def _cut(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    del parts[_span(parts, rng)]


def _end(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    del parts[_place(parts, rng) :]


def _double(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    span = _span(parts, rng)
    parts[span.stop : span.stop] = parts[span] * int(rng.integers(1, 4))


def _swap(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    if parts:
        one, other = (int(rng.integers(len(parts))) for _ in range(2))
        parts[one], parts[other] = parts[other], parts[one]


def _insert(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    parts.insert(_place(parts, rng), HOSTILE[int(rng.integers(len(HOSTILE)))])


def _replace(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    words = [k for k, part in enumerate(parts) if part.strip()]
    if words:
        parts[words[int(rng.integers(len(words)))]] = HOSTILE[int(rng.integers(len(HOSTILE)))]


def _mix(parts: list[bytes], rng: np.random.Generator, others: Sequence[bytes]) -> None:
    """A piece of another text."""
    other = _WORDS.findall(others[int(rng.integers(len(others)))])
    at = _place(parts, rng)
    parts[at:at] = other[_span(other, rng)]


def _number(parts: list[bytes], rng: np.random.Generator) -> None:
    places = [k for k, part in enumerate(parts) if part.isdigit()]
    if places:
        parts[places[int(rng.integers(len(places)))]] = NUMBERS[int(rng.integers(len(NUMBERS)))]


CHANGES: tuple[Change, ...] = (_cut, _end, _double, _swap, _insert, _insert, _replace, _replace, _replace, _mix)


def _flipped(raw: bytes, rng: np.random.Generator) -> bytes:
    """With some bits changed."""
    changed = bytearray(raw)
    for _ in range(int(rng.integers(1, 9)) if raw else 0):
        changed[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)
