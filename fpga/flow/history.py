"""The designs of boards that closed: what they were made of, and the clocks that they reached.

A file has a list of them, oldest first. What it knows need not be made again to see that it closes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daedal.base.files import read_json, write_json
from daedal.base.messages import shown
from daedal.errors import FileError

SCHEMA = 1
"""Version of the file's form; goes up when a name changes its meaning or vanishes."""


def read(path: Path) -> list[dict[str, Any]]:
    """The designs in the file; none if there is no file.

    Each has ``design`` (the key of all that its outcome depends on), ``board``, ``clocks`` (domain -> MHz, routed) and
    ``tools``. Raises FileError for a file of another form.
    """
    if not path.exists():
        return []
    document = read_json(path, "a history of designs")
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else document
        raise FileError(f"{path} must have schema {SCHEMA}, not {shown(found)}")
    designs: object = document.get("designs")
    if not isinstance(designs, list) or not all(map(_is_design, designs)):
        raise FileError(f"{path} must have designs, a list of tables with design and clocks: take it from git again")
    return designs


def _is_design(found: object) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("clocks"), dict):
        return False
    return isinstance(found.get("design"), str) and isinstance(found.get("board"), str)


def add(path: Path, report: dict[str, Any], *, after: Sequence[dict[str, Any]]) -> None:
    """Write the designs ``after`` which one closed, and this one, of which :func:`bitstream.build` gave the report."""
    clocks = {name: clock["mhz"] for name, clock in report["clocks"].items()}
    made = {"design": report["design"], "board": report["board"], "clocks": clocks, "tools": report["tools"]}
    write_json(path, {"schema": SCHEMA, "designs": [*after, made]})
