"""Tables that a checkpoint has in slices, in several files; ``tests/frameworks`` has such as TensorFlow cuts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import daedal
from daedal.compiler.frontends.tensorflow.saved.blocks import read_table
from daedal.compiler.frontends.tensorflow.saved.bundle import Bundle
from daedal.compiler.frontends.tensorflow.saved.checksum import crc32c, masked
from daedal.compiler.frontends.tensorflow.saved.slices import key_of
from tests.compiler.tensorflow.test_saved_models import INDEX, LOOKS, MODEL, copy, device, expected, table, varint

__all__ = ["copy", "device"]

PREFIX = "variables/variables"


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape_of(sizes: Sequence[int]) -> bytes:
    return field(2, b"".join(field(2, field(1, size)) for size in sizes))


def cut(
    folder: Path, key: str, places: Sequence[int], axis: int = 0, *, extents: Sequence[bytes] | None = None
) -> None:
    """Cut a tensor of binary32 at these places, each slice in a file of its own; ``extents``: what the index says."""
    bundle = Bundle(folder / PREFIX)
    whole, content = bundle.array(key), read_table(folder / INDEX)
    first, said = 0, list[bytes]()
    for number, part in enumerate(np.split(whole, places, axis), 1):
        where = [(0, size) for size in part.shape]
        where[axis] = (first, part.shape[axis])
        first += part.shape[axis]
        raw = part.tobytes()
        path = folder / f"{PREFIX}.data-{number:05d}-of-{len(places) + 2:05d}"
        path.write_bytes(raw)
        checksum = varint(6 << 3 | 5) + masked(crc32c(raw)).to_bytes(4, "little")
        entry = field(1, 1) + shape_of(part.shape) + field(3, number) + field(5, len(raw)) + checksum
        content[key_of(key, where)] = entry
        said.append(b"".join(field(1, (field(1, a) if a else b"") + field(2, n)) for a, n in where))
    slices = b"".join(field(7, each) for each in extents or said)
    content[key.encode()] = field(1, 1) + shape_of(whole.shape) + slices
    content[b""] = field(1, len(places) + 2) + content[b""][2:]
    (folder / INDEX).write_bytes(table(dict(sorted(content.items())), lambda body: (0, body)))
    (folder / f"{PREFIX}.data-00000-of-00001").rename(folder / f"{PREFIX}.data-00000-of-{len(places) + 2:05d}")


def a_table(axis: int = 0) -> str:
    """The key of a table that look-ups of the model have."""
    bundle = Bundle(MODEL / PREFIX)
    shapes = {key: bundle.shape(key) for key in sorted(bundle.keys) if key and "/.ATTRIBUTES/VARIABLE_VALUE" in key}
    return next(key for key, shape in shapes.items() if len(shape) > 1 and shape[axis] > 3)


@pytest.mark.parametrize(
    ("where", "raw"),
    [
        ([(0, 500), (0, 16)], rb"\x80\xc1\xf4\x80\x90"),
        ([(500, 12), (0, 16)], rb"\xc1\xf4\x8c\x80\x90"),
        ([(2558, 2), (0, 16)], rb"\xc9\xfe\x82\x80\x90"),
        ([(0, -1), (8192, 64)], rb"\x80\x7f\xe0\x20\x00\xc0\x40"),
    ],
)
def test_keys_are_tensorflow_s(where: Sequence[tuple[int, int]], raw: bytes) -> None:
    code = raw.decode("unicode_escape").encode("latin-1")
    assert key_of("t/.ATTRIBUTES/VALUE", where) == b"\x00t/.ATTRIBUTES/VALUE\x00\x01\x01\x02" + code
    assert key_of("a\0b", []) == b"\x00a\x00\xffb\x00\x01\x00"


@pytest.mark.parametrize("axis", [0, 1])
def test_a_table_in_slices(copy: Path, axis: int) -> None:
    key = a_table(axis)
    whole = Bundle(copy / PREFIX).array(key)
    cut(copy, key, [1, 3], axis)
    assert Bundle(copy / PREFIX).array(key).tobytes() == whole.tobytes()


def test_look_ups_in_a_table_in_slices(copy: Path, device: daedal.Device) -> None:
    cut(copy, a_table(), [2])
    kept = expected()
    results = daedal.tensorflow.load(copy, device=device)(**{name: kept[name] for name in LOOKS})
    assert all(result.tobytes() == kept[f"out_{name}"].tobytes() for name, result in results.items())


def extent(*pairs: tuple[int, int]) -> bytes:
    return b"".join(field(1, field(1, first) + field(2, length)) for first, length in pairs)


@pytest.mark.parametrize(
    ("extents", "kind", "message"),
    [
        ([extent((0, 1), (0, 16)), extent((2, 48), (0, 16))], daedal.errors.FileError, "not one from 2 behind 1"),
        ([extent((0, 3), (0, 16)), extent((1, 49), (0, 16))], daedal.errors.FileError, "not one from 1 behind 3"),
        ([extent((0, 3), (0, 16))], daedal.errors.FileError, "up to .* along axis 0, not up to 3"),
        ([extent((0, 3))], daedal.errors.FileError, "slices of 2 dimensions, not of 1"),
        ([extent((0, 1 << 40), (0, 16))], daedal.errors.FileError, "slices inside of"),
        ([extent((0, 1), (0, 1))], daedal.UnsupportedOperation, "cut along one axis, not along"),
    ],
)
def test_slices_that_are_no_table(copy: Path, extents: list[bytes], kind: type[Exception], message: str) -> None:
    key = a_table()
    rows, width = Bundle(copy / PREFIX).shape(key)
    fitted = [each.replace(field(2, 16), field(2, width)).replace(field(2, 48), field(2, rows - 2)) for each in extents]
    fitted = [each.replace(field(2, 49), field(2, rows - 1)) for each in fitted]
    cut(copy, key, [1], extents=fitted)
    with pytest.raises(kind, match=message):
        Bundle(copy / PREFIX).array(key)


def test_a_slice_that_is_missing_or_of_another_type(copy: Path) -> None:
    key = a_table()
    cut(copy, key, [1])
    content = read_table(copy / INDEX)
    first = key_of(key, [(0, 1), (0, Bundle(copy / PREFIX).shape(key)[1])])
    for changed, message in (
        ({}, "must have .* from 0 on', and has not"),
        (
            {first: content[first].replace(field(1, 1), field(1, 3), 1)},
            "from 0 on.* must be of float32, as the whole is",
        ),
    ):
        others = {name: raw for name, raw in content.items() if name != first} | changed
        (copy / INDEX).write_bytes(table(dict(sorted(others.items())), lambda body: (0, body)))
        with pytest.raises(daedal.errors.FileError, match=message):
            Bundle(copy / PREFIX).array(key)
    (copy / INDEX).write_bytes(table(content, lambda body: (0, body)))
    (copy / f"{PREFIX}.data-00001-of-00003").unlink()
    with pytest.raises(daedal.errors.FileError, match="data-00001-of-00003 must be a shard"):
        Bundle(copy / PREFIX).array(key)


@pytest.mark.parametrize("changed", ["type", "rows"])
def test_a_table_of_another_type_or_shape_than_the_graph_says(copy: Path, device: daedal.Device, changed: str) -> None:
    """The index is that of another model, and no damage that a checksum shows."""
    key, content = a_table(), read_table(copy / INDEX)
    rows, width = Bundle(copy / PREFIX).shape(key)
    raw = content[key.encode()]
    other = (
        raw.replace(field(1, 1), field(1, 3), 1)
        if changed == "type"
        else raw.replace(shape_of((rows, width)), shape_of((width, rows)))
    )
    assert other != raw
    (copy / INDEX).write_bytes(table(content | {key.encode(): other}, lambda body: (0, body)))
    found = f"int32\\[{rows}, {width}" if changed == "type" else f"float32\\[{width}, {rows}"
    with pytest.raises(
        daedal.errors.FileError, match=rf"of float32\[{rows}, {width}\], as the graph says, not of {found}"
    ):
        daedal.tensorflow.load(copy, device=device)
