"""`make test-full`: a billion operations on a lane's RTL, and every division by a count that bags can have.

::

    make test-full
    make test-full ARGS="--count 10000000 --seed 7 --processes 1"
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from tests.full.jobs import COUNTS, Job, jobs
from tests.unit.float.models import all_dividends_library, lane_model, reciprocal_model


@dataclass
class Total:
    """Of a group: results checked, wrong ones, and the seconds that processes spent."""

    checked: int = 0
    wrong: int = 0
    seconds: float = 0.0


def main(arguments: list[str]) -> int:
    """Run everything; 1 if a result was wrong."""
    options = _parser().parse_args(arguments)
    print(f"seed {options.seed}: {options.count:,} random operations, counts up to {options.largest}", flush=True)
    for build in (lane_model, reciprocal_model, all_dividends_library):
        build()
    try:
        totals = run(jobs(options.seed, options.count, largest=options.largest), options.processes)
    except KeyboardInterrupt:
        print("\nstopped")
        return 1
    print(table(totals))
    return int(any(total.wrong for total in totals.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make test-full", description="Floating point on the RTL, against C.")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")), help="default: SEED, or 1")
    parser.add_argument("--count", type=int, default=1_000_000_000, help="random operations in all")
    parser.add_argument("--largest", type=int, default=COUNTS, help="largest count with all its divisions")
    parser.add_argument("--processes", type=int, default=2, help="that run at the same time")
    return parser


def _timed(job: Job) -> tuple[str, int, int, str, float]:
    start = time.monotonic()
    found = job.run()
    return job.group, found.checked, found.wrong, str(found), time.monotonic() - start


def run(work: Iterable[Job], processes: int) -> dict[str, Total]:
    """Do all the work, say how far it is, and name what is wrong at once."""
    totals: dict[str, Total] = {}
    todo = list(work)
    for job in todo:
        totals.setdefault(job.group, Total())
    start, checked = time.monotonic(), 0
    with ProcessPoolExecutor(processes) as pool:
        for done, future in enumerate(as_completed([pool.submit(_timed, job) for job in todo]), 1):
            group, count, wrong, text, seconds = future.result()
            total, checked = totals[group], checked + count
            total.checked, total.wrong, total.seconds = (
                total.checked + count,
                total.wrong + wrong,
                total.seconds + seconds,
            )
            if wrong:
                print(f"\nWRONG {group}: {text}", flush=True)
            passed = time.monotonic() - start
            print(f"\r{done} of {len(todo)} pieces, {checked:,} results, {passed:.0f} s   ", end="", flush=True)
    print()
    return totals


def table(totals: dict[str, Total]) -> str:
    """The groups, a line each."""
    lines = [f"{'group':34}{'results':>20}{'wrong':>8}{'million/s':>12}"]
    for group, total in totals.items():
        rate = total.checked / max(total.seconds, 1e-9) / 1e6
        lines.append(f"{group:34}{total.checked:>20,}{total.wrong:>8}{rate:>12.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
