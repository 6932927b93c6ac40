"""What a file cannot hold, and what cannot be loaded: one line each, with the way out; damage never gives results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.compiler.frontends.saved.moves import move
from daedal.runtime.launch_arguments import Compound, leaves_of
from daedal.runtime.saved.container import MAGIC, pack, unpack
from daedal.runtime.saved.files import SavedFile
from daedal.runtime.saved.validity import check_contents
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.saved.saved_support import load
from tests.compiler.torch.dynamo_support import Layer

__all__ = ["ddr3"]


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.EmbeddingBag(30, 16, mode="sum"), nn.EmbeddingBag(9, 32, mode="sum")

    def forward(self, ids: Tensor) -> Tensor:
        return torch.cat([self.items(ids), self.users(ids)], 1)


@pytest.fixture
def path(ddr3: daedal.Device, tmp_path: Path) -> Path:
    """A file of a module with two tables."""
    daedal.compile(Pair(), (torch.zeros(4, 3, dtype=torch.int64),), device=ddr3).save(tmp_path / "pair.daedal")
    return tmp_path / "pair.daedal"


USERS, ITEMS = np.zeros((30, 16), np.float32), np.ones((9, 32), np.float32)

WRONG: dict[str, tuple[Any, str]] = {
    "none": (None, r"tables must be given: 2 \(users.weight, items.weight\), as a list or by name"),
    "too few": ([USERS], "tables must be 2 .*, not 1"),
    "no such name": ({"users.weight": USERS}, "tables must have 'items.weight', which is not among the 1 given"),
    "another shape": ([USERS[:29], ITEMS], r"'users.weight' must be of float32 with shape \(30, 16\), .* \(29, 16\)"),
    "another type": ([USERS, ITEMS.astype(np.float64)], "'items.weight' must be of float32 .*, not of float64 with"),
    "the other order": ([ITEMS, USERS], "table 'users.weight' must be of float32 with shape"),
    "no array": ([USERS, [1.0]], r"table 'items.weight' must be an array or a tensor, not \[1.0\]"),
    "sparse": ([USERS, torch.ones(9, 32).to_sparse()], "table 'items.weight' must be dense and on the CPU"),
    "text": ("tables.npz", "tables must be a list or a dictionary by name, not 'tables.npz'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables(ddr3: daedal.Device, path: Path, case: str) -> None:
    tables, message = WRONG[case]
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        daedal.load(path, device=ddr3, tables=tables)


def test_right_tables(ddr3: daedal.Device, path: Path) -> None:
    """In the module's order or by name, of which there may be more; changes of their contents are seen."""
    ids = np.zeros((2, 3), np.int64)
    items = ITEMS.copy()
    by_name = load(path, ddr3, {"another": 5, "items.weight": items, "users.weight": torch.from_numpy(USERS)})
    in_order = load(path, ddr3, [USERS, items])
    for loaded in (by_name, in_order):
        items[:] = 1
        assert (loaded(ids)[:, :32] == 3).all()
        items[0] = 2
        assert (loaded(ids)[:, :32] == 6).all()
        with pytest.raises(daedal.IndexOutOfRange, match=r"embedding_bag.* of items.weight: .*9"):
            loaded(ids + 9)


def test_another_machine(path: Path) -> None:
    with daedal.Device.open("emulator", config="edge") as edge:
        with pytest.raises(daedal.ConfigMismatch, match=r"configuration 'ddr3' \(0x.*not 'edge'.*config='ddr3', or"):
            daedal.load(path, device=edge, tables=[USERS, ITEMS])
    with pytest.raises(daedal.UnsupportedOperation, match=r"device must be what daedal.Device.open gives"):
        daedal.load(path, device="emulator", tables=[USERS, ITEMS])  # type: ignore[arg-type]


def read(path: Path) -> None:
    check_contents(SavedFile(path))


def test_every_byte_counts(path: Path, rng: np.random.Generator) -> None:
    """A file with any byte changed, or any of its end missing or more behind it, is refused."""
    raw, damaged = path.read_bytes(), path.with_name("damaged.daedal")
    places = {*range(64), *range(len(raw) - 64, len(raw)), *rng.integers(0, len(raw), 300).tolist()}
    for place in places:
        flipped = raw[place] ^ int(rng.integers(1, 256))
        damaged.write_bytes(raw[:place] + bytes([flipped]) + raw[place + 1 :])
        with pytest.raises(daedal.FileError):
            read(damaged)
    for length in {*range(64), *range(len(raw) - 40, len(raw)), *rng.integers(0, len(raw), 100).tolist()}:
        damaged.write_bytes(raw[:length])
        with pytest.raises(daedal.FileError):
            read(damaged)
    damaged.write_bytes(raw + b"\0")
    with pytest.raises(daedal.FileError, match=r"must have the .* bytes that it says, not"):
        read(damaged)
    damaged.write_bytes(raw)
    read(damaged)


NO_FILES: dict[str, tuple[bytes, str]] = {
    "text": (b"import torch", "must be a file that save.. wrote, which begins with"),
    "a head alone": (MAGIC, "must be whole, but ends after 8 bytes"),
    "another version": (
        pack("{}", [])[:8] + b"\2" + pack("{}", [])[9:],
        "must be of version 3 of the format, not 2: save it again",
    ),
    "nothing in it": (pack("{}", []), "cannot be used: it must be a SavedExecutable"),
    "no JSON": (pack("{", []), "cannot be used"),
    "nested": (pack("[" * 100_000, []), "cannot be used"),
}


@pytest.mark.parametrize("case", NO_FILES)
def test_no_files(tmp_path: Path, case: str) -> None:
    raw, message = NO_FILES[case]
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(daedal.FileError, match=message):
        read(tmp_path / "file")
    with pytest.raises(daedal.FileError, match="cannot be read: No such file"):
        read(tmp_path / "nothing")


def test_texts_with_a_right_digest(path: Path, rng: np.random.Generator) -> None:
    """Whoever writes a digest of a damaged text gets an error, or a file whose parts refer to each other."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[24:32], "little")
    text, (_, data) = raw[32 : 32 + size].decode(), unpack(raw, "it")
    damaged, refused = path.with_name("damaged.daedal"), 0
    for _ in range(300):
        place = int(rng.integers(0, len(text)))
        letter = rng.choice(list('0123456789"{}[],:-eabn'))
        damaged.write_bytes(pack(text[:place] + letter + text[place + 1 :], [data]))
        try:
            read(damaged)
        except daedal.FileError:
            refused += 1
    assert refused > 100


def sparse(device: daedal.Device) -> Any:
    matrix = torch.eye(3).to_sparse()
    return daedal.compile(Layer(lambda a, x: torch.sparse.mm(a, x)), (matrix, torch.ones(3, 4)), device=device)


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.top = nn.EmbeddingBag(30, 16, mode="sum"), nn.Linear(16, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.top(self.bag(ids)).relu()


CANNOT: dict[str, tuple[Callable[[daedal.Device], Any], str]] = {
    "layers": (
        lambda device: daedal.compile(Dense(), (torch.zeros(4, 3, dtype=torch.int64),), device=device),
        "a file cannot hold what PyTorch computes: linear, relu; compile and save a module of the embedding operations",
    ),
    "floats": (
        lambda device: daedal.compile(Layer(lambda t, i: t[i] + 1.5), (torch.ones(3, 4), torch.zeros(2).long()),
                                      device=device),
        "a file cannot hold what PyTorch computes: add;",
    ),
    "sparse": (sparse, "a file cannot hold .*sparse"),
}  # fmt: skip


@pytest.mark.parametrize("case", CANNOT)
def test_what_a_file_cannot_hold(ddr3: daedal.Device, case: str, tmp_path: Path) -> None:
    make, message = CANNOT[case]
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        make(ddr3).save(tmp_path / "model.daedal")
    assert not list(tmp_path.iterdir())


def test_where_no_file_can_be(ddr3: daedal.Device, tmp_path: Path) -> None:
    executable = daedal.compile(Pair(), (torch.zeros(4, 3, dtype=torch.int64),), device=ddr3)
    with pytest.raises(daedal.FileError, match="cannot be written: "):
        executable.save(tmp_path / "no folder" / "model.daedal")


def test_arguments_of_what_is_not_there(path: Path) -> None:
    """One name changed, and the digest made anew."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[24:32], "little")
    text, (_, data) = raw[32 : 32 + size].decode(), unpack(raw, "it")
    assert '"indices' in text
    path.write_bytes(pack(text.replace('"indices', '"indixes', 1), [data]))
    with pytest.raises(daedal.FileError, match="a launch argument must be of what its program has"):
        read(path)
    with pytest.raises(ValueError, match=r"operation must be one of addi, .*, not 'mule'"):
        list(leaves_of(Compound("addi", 1, Compound("mule", 2, 3))))


def test_a_step_that_there_is_not() -> None:
    with pytest.raises(daedal.FileError, match=r"must be one of .*, not 'su9': save it again"):
        move("su9", [], "")
