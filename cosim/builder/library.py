"""Shared libraries built from C++ on demand and kept by content.

A library's key is a digest of everything that goes into it: all source texts, the options and the identity
of the toolchain. Sources are copied into the build folder first, so nothing undeclared can get in. Finished
libraries are in the cache (``DAEDAL_CACHE``, else ``~/.cache/daedal``) with their log beside them; see
:mod:`daedal.base.cache`.
"""

import ctypes
import errno
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from daedal.base import process_guard
from daedal.base.cache import BuildError, cache_directory, keep
from daedal.cosim.builder.toolchain import compiler_identity, find_tool

COMPILE_FLAGS = ("-std=c++17", "-march=native", "-ffp-contract=off", "-fPIC")
"""Flags of every C++ build; contraction is off because results are compared bit for bit."""

FLOAT_MODE = "float_mode.h"
"""A header of ``cosim`` that every C++ of ours which computes with floats for a caller includes."""

Runner = Callable[..., None]
"""Runs a command in the build folder, with its output going to the log; an environment may be given."""


def read_sources(directory: Path, *names: str) -> dict[str, str]:
    """The files ``names`` of ``directory`` as name -> text, the form in which builds take sources."""
    return {name: (directory / name).read_text(encoding="utf-8") for name in names}


def build_library(name: str, files: Mapping[str, str], *, flags: Sequence[str] = ()) -> Path:
    """Compile C++ into a shared library, or find it in the cache.

    Parameters
    ----------
    name
        Start of the library's file name.
    files
        File name, which may have folders, -> text. Those ending in ``.cpp`` are compiled; all can be included.
    flags
        Further options of the compiler.

    Raises
    ------
    ToolchainNotFound
        There is no C++ compiler.
    BuildError
        The compiler refused the sources.
    """
    find_tool("g++")
    key = source_key(files, [*COMPILE_FLAGS, *flags, compiler_identity()])

    def build(folder: Path, run: Runner) -> Path:
        sources = [file for file in files if file.endswith(".cpp")]
        run([str(find_tool("g++")), *COMPILE_FLAGS, "-O3", *flags, "-shared", "-o", "library.so", *sources])
        return folder / "library.so"

    return keep_built(f"{name}-{key}.so", files, build)


def load_library(library: Path) -> ctypes.CDLL:
    """The loaded library; BuildError if this system does not load it."""
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise BuildError(
            f"{library} cannot be loaded: {error}; set DAEDAL_CACHE to a folder from which programs may be run"
        ) from None


def source_key(files: Mapping[str, str], options: Sequence[str]) -> str:
    """What tells builds from these sources with these options from others."""
    digest = hashlib.sha256()
    for part in (*options, *(text for item in sorted(files.items()) for text in item)):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()[:20]


def keep_built(name: str, files: Mapping[str, str], build: Callable[[Path, Runner], Path]) -> Path:
    """The file or folder ``name`` in the cache; if it is not there, what ``build`` makes out of ``files``.

    ``build`` gets the folder in which the files are, and what runs commands there.
    """
    place = cache_directory() / name
    log = place.with_suffix(".log")

    def make(folder: Path) -> Path:
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        with log.open("w", encoding="utf-8") as stream:

            def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
                print("$", *command, file=stream, flush=True)
                if process_guard.run(command, folder=folder, environment=environment, log=stream):
                    raise BuildError(_failure(place.stem, log, command[0]))

            return build(folder, run)

    return keep(place, make)


def _failure(name: str, log: Path, program: str) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    telling = [line for line in lines if "error" in line.lower()][:5] or lines[-5:]
    full = any(os.strerror(errno.ENOSPC) in line for line in lines)
    hint = f"; make room in {log.parent} and in TMPDIR, or set DAEDAL_CACHE and TMPDIR to other folders" if full else ""
    return f"{Path(program).name} could not build {name}: " + " | ".join(telling) + f" (whole log: {log}){hint}"
