"""Compiles Verilator's library once for all models: a program that its makefiles run in front of the compiler.

::

    OBJCACHE="python object_cache.py FOLDER" make -f Vmodel.mk    # runs: … FOLDER g++ … -o verilated.o …/verilated.cpp

The library is most of the work in compiling a small model, and the same for all with the same options. Its sources are
called ``verilated….cpp`` and lie beside its headers; all others, which include a model's header, are compiled as if
this were not there. It uses the standard library only, and starts without anything else.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIBRARY, HEADER = "verilated", "verilated.h"
"""How the names of the library's sources begin; the header that is beside them."""


def main(arguments: Sequence[str]) -> int:
    """Run the compiler, or take what it made before out of ``arguments[0]``; the compiler's status."""
    folder, command = Path(arguments[0]), list(arguments[1:])
    source = Path(command[-1])
    is_library = source.name.startswith(LIBRARY) and source.with_name(HEADER).exists()
    if not (is_library and "-o" in command):
        return subprocess.run(command, check=False).returncode
    # -MMD would write a file of dependencies for an object that has another name.
    command = [word for word in command if word != "-MMD"]
    place = command.index("-o") + 1
    output, command[place] = command[place], ""
    made = folder / f"{source.stem}-{_digest(command, source)}.o"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, command[place] = tempfile.mkstemp(prefix=f"{source.stem}-", suffix=".tmp", dir=folder)
        os.close(handle)
        status = subprocess.run(command, check=False).returncode
        if status:
            Path(command[place]).unlink()
            return status
        Path(command[place]).replace(made)
    shutil.copyfile(made, output)
    return 0


def _digest(command: Sequence[str], source: Path) -> str:
    """Of the command, and of all headers and sources of the library."""
    digest = hashlib.sha256("\0".join(command).encode())
    for file in sorted(source.parent.rglob("*")):
        if file.suffix in (".h", ".cpp"):
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:20]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
