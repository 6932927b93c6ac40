"""Branches of the Python sources, as coverage.py counts them."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT


@dataclass(frozen=True)
class File:
    """What tests reached of a source: statements and branches, reached and in all, and the branches not taken."""

    name: str
    lines: tuple[int, int]
    branches: tuple[int, int]
    missing: list[str]


def run_pytest(arguments: Sequence[str], environment: dict[str, str]) -> int:
    """Run the tests with coverage; pytest's status."""
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def read_files(folder: Path) -> list[File]:
    """What all runs so far reached, by file."""
    target = folder / "python.json"
    data = folder / "python" / "counts"
    if not list(data.parent.glob("counts.*")) and not data.exists():
        return []
    for command in (["combine", "--append", "--quiet"], ["json", "--quiet", "-o", str(target)]):
        subprocess.run([sys.executable, "-m", "coverage", *command], cwd=ROOT, check=command[0] == "json")
    files = json.loads(target.read_text(encoding="utf-8"))["files"]
    return [_file(name, found) for name, found in sorted(files.items())]


def _file(name: str, found: dict[str, object]) -> File:
    summary, missing = found["summary"], found["missing_branches"]
    assert isinstance(summary, dict)
    assert isinstance(missing, list)
    return File(
        name,
        (summary["covered_lines"], summary["num_statements"]),
        (summary["covered_branches"], summary["num_branches"]),
        [f"{start} → {end if end > 0 else 'end'}" for start, end in missing],
    )
