"""A copy of the tree in a temporary folder, in which faults are planted one at a time."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import Self

from daedal.base.cache import cache_directory
from daedal.cosim.builder.toolchain import find_tool
from tests.conftest import ROOT
from tests.mutate.fault import Fault

_QUICK_COMPILER = """#!/bin/sh
# The compiler, without optimisation.
for one; do
  shift
  case $one in -O[123g]) one=-O0 ;; esac
  set -- "$@" "$one"
done
exec {} "$@"
"""


class Tree:
    """The files that git does not ignore, as they are in the working tree, in a folder of their own.

    Compiled models are taken from the caches of the original tree. Those that a fault makes are compiled without
    optimisation, which takes most of the time, and are removed with it.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="daedal-mutate-"))
        self.path = self._folder / "tree"
        self._models, self._units = self._folder / "cache", self.path / "build" / "unit"
        for name in subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0"):
            if name and (ROOT / name).exists():
                self._copy(name)
        self._ages = 0
        self._tools = self._folder / "tools"
        self._tools.mkdir()
        for name in ("g++", "c++"):  # ours, and that of a model's makefile
            compiler = self._tools / name
            compiler.write_text(_QUICK_COMPILER.format(find_tool("g++")), encoding="utf-8")
            compiler.chmod(0o755)

    def _copy(self, name: str) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that work on the copy with a fault."""
        path = str(self._tools) + os.pathsep + os.environ["PATH"]
        return {**os.environ, "PATH": path, "PYTHONPATH": str(self.path), "DAEDAL_CACHE": str(self._models)}

    @property
    def plain_environment(self) -> dict[str, str]:
        """The environment in which models without a fault are built, for the caches of the original tree."""
        (ROOT / "build" / "unit").mkdir(parents=True, exist_ok=True)
        self._units.parent.mkdir(parents=True, exist_ok=True)
        if not self._units.is_symlink():
            self._units.symlink_to(ROOT / "build" / "unit")
        return {**os.environ, "PYTHONPATH": str(self.path)}

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The tree with ``fault`` in it."""
        if self._units.is_symlink():
            self._units.unlink()
        self._link(cache_directory(), self._models, leave="core-*.v" if fault.environment else "")
        self._link(ROOT / "build" / "unit", self._units)
        before = {name: (self.path / name).read_text(encoding="utf-8") for name in fault.files}
        try:
            for name, text in fault.texts(self.path).items():
                self._write(name, text)
            if fault.is_neutral:
                self._generate()
            yield
        finally:
            for name, text in before.items():
                self._write(name, text)
            shutil.rmtree(self._models)
            shutil.rmtree(self._units)
            if fault.is_neutral:
                for page in (ROOT / "docs" / "isa").iterdir():
                    self._copy(f"docs/isa/{page.name}")

    def _write(self, name: str, text: str) -> None:
        """Write a file with a time of its own, so that nobody takes what was compiled from another version."""
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        self._ages += 1
        stamp = path.stat().st_mtime + 10 * self._ages
        os.utime(path, (stamp, stamp))

    def _generate(self) -> None:
        command = [sys.executable, "-m", "daedal.hw.isa.tools.docs"]
        subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=True)

    @staticmethod
    def _link(source: Path, target: Path, leave: str = "") -> None:
        """A folder with a link to each entry of ``source``: what is there is used, what is new stays apart.

        Entries whose names match ``leave`` are left out, so that they are made anew.
        """
        target.mkdir(parents=True, exist_ok=True)
        source.mkdir(parents=True, exist_ok=True)
        for entry in source.iterdir():
            if (
                not fnmatch(entry.name, leave)
                and not (target / entry.name).is_symlink()
                and not (target / entry.name).exists()
            ):
                (target / entry.name).symlink_to(entry)
