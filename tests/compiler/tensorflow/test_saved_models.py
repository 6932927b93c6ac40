"""SavedModels without TensorFlow: one that TensorFlow 2.21 has written, with what it gives, and damaged ones.

``tests/frameworks/tensorflow/test_saved.py`` makes others.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.tensorflow.saved import program
from daedal.compiler.frontends.tensorflow.saved.blocks import read_table
from daedal.compiler.frontends.tensorflow.saved.bundle import Bundle
from daedal.compiler.frontends.tensorflow.saved.checksum import crc32c, masked
from daedal.compiler.frontends.tensorflow.saved.messages import read_message
from daedal.compiler.frontends.tensorflow.saved.model import read_saved_model

Array = NDArray[Any]

MODEL = Path(__file__).parent / "saved_looks"
INDEX, SHARD = "variables/variables.index", "variables/variables.data-00000-of-00001"
LOOKS = ("ids", "weights", "rows", "count", "items")


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config="ddr3") as opened:
        yield opened


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The model in a folder that a test may change."""
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def expected() -> Mapping[str, Array]:
    """Inputs, and what TensorFlow made of them (``out_…``)."""
    with np.load(MODEL / "expected.npz") as kept:
        return dict(kept)


def test_look_ups_have_the_bits_of_tensorflow(device: daedal.Device) -> None:
    kept = expected()
    looks = daedal.tensorflow.load(MODEL, device=device)
    given = {name: kept[name] for name in LOOKS}
    for results in (looks(**given), looks(given), looks({**given, "count": 6})):
        assert sorted(results) == ["mean", "pairs", "weighted"]
        for name, result in results.items():
            assert result.tobytes() == kept[f"out_{name}"].tobytes(), name
            assert result.shape == kept[f"out_{name}"].shape
    assert looks.stats.launches == 1
    assert looks.explain().startswith("device: 3 of 3 operations, in 1 launch")


def test_dense_layers_are_numpy_s(device: daedal.Device) -> None:
    kept = expected()
    scores = daedal.tensorflow.load(str(MODEL), device=device, signature="scores")
    np.testing.assert_allclose(scores(user=kept["user"])["score"], kept["out_score"], rtol=1e-6)
    assert scores.stats.launches == 1
    assert "MatMul is computed by NumPy" in scores.explain()


def test_an_index_out_of_range(device: daedal.Device) -> None:
    scores = daedal.tensorflow.load(MODEL, device=device, signature="scores")
    with pytest.raises(daedal.IndexOutOfRange, match="users: index 40"):
        scores(user=np.array([1, 40], np.int32))


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, daedal; daedal.tensorflow.load; import daedal.compiler.frontends.tensorflow.saved.load; "
        "print(sorted({'torch', 'xdsl', 'tensorflow', 'keras', 'google.protobuf'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the inputs must be user, not none"),
        ({"users": np.zeros(1, np.int32)}, "the inputs must be user, not users"),
        ({"user": np.zeros(1, np.int64)}, "user must be of int32, not int64"),
        ({"user": [0.5]}, "user must be of int32, not float64"),
        ({"user": "a"}, "user must be of int32, not <U1"),
        ({"user": np.zeros((1, 1), np.int32)}, r"user must have the shape \['any'\], not \[1, 1\]"),
    ],
)
def test_inputs_that_do_not_fit(device: daedal.Device, given: dict[str, Any], message: str) -> None:
    scores = daedal.tensorflow.load(MODEL, device=device, signature="scores")
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        scores(**given)
    with pytest.raises(daedal.UnsupportedOperation, match="inputs must be given by name, or in one dictionary"):
        scores(np.zeros(1, np.int32))


def test_what_cannot_be_loaded(device: daedal.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(daedal.errors.FileError, match=r"a folder with saved_model\.pb in it"):
        daedal.tensorflow.load(tmp_path, device=device)
    with pytest.raises(daedal.UnsupportedOperation, match=r"signature must be one of .* serving_default, sorted"):
        daedal.tensorflow.load(MODEL, device=device, signature="serve")
    monkeypatch.setattr(program, "NUMPY", program.NUMPY - {"TopKV2"})
    with pytest.raises(daedal.UnsupportedOperation, match="known without TensorFlow, not TopKV2: save"):
        daedal.tensorflow.load(MODEL, device=device, signature="sorted")
    with pytest.raises(ValueError, match="bounds must be one of"):
        daedal.tensorflow.load(MODEL, device=device, bounds="maybe")
    with pytest.raises(daedal.UnsupportedOperation, match="saved_model must be the path of a folder, not 3"):
        daedal.tensorflow.load(3, device=device)  # type: ignore[arg-type]
    with pytest.raises(daedal.UnsupportedOperation, match=r"device must be what daedal\.Device\.open gives"):
        daedal.tensorflow.load(MODEL, device=None)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- files of other forms


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def table(content: Mapping[bytes, bytes], compress: Callable[[bytes], tuple[int, bytes]]) -> bytes:
    """A table with an entry in each block, compressed so."""
    raw, handles = bytearray(), []

    def block(pairs: list[tuple[bytes, bytes]]) -> bytes:
        body = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in pairs)
        kind, packed = compress(body + bytes(4) + (1).to_bytes(4, "little"))
        place = len(raw)
        checksum = masked(crc32c(packed + bytes([kind])))
        raw.extend(packed + bytes([kind]) + checksum.to_bytes(4, "little"))
        return varint(place) + varint(len(packed))

    for key, value in content.items():
        handles.append((key, block([(key, value)])))
    meta, index = block([]), block(handles)
    return bytes(raw) + (meta + index).ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def snappy(body: bytes) -> tuple[int, bytes]:
    """Compressed by Snappy: what repeats the byte before is a copy, all else is as it is."""
    packed, place = bytearray(varint(len(body))), 0
    while place < len(body):
        run = 1
        while place + run < len(body) and run < 40 and body[place + run] == body[place]:
            run += 1
        packed += bytes([0, body[place]])
        if run > 1:
            packed += bytes([(run - 2) << 2 | 2, 1, 0])
        place += run
    return 1, bytes(packed)


def test_an_index_that_is_compressed(copy: Path, device: daedal.Device) -> None:
    content = read_table(copy / INDEX)
    (copy / INDEX).write_bytes(table(content, snappy))
    assert read_table(copy / INDEX) == content
    kept = expected()
    results = daedal.tensorflow.load(copy, device=device)(**{name: kept[name] for name in LOOKS})
    assert results["mean"].tobytes() == kept["out_mean"].tobytes()


def test_another_compression_is_refused_by_its_number(copy: Path) -> None:
    (copy / INDEX).write_bytes(table(read_table(copy / INDEX), lambda body: (4, body)))
    with pytest.raises(daedal.errors.FileError, match="plain or compressed by Snappy, not by method 4"):
        read_saved_model(copy, "scores")


def test_shards(copy: Path, device: daedal.Device) -> None:
    """Every other tensor in a second file."""
    content, whole = read_table(copy / INDEX), (copy / SHARD).read_bytes()
    for number, key in enumerate(sorted(content)[1:]):
        if number % 2 == 0:
            content[key] += bytes([3 << 3, 1])
    content[b""] = bytes([1 << 3, 2]) + content[b""][2:]
    (copy / INDEX).write_bytes(table(content, lambda body: (0, body)))
    (copy / SHARD).unlink()
    for number in range(2):
        (copy / f"variables/variables.data-0000{number}-of-00002").write_bytes(whole)
    kept = expected()
    results = daedal.tensorflow.load(copy, device=device)(**{name: kept[name] for name in LOOKS})
    assert results["weighted"].tobytes() == kept["out_weighted"].tobytes()
    (copy / "variables/variables.data-00001-of-00002").unlink()
    with pytest.raises(daedal.errors.FileError, match="data-00001-of-00002 must be a shard"):
        daedal.tensorflow.load(copy, device=device)


def test_another_order_of_bytes_is_refused(copy: Path) -> None:
    content = read_table(copy / INDEX)
    (copy / INDEX).write_bytes(table(content | {b"": content[b""] + bytes([2 << 3, 1])}, lambda body: (0, body)))
    with pytest.raises(daedal.UnsupportedOperation, match="numbers must have their low bytes first"):
        read_saved_model(copy, "scores")


# ---------------------------------------------------------------------- damage


def test_a_damaged_tensor_is_one_by_its_checksum(copy: Path, device: daedal.Device) -> None:
    raw = bytearray((copy / SHARD).read_bytes())
    raw[2] ^= 4
    (copy / SHARD).write_bytes(raw)
    bundle = Bundle(copy / "variables/variables")
    content = read_table(copy / INDEX)
    del content[b""]
    entries = {key.decode(): read_message("BundleEntry", raw, "x") for key, raw in content.items()}
    key = next(key for key, entry in entries.items() if entry.offset == 0)
    with pytest.raises(daedal.errors.FileError, match=r"is damaged: .* has another checksum"):
        bundle.array(key)


def test_a_damaged_index_is_one_by_its_checksum(copy: Path) -> None:
    raw = bytearray((copy / INDEX).read_bytes())
    raw[raw.index(b"items")] ^= 4
    (copy / INDEX).write_bytes(raw)
    with pytest.raises(daedal.errors.FileError, match="is damaged: the block at byte 0 has another checksum"):
        read_table(copy / INDEX)


@pytest.mark.parametrize("name", ["saved_model.pb", INDEX, SHARD])
def test_damaged_files_are_typed_errors(copy: Path, device: daedal.Device, rng: np.random.Generator, name: str) -> None:
    """A change that is not noticed leaves the model, or another one that can be."""
    whole, refused = (copy / name).read_bytes(), 0
    for trial in range(60):
        raw = bytearray(whole)
        if trial % 3 == 0:
            raw = raw[: int(rng.integers(len(raw)))]
        for _ in range(int(rng.integers(1, 4))):
            if raw:
                raw[int(rng.integers(len(raw)))] = int(rng.integers(256))
        (copy / name).write_bytes(raw)
        try:
            daedal.tensorflow.load(copy, device=device, signature=["serving_default", "scores"][trial % 2])
        except daedal.DaedalError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x12\x05ab", "field 2 ends behind its message"),
        (b"\x0b", "field 1 is of kind 3, which there is not"),
        (b"\x08" + b"\xff" * 11, "an integer has more than 10 bytes"),
        (b"\x0a\x00", "a field must be an integer, not of kind 2"),
        (b"\x10\x01", "a field must be bytes, not of kind 0"),
        (b"\x08", "index out of"),
    ],
)
def test_bytes_that_are_no_message(raw: bytes, message: str) -> None:
    with pytest.raises(daedal.errors.FileError, match=f"x must be a message SavedModel .*{message}"):
        read_message("SavedModel", raw, "x")


def test_messages_in_messages_have_an_end() -> None:
    raw = b""
    for _ in range(200):
        raw = (
            b"\x52"
            + varint(len(inner := b"\x12" + varint(len(e := b"\x0a\x00\x12" + varint(len(raw)) + raw)) + e))
            + inner
        )
    with pytest.raises(daedal.errors.FileError, match="nested 64 deep at most"):
        read_message("AttrValue", raw, "x")


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 8193, 100_000])
def test_checksums(rng: np.random.Generator, size: int) -> None:
    data = rng.integers(0, 256, size, np.uint8).tobytes()
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    assert crc32c(data) == state ^ 0xFFFFFFFF
