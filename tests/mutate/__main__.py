"""`make mutate`: plants faults in copies of the tree, one at a time, and says which tests notice them.

::

    make mutate ARGS="--only 'rtl/*' --jobs 2"
    make mutate ARGS="--only 'neutral/*'"
    make mutate ARGS="--draw 40 rtl --draw 30 cpp --draw 30 python --seed 7"
"""

import argparse
import fnmatch
import json
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.mutate.draw import LANGUAGES, draw
from tests.mutate.fault import NEUTRAL, Fault
from tests.mutate.faults import FAULTS
from tests.mutate.run import Outcome, SuiteBroken, run_faults

GOAL = 0.9
"""Share of the faults that must be noticed."""

_console = Console(width=None if sys.stdout.isatty() else 150)


def main(arguments: list[str]) -> int:
    """Plant the faults; 1 if too many are not noticed or a neutral change is, 2 if a suite fails without one."""
    # In the background the shell has it ignored, and tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _parser().parse_args(arguments)
    groups = _groups(options)
    if options.list:
        for most, faults in groups:
            for fault in islice(faults, most):
                print(f"{fault.id}\t{fault.kind}\t{', '.join(fault.files)}\t{fault.about}")
        return 0
    done: list[Outcome] = []
    try:
        for most, faults in groups:
            _run(faults, most, options, done)
    except SuiteBroken as error:
        print(error, file=sys.stderr)
        return 2
    if not done:
        print("no fault has such an id: see --list", file=sys.stderr)
        return 2
    _show(done)
    return 0 if _is_enough(done) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutate", description="Do the tests notice faults? See the docs.")
    drawn = f"mutations by operators, of {', '.join(LANGUAGES)}; without it, the faults made by hand"
    parser.add_argument("--draw", nargs=2, action="append", metavar=("N", "LANGUAGE"), default=[], help=drawn)
    parser.add_argument("--seed", type=int, default=1, help="which ones --draw gives (default: 1)")
    parser.add_argument("--only", action="append", metavar="GLOB", help="of these, those with such an id")
    parser.add_argument("--list", action="store_true", help="list them and do nothing")
    parser.add_argument("--jobs", type=int, default=1, help="faults in work at a time (default: 1)")
    parser.add_argument("--json", type=Path, default=Path("build/mutate.json"), help="file for the results")
    return parser


def _groups(options: argparse.Namespace) -> list[tuple[int | None, Iterable[Fault]]]:
    """Faults, and how many of them."""

    def chosen(faults: Iterable[Fault]) -> Iterable[Fault]:
        globs = options.only or ["*"]
        return (fault for fault in faults if any(fnmatch.fnmatch(fault.id, glob) for glob in globs))

    if not options.draw:
        return [(None, chosen(FAULTS))]
    for number, language in options.draw:
        if language not in LANGUAGES or not re.fullmatch("[1-9][0-9]{0,3}", number):
            sys.exit(
                f"--draw must be a number from 1 to 9999 and one of {', '.join(LANGUAGES)}, not {number} {language}"
            )
    return [(int(number), chosen(draw(language, int(number), options.seed))) for number, language in options.draw]


def _run(faults: Iterable[Fault], most: int | None, options: argparse.Namespace, done: list[Outcome]) -> None:
    """Run them; each outcome is printed and saved as it comes."""

    def report(outcome: Outcome) -> None:
        done.append(outcome)
        result = outcome.caught_by or "not noticed"
        print(f"{'' if outcome.is_right else '!! '}{outcome.id}: {result} ({outcome.seconds:.0f} s)", flush=True)
        _save(options.json, done)

    run_faults(faults, options.jobs, most, report)


def _share(outcomes: Sequence[Outcome]) -> float:
    faults = [outcome for outcome in outcomes if outcome.kind != NEUTRAL]
    return sum(outcome.is_right for outcome in faults) / len(faults) if faults else 1.0


def _is_enough(outcomes: Sequence[Outcome]) -> bool:
    neutral = [outcome for outcome in outcomes if outcome.kind == NEUTRAL]
    return _share(outcomes) >= GOAL and all(outcome.is_right for outcome in neutral)


def _show(outcomes: Sequence[Outcome]) -> None:
    table = Table(title="Planted faults", title_justify="left")
    for heading in ("fault", "kind", "change", "noticed by"):
        table.add_column(heading, overflow="fold")
    table.add_column("s", justify="right")
    for one in outcomes:
        style = None if one.is_right else "bold red"
        caught = one.caught_by or "–"
        table.add_row(
            escape(one.id), one.kind, escape(one.about[:200]), escape(caught[:200]), f"{one.seconds:.1f}", style=style
        )
    _console.print(table)
    areas = Table(title="By area", title_justify="left")
    for heading in ("area", "faults", "noticed", "median s"):
        areas.add_column(heading, justify="left" if heading == "area" else "right")
    for area in dict.fromkeys(one.area for one in outcomes):
        own = [one for one in outcomes if one.area == area]
        seconds = sorted(one.seconds for one in own)
        noticed = sum(one.caught_by is not None for one in own)
        areas.add_row(area, str(len(own)), str(noticed), f"{seconds[len(seconds) // 2]:.0f}")
    _console.print(areas)
    print(f"{_share(outcomes):.1%} of the faults noticed; the goal is {GOAL:.0%}")


def _save(path: Path, outcomes: Sequence[Outcome]) -> None:
    document = {"schema": 2, "share": _share(outcomes), "faults": [outcome.row for outcome in outcomes]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
