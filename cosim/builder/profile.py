"""Profiles of verilated models: what runs often in one, which g++ uses when it compiles the model once more.

A profile belongs to one model as one compiler compiles it, from headers at one place, for g++ notes where a function is
written: whatever of these is another makes the profile another one, too. If one does not fit all the same, or is
damaged, g++ passes over what does not fit.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = "DAEDAL_TRAINING"


def is_training() -> bool:
    """Whether models that are built now are to write profiles, see :func:`training_environment`."""
    return bool(os.environ.get(_VARIABLE))


def training_environment() -> Mapping[str, str]:
    """The environment of a process whose models write profiles when it ends."""
    return {**os.environ, _VARIABLE: "1"}


def link_options() -> list[str]:
    """What the linker has to be told of models that write profiles."""
    return ["-fprofile-generate"] if is_training() else []


@dataclass(frozen=True)
class Profile:
    """The profile of one model: a file in ``folder`` for each of its objects, or none yet."""

    folder: Path

    def _files(self) -> list[Path]:
        return [] if is_training() else sorted(self.folder.glob("*.gcda"))

    def clear(self) -> None:
        """Forget what was learnt."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def options(self) -> str:
        """Options for g++: to write the profile, or to use it, or nothing if there is none."""
        if is_training():
            return f" -fprofile-generate -fprofile-dir={self.folder}"
        return " -fprofile-use -Wno-missing-profile -Wno-coverage-mismatch" if self._files() else ""

    def identity(self) -> list[str]:
        """What makes a model compiled with these options another one."""
        if is_training():
            return ["training"]
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in self._files()]

    def copy_to(self, objects: Path) -> None:
        """Put the files where g++ looks for them: beside the objects, called like these."""
        for file in self._files():
            shutil.copyfile(file, objects / file.name.rpartition("#")[2])
