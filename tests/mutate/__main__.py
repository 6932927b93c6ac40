"""`make mutate`: plants faults in copies of the tree, one at a time, and says which tests notice them.

::

    make mutate ARGS="--list"
    make mutate ARGS="--only 'rtl_queues/*' --jobs 2"
    make mutate ARGS="--kind neutral"
    make mutate ARGS="--sample 110 --seed 3"
"""

import argparse
import fnmatch
import json
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.mutate.fault import Fault
from tests.mutate.faults import FAULTS
from tests.mutate.run import Outcome, SuiteBroken, check_suites, run_faults

GOAL = 0.95
"""Share of the faults that must be noticed."""

_console = Console(width=None if sys.stdout.isatty() else 150)


def main(arguments: list[str]) -> int:
    """Plant the faults; 1 if too many are not noticed or a neutral change is, 2 if the suites fail without one."""
    # In the background the shell has it ignored, and tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _parser().parse_args(arguments)
    faults = _chosen(options)
    if not faults:
        print("no fault has such an id and kind: see --list", file=sys.stderr)
        return 2
    if options.list:
        for fault in faults:
            print(f"{fault.id}\t{fault.kind}\t{', '.join(fault.files)}\t{fault.about}")
        return 0
    try:
        if not options.trust:
            check_suites(faults, lambda text: print(text, flush=True))
        outcomes = _run(faults, options)
    except SuiteBroken as error:
        print(error, file=sys.stderr)
        return 2
    _show(outcomes)
    return 0 if _is_enough(outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutate", description="Do the tests notice faults? See the docs.")
    parser.add_argument("--only", action="append", metavar="GLOB", help="faults by id, such as 'compiler/*'")
    parser.add_argument("--kind", action="append", metavar="GLOB", help="faults by kind, such as neutral")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many of these, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="which ones --sample draws (default: 1)")
    parser.add_argument("--list", action="store_true", help="list the faults and do nothing")
    parser.add_argument("--jobs", type=int, default=1, help="faults in work at a time (default: 1)")
    parser.add_argument("--json", type=Path, default=Path("build/mutate.json"), help="file for the results")
    parser.add_argument("--trust", action="store_true", help="do not run the suites without a fault first")
    return parser


def _chosen(options: argparse.Namespace) -> list[Fault]:
    def fits(value: str, globs: Sequence[str] | None) -> bool:
        return globs is None or any(fnmatch.fnmatch(value, glob) for glob in globs)

    found = [fault for fault in FAULTS if fits(fault.id, options.only) and fits(fault.kind, options.kind)]
    if options.sample is None or options.sample >= len(found):
        return found
    drawn = set(random.Random(options.seed).sample(range(len(found)), max(0, options.sample)))
    return [fault for number, fault in enumerate(found) if number in drawn]


def _run(faults: Sequence[Fault], options: argparse.Namespace) -> list[Outcome]:
    """The outcomes; each is printed and saved as it comes."""
    done: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        done.append(outcome)
        _say(outcome)
        _save(options.json, done)

    return run_faults(faults, options.jobs, report)


def _say(outcome: Outcome) -> None:
    result = outcome.caught_by or "not noticed"
    print(f"{'' if outcome.is_right else '!! '}{outcome.id}: {result} ({outcome.seconds:.0f} s)", flush=True)


def _share(outcomes: Sequence[Outcome]) -> float:
    faults = [outcome for outcome in outcomes if outcome.kind != "neutral"]
    return sum(outcome.is_right for outcome in faults) / len(faults) if faults else 1.0


def _is_enough(outcomes: Sequence[Outcome]) -> bool:
    neutral = [outcome for outcome in outcomes if outcome.kind == "neutral"]
    return _share(outcomes) >= GOAL and all(outcome.is_right for outcome in neutral)


def _show(outcomes: Sequence[Outcome]) -> None:
    table = Table(title="Planted faults", title_justify="left")
    for heading in ("fault", "kind", "file", "noticed by"):
        table.add_column(heading, overflow="fold")
    table.add_column("s", justify="right")
    for one in outcomes:
        style = None if one.is_right else "bold red"
        caught = one.caught_by or "–"
        table.add_row(one.id, one.kind, "\n".join(one.files), escape(caught[:200]), f"{one.seconds:.1f}", style=style)
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
    document = {"schema": 1, "share": _share(outcomes), "faults": [outcome.row for outcome in outcomes]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
