"""Tensors that a checkpoint has in slices: partitioned variables, and tables that were cut to fit into files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daedal.errors import FileError, UnsupportedOperation

_WHOLE = -1
"""The length, in a key, of a slice along a dimension of which it has all."""


@dataclass(frozen=True)
class Slice:
    """A slice of a tensor: the key of its entry, where it begins along the axis that is cut, and its shape."""

    key: bytes
    first: int
    shape: tuple[int, ...]


def slices_of(name: str, messages: Sequence[Any], shape: tuple[int, ...], what: str) -> tuple[int, list[Slice]]:
    """The axis along which a tensor is cut, and its slices in order; ``messages`` say where each is.

    Raises UnsupportedOperation for a tensor that is cut along several axes; FileError for slices that are not of its
    shape, leave gaps, or overlap.
    """
    if not shape:
        raise FileError(f"{what} must be one number, and has slices")
    found, axes = list[tuple[bytes, list[int], tuple[int, ...]]](), set[int]()
    for message in messages:
        extents = [(each.start, each.length if "length" in each.__dict__ else _WHOLE) for each in message.extent]
        if len(extents) != len(shape):
            raise FileError(f"{what} must have slices of {len(shape)} dimensions, not of {len(extents)}")
        sizes = tuple(size if length == _WHOLE else length for (_, length), size in zip(extents, shape, strict=True))
        firsts = [first for first, _ in extents]
        if any(
            first < 0 or size < 1 or first + size > end for first, size, end in zip(firsts, sizes, shape, strict=True)
        ):
            raise FileError(f"{what} must have slices inside of {list(shape)}, not {list(sizes)} from {firsts} on")
        axes |= {axis for axis, size in enumerate(sizes) if size != shape[axis]}
        found.append((key_of(name, extents), firsts, sizes))
    if len(axes) > 1:
        raise UnsupportedOperation(f"{name} must be cut along one axis, not along {sorted(axes)}: save it in one piece")
    axis = max(axes, default=0)
    parts = sorted((Slice(key, firsts[axis], sizes) for key, firsts, sizes in found), key=lambda each: each.first)
    end = 0
    for part in parts:
        if part.first != end:
            raise FileError(f"{what} must have slices one behind the other, and not one from {part.first} behind {end}")
        end += part.shape[axis]
    if end != shape[axis]:
        raise FileError(f"{what} must have slices up to {shape[axis]} along axis {axis}, not up to {end}")
    return axis, parts


def key_of(name: str, extents: Sequence[tuple[int, int]]) -> bytes:
    """The key of a slice, by where it begins along each dimension and how long it is there, in a code that keeps order:
    0, the tensor's name, how many dimensions there are, and both numbers of each.
    """
    text = name.encode().replace(b"\xff", b"\xff\x00").replace(b"\x00", b"\x00\xff")
    numbers = b"".join(_signed(first) + _signed(length) for first, length in extents)
    return b"\x00" + text + b"\x00\x01" + _unsigned(len(extents)) + numbers


def _unsigned(value: int) -> bytes:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(raw)]) + raw


def _signed(value: int) -> bytes:
    """As many bytes as its first bits say: one for 7 bits with sign, two for 14, and so on."""
    count = (~value if value < 0 else value).bit_length() // 7 + 1
    low = value & (1 << 8 * count) - 1
    header = (1 << count) - 1 << 7 * count
    return (low ^ header).to_bytes(count, "big")
