"""Counts of the Python sources, of a project made for it."""

import os
from pathlib import Path

import pytest

from tests.cover import python

SOURCE = """
def sign(number):
    if number < 0:
        return -1
    return 1
"""
TEST = """
from shown.sign import sign

def test_above():
    assert sign(3) == 1

def test_below():
    assert sign(-3) == -1
"""
SETTINGS = """
[tool.coverage.run]
branch = true
parallel = true
relative_files = true
source = ["shown"]
data_file = "build/coverage/python/counts"
"""


@pytest.mark.slow
def test_what_a_run_reaches_is_added_to_what_earlier_ones_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a report of them in between."""
    folder = tmp_path / "build" / "coverage"
    for name, text in (("shown/__init__.py", ""), ("shown/sign.py", SOURCE), ("test_sign.py", TEST),
                       ("pyproject.toml", SETTINGS)):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (folder / "python").mkdir(parents=True)
    monkeypatch.setattr(python, "ROOT", tmp_path)
    assert python.read_files(folder) == []
    reached = []
    for test in ("above", "below"):
        assert python.run_pytest(["-q", "-p", "no:cacheprovider", f"test_sign.py::test_{test}"], dict(os.environ)) == 0
        found = {file.name: file for file in python.read_files(folder)}["shown/sign.py"]
        reached.append((found.lines, found.branches, found.missing))
    assert reached == [((3, 4), (1, 2), ["3 → 4"]), ((4, 4), (2, 2), [])]
