"""Runs suites of tests on a copy of the tree until one notices the fault in it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Any

from tests.mutate.fault import Fault
from tests.mutate.tree import Tree

TEST_SECONDS = 300
"""Longest time of one test; a fault that makes one hang is noticed."""

SUITE_SECONDS = 1200
"""Longest time of a suite."""

_QUIET = ("-x", "-q", "-p", "no:cacheprovider", "-o", f"timeout={TEST_SECONDS}")
_NAMES = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
_TAIL = 2000


class SuiteBroken(Exception):
    """A suite could not run, or fails without a fault; the message has the end of its output."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fault.

    Attributes
    ----------
    caught_by
        The test that failed, None if all suites passed.
    seconds
        Time that the suites took.
    """

    id: str
    area: str
    kind: str
    files: list[str]
    about: str
    caught_by: str | None
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether it came out as it must: a fault noticed, a neutral change not."""
        return (self.caught_by is None) == (self.kind == "neutral")

    @property
    def row(self) -> dict[str, Any]:
        """Its row in the JSON file."""
        return {**asdict(self), "is_right": self.is_right}


def run_suite(tree: Tree, suite: str, environment: Mapping[str, str]) -> str | None:
    """The first test of ``suite`` that fails in ``tree``, or None; SuiteBroken if there were no tests to run."""
    command = [sys.executable, "-m", "pytest", *_QUIET, *shlex.split(suite)]
    process = subprocess.Popen(
        command, cwd=tree.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=SUITE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{suite} did not end in {SUITE_SECONDS} s"
    finally:
        _end(process)
    if process.returncode == _PASSED:
        return None
    if process.returncode not in (_FAILED, _INTERRUPTED) and "ERROR collecting" not in output:
        if process.returncode < 0 or "Timeout" in output:
            return f"{suite} ended by itself ({process.returncode})"
        raise SuiteBroken(f"pytest {suite} ended with status {process.returncode}:\n{output[-_TAIL:]}")
    found = _NAMES.search(output)
    name = found.group(1) if found else f"{suite}: {output[-_TAIL:]}"
    return f"{name} (out of time)" if "Failed: Timeout" in output else name


def _end(process: "subprocess.Popen[str]") -> None:
    """End the suite's processes, also those that a test has started and left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_fault(tree: Tree, fault: Fault) -> Outcome:
    """Plant ``fault``, run its suites up to the first one that notices it, and take it out again."""
    start, caught = time.monotonic(), None
    with tree.planted(fault):
        for suite in fault.suites:
            caught = run_suite(tree, suite, tree.environment)
            if caught is not None:
                break
    seconds = round(time.monotonic() - start, 1)
    return Outcome(fault.id, fault.area, fault.kind, fault.files, fault.about, caught, seconds)


def check_suites(faults: Sequence[Fault], say: Callable[[str], None]) -> None:
    """Run the suites of all faults on the tree as it is; SuiteBroken names what fails already."""
    suites = list(dict.fromkeys(suite for fault in faults for suite in fault.suites))
    with Tree() as tree:
        for number, suite in enumerate(suites, 1):
            start = time.monotonic()
            failed = run_suite(tree, suite, tree.plain_environment)
            if failed is not None:
                raise SuiteBroken(f"pytest {suite} must pass without a fault, but {failed} fails")
            say(f"without a fault, suite {number} of {len(suites)}: {suite}: {time.monotonic() - start:.0f} s")


def run_faults(faults: Sequence[Fault], jobs: int, report: Callable[[Outcome], None]) -> list[Outcome]:
    """The outcomes of all faults, ``jobs`` of them in work at a time, each in a tree of its own."""
    trees: SimpleQueue[Tree] = SimpleQueue()
    made = [Tree() for _ in range(min(jobs, len(faults)))]
    for tree in made:
        trees.put(tree)

    def one(fault: Fault) -> Outcome:
        tree = trees.get()
        try:
            outcome = run_fault(tree, fault)
        finally:
            trees.put(tree)
        report(outcome)
        return outcome

    pool = ThreadPoolExecutor(max(1, len(made)))
    try:
        return list(pool.map(one, faults))
    finally:
        pool.shutdown(cancel_futures=True)
        for tree in made:
            tree.__exit__(None, None, None)
