"""The tensors of a checkpoint: an index, and files (shards) of their bytes."""

from collections.abc import Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.messages import shown
from daedal.compiler.frontends.tensorflow.graph import TYPES
from daedal.compiler.frontends.tensorflow.saved.blocks import read_table
from daedal.compiler.frontends.tensorflow.saved.checksum import crc32c, masked
from daedal.compiler.frontends.tensorflow.saved.messages import read_message, varint
from daedal.compiler.frontends.tensorflow.saved.slices import slices_of
from daedal.driver.tables.table_sources import array_type, stand_in
from daedal.errors import FileError, UnsupportedOperation

Array = NDArray[Any]

_STRING = 7
_MOST_SHARDS = 1 << 16


class Bundle:
    """The tensors behind ``prefix``, by key; each is read, and its checksum looked at, when it is asked for.

    Raises FileError for files that are not there, or damaged, UnsupportedOperation for tensors that are cut along
    several axes, and for another order of bytes.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix, index = prefix, prefix.with_name(f"{prefix.name}.index")
        table = read_table(index)
        header = read_message("BundleHeader", table.pop(b"", b""), f"the header of {index}")
        if not 1 <= header.num_shards <= _MOST_SHARDS:
            raise FileError(f"{index} must have 1 to {_MOST_SHARDS} shards, not {header.num_shards}")
        if header.endianness:
            raise UnsupportedOperation(f"{index}: numbers must have their low bytes first: save the model again")
        self._shards = header.num_shards
        self._entries: Mapping[bytes, bytes] = table

    @property
    def keys(self) -> frozenset[str]:
        """What tensors are called."""
        return frozenset(key.decode("utf-8", "replace") for key in self._entries)

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(dim.size for dim in self._entry(key).shape.dim)

    def type(self, key: str) -> int:
        """TensorFlow's number of the type of a tensor."""
        return int(self._entry(key).dtype)

    def array(self, key: str) -> Array:
        """The content of a tensor of numbers."""
        entry, shape = self._entry(key), self.shape(key)
        name = TYPES.get(entry.dtype)
        if name is None:
            raise UnsupportedOperation(f"{key} must be of numbers, not of TensorFlow's type {entry.dtype}")
        if not entry.slices:
            return stand_in(self._numbers(key, entry, shape, name), name)
        axis, parts = slices_of(key, entry.slices, shape, self._said(key))
        found = []
        for part in parts:
            said = f"{key} from {part.first} on"
            piece = self._entry(said, part.key)
            if piece.dtype != entry.dtype or piece.slices:
                raise FileError(f"{self._said(said)} must be of {name}, as the whole is, and a tensor of its own")
            found.append(self._numbers(said, piece, part.shape, name))
        return stand_in(np.concatenate(found, axis), name)

    def _numbers(self, key: str, entry: Any, shape: tuple[int, ...], name: str) -> Array:
        dtype = array_type(name)
        if any(size < 0 for size in shape) or prod(shape) * dtype.itemsize != entry.size:
            raise FileError(f"{self._said(key)} must have {entry.size} bytes, as the index says, for {shape} of {name}")
        return np.frombuffer(self._content(key, entry), dtype).reshape(shape)

    def string(self, key: str) -> bytes:
        """The content of a tensor of one string: its length, a checksum of that, and itself."""
        entry = self._entry(key)
        if entry.dtype != _STRING or entry.shape.dim:
            raise FileError(f"{self._said(key)} must be one string")
        raw = self._content(key, entry, is_string=True)
        try:
            size, place = varint(raw, 0)
        except (IndexError, ValueError) as error:
            raise FileError(f"{self._said(key)} must be one string: {error}") from error
        if place + 4 + size != len(raw):
            raise FileError(f"{self._said(key)} must be one string of {len(raw)} bytes, not of {size}")
        return raw[place + 4 :]

    def _entry(self, key: str, raw: bytes | None = None) -> Any:
        """What the index has under ``raw``, that of ``key`` if it is None."""
        raw = key.encode("utf-8", "replace") if raw is None else raw
        if raw not in self._entries:
            raise FileError(f"{self.prefix}.index must have {shown(key)}, and has not: the model was saved without it")
        return read_message("BundleEntry", self._entries[raw], self._said(key))

    def _content(self, key: str, entry: Any, *, is_string: bool = False) -> bytes:
        if not 0 <= entry.shard_id < self._shards or entry.offset < 0 or entry.size < 0:
            raise FileError(f"{self._said(key)} must lie in one of {self._shards} shards, not in {entry.shard_id}")
        name = f"{self.prefix.name}.data-{entry.shard_id:05d}-of-{self._shards:05d}"
        path = self.prefix.with_name(name)
        try:
            with path.open("rb") as stream:
                stream.seek(entry.offset)
                raw = stream.read(min(entry.size, path.stat().st_size))
        except (OSError, ValueError, OverflowError) as error:
            raise FileError(f"{path} must be a shard of {self.prefix}.index, and cannot be read: {error}") from error
        if len(raw) != entry.size:
            raise FileError(f"{path} must have {entry.size} bytes of {key} from byte {entry.offset} on, not {len(raw)}")
        if masked(crc32c(raw if not is_string else _without_length(raw))) != entry.crc32c:
            raise FileError(f"{path} is damaged: {key} has another checksum than the index says")
        return raw

    def _said(self, key: str) -> str:
        return f"{shown(key)} of {self.prefix}.index"

    @cached_property
    def objects(self) -> Any:
        """The objects whose tensors these are (``Checkpointed``)."""
        return read_message("Checkpointed", self.string("_CHECKPOINTABLE_OBJECT_GRAPH"), f"{self.prefix}.index")


def _without_length(raw: bytes) -> bytes:
    """What the checksum of strings is of: lengths as four bytes, what is kept of their checksum, and the strings."""
    size, place = varint(raw, 0)
    return size.to_bytes(4, "little") + raw[place:]
