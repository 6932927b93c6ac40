"""Saved executables as files: data of ``contents.py`` in the bytes of ``container.py``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.files import read_whole, write_whole
from daedal.base.messages import shown
from daedal.errors import ConfigMismatch, FileError, ProgramError
from daedal.hw.config.core import Config
from daedal.hw.isa.program import read_programs
from daedal.runtime.kernel import Kernel
from daedal.runtime.launch_arguments import leaves_of
from daedal.runtime.saved.codec import decode, encode
from daedal.runtime.saved.container import pack, places, unpack
from daedal.runtime.saved.contents import Blob, SavedExecutable, SavedFunction, SavedKernel, SavedModel
from daedal.version import __version__

MOST_BYTES = 1 << 30
"""Of a file: constants of a module are in it."""


@dataclass
class Writer:
    """Collects what goes into a file: programs, arrays, and in the end what they are for."""

    pieces: list[bytes] = field(default_factory=list)
    kernels: list[SavedKernel] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    def blob(self, raw: bytes, dtype: str = "", shape: Sequence[int] = ()) -> Blob:
        """Bytes of the file."""
        found = raw in self.pieces
        if not found:
            self.pieces.append(raw)
        return Blob(places(self.pieces)[self.pieces.index(raw)], len(raw), dtype, tuple(shape))

    def array(self, array: NDArray[Any], dtype: str) -> Blob:
        """An array, whose elements are of the type by this name."""
        return self.blob(np.ascontiguousarray(array).tobytes(), dtype, array.shape)

    def kernel(self, kernel: Kernel) -> int:
        """The number of a kernel."""
        number = self._numbers.get(id(kernel))
        if number is None:
            number = self._numbers[id(kernel)] = len(self.kernels)
            program = self.blob(kernel.program)
            self.kernels.append(
                SavedKernel(
                    program, kernel.arguments, kernel.buffers, kernel.values, kernel.opt, kernel.lacking, kernel.choices
                )
            )
        return number

    def write(self, path: Path, config: Config, bounds: str, opt: int, content: SavedModel | SavedFunction) -> None:
        """Write the file, as a whole or not at all; FileError if that cannot be."""
        saved = SavedExecutable(__version__, config.name, config.hash, bounds, opt, tuple(self.kernels), content)
        text = json.dumps(encode(saved), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        try:
            write_whole(path, pack(text, self.pieces))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise FileError(f"{path} cannot be written: {reason}") from error


class SavedFile:
    """A file that was read.

    Attributes
    ----------
    name
        What messages call it.
    saved
        What it says.
    kernels
        Its programs.
    """

    def __init__(self, path: Path | str) -> None:
        if not isinstance(path, Path | str):
            raise FileError(f"the path of a file must be text or a Path, not {shown(path)}")
        self.name = str(path)
        self._take(read_whole(Path(path), self.name, MOST_BYTES))

    def _take(self, raw: bytes) -> None:
        value, self._data = unpack(raw, self.name)
        try:
            self.saved: SavedExecutable = decode(SavedExecutable, value)
            self.kernels = [self._kernel(kernel) for kernel in self.saved.kernels]
        except (ValueError, ProgramError, RecursionError) as error:
            raise FileError(f"{self.name} cannot be used: {error}") from error

    def _kernel(self, saved: SavedKernel) -> Kernel:
        program = self._bytes(saved.program)
        for each in read_programs(program):
            if each.config_hash != self.saved.config_hash:
                raise ValueError(f"its programs must be for {self.saved.config_hash:#010x}, not {each.config_hash:#x}")
        names = {spec.name for spec in saved.buffers}
        for leaf in (leaf for argument in saved.arguments for leaf in leaves_of(argument)):
            if leaf.buffer not in (saved.values if leaf.kind == "value" else names):
                raise ValueError(f"a launch argument must be of what its program has, not {leaf}")
        return Kernel(
            program, saved.arguments, saved.buffers, saved.values, {}, saved.opt, saved.lacking, choices=saved.choices
        )

    def _bytes(self, blob: Blob) -> bytes:
        if not 0 <= blob.first <= blob.first + blob.size <= len(self._data):
            raise ValueError(f"what is in it must be within its {len(self._data):,} bytes of data, not at {blob.first}")
        return self._data[blob.first : blob.first + blob.size]

    def array(self, blob: Blob, types: Mapping[str, str]) -> NDArray[Any]:
        """An array of the file; ``types`` has what arrays have for types that NumPy does not know."""
        try:
            found = np.frombuffer(self._bytes(blob), np.dtype(types.get(blob.dtype, blob.dtype)))
            return found.reshape(blob.shape)
        except (ValueError, TypeError) as error:
            raise FileError(f"{self.name} cannot be used: {error}") from error

    def check_config(self, config: Config) -> None:
        """ConfigMismatch unless it is for this machine."""
        saved = self.saved
        if saved.config_hash != config.hash:
            raise ConfigMismatch(
                f"{self.name} must be loaded on a device of configuration {saved.config_name!r} "
                f"({saved.config_hash:#010x}), for which it was compiled, not {config.name!r} ({config.hash:#010x}): "
                f"open one with config={saved.config_name!r}, or compile and save for this one"
            )
