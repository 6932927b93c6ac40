"""What no file of the project may contain, and the one name by which its parts are imported."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SKIPPED = {".git", ".venv", "build", "dist", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
"""Folders that are no sources, for a tree without git."""

# The names are written in pieces, so that this file does not contain what it looks for.
TOPS = "|".join(("work", "farm", "root", "home", "tmp", "Users"))
HOSTS = "|".join(("pypi" + r"\.org", "python" + "hosted", "deb" + r"\.debian", "registry" + r"\.npmjs"))
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?:" + TOPS + r")/[\w.-]+")
PACKAGE_HOST = re.compile(HOSTS)
IMPORT_BY_FOLDER = re.compile(r"^\s*(?:from|import) (?:hw|sw|cosim)\b", re.MULTILINE)


def sources(root: Path) -> list[Path]:
    """Every file that is part of the project: what git knows or would add, or all there is without git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
        paths = [root / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in root.rglob("*") if not SKIPPED & set(path.relative_to(root).parts)]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def texts(root: Path) -> Iterator[tuple[Path, str]]:
    """Path and text of every text file of the project."""
    for path in sources(root):
        raw = path.read_bytes()
        if b"\0" not in raw:
            yield path.relative_to(root), raw.decode("utf-8")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, PACKAGE_HOST], ids=["machine path", "package host"])
def test_nothing_of_one_machine(root: Path, pattern: re.Pattern[str]) -> None:
    found = [f"{path}: {match[0]}" for path, text in texts(root) for match in pattern.finditer(text)]
    assert not found


def test_parts_are_imported_by_the_package_name(root: Path) -> None:
    python = [(path, text) for path, text in texts(root) if path.suffix == ".py"]
    assert len(python) > 10
    found = [f"{path}: {match[0]}" for path, text in python for match in IMPORT_BY_FOLDER.finditer(text)]
    assert not found


def test_the_version_is_written_once(root: Path) -> None:
    """In daedal/version.py; the changelog names it as a heading."""
    pattern = re.compile(r"""version\w*\s*[:=]\s*["']\d+\.\d+\.\d+["']""")
    found = {str(path) for path, text in texts(root) if pattern.search(text)}
    assert found == {"daedal/version.py"}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATH, "cd /wo" + "rk/main"),
        (MACHINE_PATH, '"/ho' + 'me/me/x.py"'),
        (PACKAGE_HOST, "https://py" + "pi.org/simple"),
        (IMPORT_BY_FOLDER, "from h" + "w.isa import x"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
