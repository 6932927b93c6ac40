"""`make coverage`: runs tests with models and Python that count, and says what they reach.

::

    make coverage                                          # all tests
    make coverage ARGS="tests/unit/queues tests/unit/isa"  # some; their counts are added to those there are
    make coverage ARGS="--report"                          # what there is, without running anything
    make coverage ARGS="--fresh tests/unit"                # forget what there is first
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from daedal.base.coverage import VARIABLE
from tests.conftest import ROOT
from tests.cover.python import File, read_files, run_pytest
from tests.cover.rtl import Counts

FOLDER = ROOT / "build" / "coverage"
RTL_GOAL, PYTHON_GOAL = 0.95, 0.90
_OPTIONS = ("--ignore=tests/mutate", "--ignore=tests/package/test_packaging.py", "--numprocesses=auto",
            "--dist=worksteal", "--timeout=3000")  # fmt: skip
"""Planting faults and building a wheel reach nothing else; models that count take several times as long."""

_console = Console(width=None if sys.stdout.isatty() else 130)


def main(arguments: list[str]) -> int:
    """Run tests and report; 1 if a goal is missed, pytest's status if tests fail."""
    options, tests = _parser().parse_known_args(arguments)
    if options.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    if not options.report:
        environment = {**os.environ, VARIABLE: str(FOLDER / "rtl")}
        (FOLDER / "python").mkdir(parents=True, exist_ok=True)
        status = run_pytest([*_OPTIONS, *tests], environment)
        if status:
            return status
    counts = Counts(ROOT)
    counts.add_folder(FOLDER / "rtl")
    files = read_files(FOLDER)
    reached = (_show_rtl(counts, options.missing), _show_python(files, options.missing))
    _save(options.json, counts, files)
    return 0 if reached == (True, True) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make coverage", description="All else is given to pytest.")
    parser.add_argument("--report", action="store_true", help="run nothing, report what there is")
    parser.add_argument("--fresh", action="store_true", help="forget earlier counts")
    parser.add_argument("--missing", action="store_true", help="list what was not reached")
    parser.add_argument("--json", type=Path, default=Path("build/coverage.json"), help="file for the results")
    return parser


def _percent(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 1.0


def _both(lines: tuple[int, int], branches: tuple[int, int]) -> tuple[int, int]:
    return lines[0] + branches[0], lines[1] + branches[1]


def _table(title: str, rows: Sequence[tuple[str, tuple[int, int], tuple[int, int]]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("source", overflow="fold")
    for heading in ("lines", "", "branches", ""):
        table.add_column(heading, justify="right")
    for name, lines, branches in rows:
        shown = (f"{part[0]}/{part[1]}" if n else f"{_percent(part):.1%}" for part in (lines, branches) for n in (0, 1))
        table.add_row(name, *shown)
    return table


def _show_rtl(counts: Counts, missing: bool) -> bool:
    rows = [(one, counts.share(one, branches=False), counts.share(one, branches=True)) for one in counts.sources()]
    lines, branches = counts.share(branches=False), counts.share(branches=True)
    _console.print(_table("RTL: lines and branches of the Verilog, by source", [*rows, ("all", lines, branches)]))
    if missing:
        for source in counts.sources():
            for text in counts.missing(source):
                _console.print(escape(f"{source}: {text}"), highlight=False)
    return _judge("RTL lines and branches", _both(lines, branches), RTL_GOAL)


def _show_python(files: Sequence[File], missing: bool) -> bool:
    total = [(sum(one.lines[n] for one in files), sum(one.branches[n] for one in files)) for n in (0, 1)]
    lines, branches = (total[0][0], total[1][0]), (total[0][1], total[1][1])
    rows = [(one.name, one.lines, one.branches) for one in files if _percent(_both(one.lines, one.branches)) < 1]
    _console.print(_table("Python: sources that are not reached whole", [*rows, ("all", lines, branches)]))
    if missing:
        for one in files:
            for text in one.missing:
                _console.print(escape(f"{one.name}: {text}"), highlight=False)
    return _judge("Python branches", branches, PYTHON_GOAL)


def _judge(what: str, reached: tuple[int, int], goal: float) -> bool:
    share = f"{_percent(reached):.1%}" if reached[1] else "nothing was counted"
    _console.print(f"{what}: {share}; the goal is {goal:.0%}", highlight=False)
    return reached[1] > 0 and _percent(reached) >= goal


def _save(path: Path, counts: Counts, files: Sequence[File]) -> None:
    rtl = {
        source: {
            "lines": counts.share(source, branches=False),
            "branches": counts.share(source, branches=True),
            "missing": counts.missing(source),
        }
        for source in counts.sources()
    }
    python = {one.name: {"lines": one.lines, "branches": one.branches, "missing": one.missing} for one in files}
    document = {"schema": 1, "rtl": rtl, "python": python}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
