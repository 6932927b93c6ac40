"""Compiles Verilator's library once for all models: a program that its makefiles run in front of the compiler.

::

    OBJCACHE="… FOLDER" make -f Vmodel.mk    # runs: … FOLDER g++ … -o verilated.o …/verilated.cpp

The library is most of the work in compiling a small model, and the same for all with the same options. Its sources are
called ``verilated….cpp`` and lie beside its headers; all others, which include a model's header, are compiled as if
this were not there. What is kept is looked at before it is used (``daedal/base/cache.py``). It starts without site
packages.

With ``DAEDAL_PRECOMPILE=1``, these others do not read the library's header, which takes them a second: the compiler
loads what was made of it once for the same options. That has 70 MB for each set of options, so it is for those who
build many models, such as the tests. What is compiled is the same to the byte.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from daedal.base.cache import BuildError, keep, keep_text

LIBRARY, HEADER = "verilated", "verilated.h"
"""How the names of the library's sources begin; the header that is beside them."""

OF_ONE_MODEL = ("-fprofile", "-DDAEDAL_MODEL")
"""How options begin that no two models have in common."""


class _Refused(Exception):
    """The compiler did not do it, and has said why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def main(arguments: Sequence[str]) -> int:
    """Run the compiler, or take what it made before out of ``arguments[0]``; the compiler's status."""
    try:
        return _compile(arguments)
    except _Refused as refused:
        return refused.status
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _compile(arguments: Sequence[str]) -> int:
    folder, command = Path(arguments[0]), list(arguments[1:])
    source = Path(command[-1])
    is_library = source.name.startswith(LIBRARY) and source.with_name(HEADER).exists()
    if not (is_library and "-o" in command):
        return subprocess.run([command[0], *_precompiled(folder, command), *command[1:]], check=False).returncode
    # -MMD would write a file of dependencies for an object that has another name.
    command = [word for word in command if word != "-MMD"]
    place = command.index("-o") + 1
    output, command[place] = command[place], ""

    def make(workshop: Path) -> Path:
        command[place] = str(workshop / "made.o")
        _run(command)
        return workshop / "made.o"

    made = keep(folder / f"{source.stem}-{_digest(command, source)}.o", make)
    shutil.copyfile(made, output)
    return 0


def _precompiled(folder: Path, command: Sequence[str]) -> list[str]:
    """What makes the compiler load the library's header, if that is wanted.

    If it does not fit after all, the compiler reads the header's text.
    """
    options = [word for word in command[1:-1] if word not in ("-c", "-MMD")]
    if "-o" in options:
        place = options.index("-o")
        options[place : place + 2] = []
    places = [Path(word[2:]) / HEADER for word in options if word.startswith("-I")]
    library = next((place for place in places if place.exists()), None)
    of_one_model = any(word.startswith(OF_ONE_MODEL) for word in options)
    if "-c" not in command or library is None or of_one_model or os.environ.get("DAEDAL_PRECOMPILE", "0") in ("", "0"):
        return []
    header = folder / f"header-{_digest([command[0], *sorted(options)], library)}.h"

    def make(workshop: Path) -> Path:
        made = workshop / "header.gch"
        _run([command[0], *options, "-x", "c++-header", "-o", str(made), str(header)])
        return made

    keep_text(header, lambda: f'#include "{HEADER}"\n')
    try:
        keep(header.with_suffix(".h.gch"), make)
    except _Refused:
        return []
    return ["-include", str(header)]


def _run(command: Sequence[str]) -> None:
    status = subprocess.run(command, check=False).returncode
    if status:
        raise _Refused(status)


def _digest(command: Sequence[str], source: Path) -> str:
    """Of the command, and of all headers and sources of the library."""
    digest = hashlib.sha256("\0".join(command).encode())
    for file in sorted(source.parent.rglob("*")):
        if file.suffix in (".h", ".cpp"):
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:20]
