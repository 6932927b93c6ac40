"""Runs suites of tests on a copy of the tree until one notices the fault in it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

from tests.mutate.fault import SLOW, Fault
from tests.mutate.tree import Tree

TEST_SECONDS = 300
"""Longest time of one test; a fault that makes one hang is noticed."""

SUITE_SECONDS = 2400
"""Longest time of a suite."""

# A signal does not end a test that hangs in C++; a thread ends its process.
_QUIET = ("-x", "-q", "-p", "no:cacheprovider", "-o", f"timeout={TEST_SECONDS}", "-o", "timeout_method=thread")
_NAMES = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_PASSED, _FAILED, _INTERRUPTED, _NO_TESTS = 0, 1, 2, 5
_TAIL = 2000
_LATE, _ENDED = " (out of time)", " (ended the process)"
_NOT_COMPILED = ("g++ could not build", "make could not build")
"""What a build of ours says of C++ that is none."""


class SuiteBroken(Exception):
    """A suite could not run, or a test fails without a fault; the message says why."""


class NotCompiled(Exception):
    """What a fault made of C++ is none."""


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


def run_suite(tree: Tree, suite: str, environment: Mapping[str, str], options: Sequence[str] = ()) -> str | None:
    """The first test of ``suite`` that fails in ``tree``, or None; SuiteBroken if pytest could not run it."""
    command = [sys.executable, "-m", "pytest", *options, *_QUIET, *shlex.split(suite)]
    process = subprocess.Popen(
        command, cwd=tree.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=SUITE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{suite}{_LATE}"
    finally:
        _end(process)
    if process.returncode in (_PASSED, _NO_TESTS):
        return None
    if process.returncode not in (_FAILED, _INTERRUPTED) and "ERROR collecting" not in output:
        if process.returncode < 0 or "Timeout" in output:
            return f"{suite}{_ENDED}"
        raise SuiteBroken(f"pytest {suite} ended with status {process.returncode}:\n{output[-_TAIL:]}")
    if any(sign in output for sign in _NOT_COMPILED):
        raise NotCompiled
    found = _NAMES.search(output)
    name = found.group(1) if found else suite
    return name + (_LATE if "+ Timeout +" in output else "")


def _end(process: "subprocess.Popen[str]") -> None:
    """End the suite's processes, also those that a test has started and left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Runner:
    """Plants faults in a tree; ``sound`` are the tests that are known to pass without one."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._sound: set[str] = set()

    def close(self) -> None:
        """Remove the tree."""
        self._tree.__exit__(None, None, None)

    def run(self, fault: Fault) -> Outcome | None:
        """What comes of a fault; None if it does not compile.

        Raises
        ------
        SuiteBroken
            The test that noticed it fails without it as well, or a suite has no tests.
        """
        start, caught = time.monotonic(), None
        try:
            with self._tree.planted(fault):
                environment = {**self._tree.environment, **fault.environment}
                for suite in fault.suites:
                    caught = run_suite(self._tree, suite, environment, fault.options)
                    if caught is not None:
                        break
        except NotCompiled:
            return None
        seconds = round(time.monotonic() - start, 1)
        if caught is not None:
            self._check(caught)
        return Outcome(fault.id, fault.area, fault.kind, fault.files, fault.about, caught, seconds)

    def _check(self, caught: str) -> None:
        test = caught.removesuffix(_LATE).removesuffix(_ENDED)
        if test not in self._sound:
            suite = f"{shlex.quote(test)} -m '' {SLOW}" if "::" in test and " -" not in test else test
            if run_suite(self._tree, suite, self._tree.plain_environment) is not None:
                raise SuiteBroken(f"{test} must pass without a fault")
            self._sound.add(test)


def run_faults(
    faults: Iterable[Fault], jobs: int, most: int | None, report: Callable[[Outcome], None]
) -> list[Outcome]:
    """The outcomes of the first ``most`` faults that compile, ``jobs`` of them in work at a time."""
    waiting, lock = iter(faults), Lock()
    done: list[Outcome] = []
    begun = 0

    def work() -> None:
        nonlocal begun
        runner = Runner()
        try:
            while True:
                with lock:
                    fault = next(waiting, None) if most is None or begun < most else None
                    begun += 1
                if fault is None:
                    return
                outcome = runner.run(fault)
                with lock:
                    if outcome is None:
                        begun -= 1
                    else:
                        done.append(outcome)
                        report(outcome)
        finally:
            runner.close()

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _ in range(jobs)]:
            worker.result()
    return done
