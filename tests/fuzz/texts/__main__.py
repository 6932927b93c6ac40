"""`make fuzz-texts`: damaged texts for whatever reads what a user gives, each within a limit of time and memory.

::

    make fuzz-texts ARGS="--count 60000 --seed 7"
    make fuzz-texts ARGS="--reader 'program text' --seed 7 --only 1234"

A text is made from the seed and its number. It fails if the reader ends in anything but a result or an error of one
line, takes longer than ``--seconds``, or needs more than ``--megabytes``; it is written to the folder ``--keep`` then.
"""

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from daedal.base.boundary import one_line
from tests.fuzz.texts.damage import damaged
from tests.fuzz.texts.readers import READERS, Reader, judge

SECONDS = 20
"""A text takes some milliseconds; this is for computers that do much else."""

MEGABYTES = 2048
"""Above what the process has when it starts."""


@dataclass(frozen=True)
class Limits:
    """Of one text: seconds, and megabytes of address space above those of the process before."""

    seconds: int = SECONDS
    megabytes: int = MEGABYTES


def main(arguments: Sequence[str]) -> int:
    """Try the texts; 1 if one failed."""
    options = _parser().parse_args(arguments)
    readers = [reader for reader in READERS if reader.name in (options.reader or [each.name for each in READERS])]
    numbers = range(options.count) if options.only is None else [options.only]
    print(f"seed {options.seed}", flush=True)
    counts, failed = run(readers, options.seed, numbers, Limits(options.seconds, options.megabytes), options.keep)
    for reader in readers:
        print(f"{reader.name:24} " + ", ".join(f"{counts[reader.name, what]:6} {what}" for what in ("read", "refused")))
    print(f"{sum(counts.values()) + failed} damaged texts, {failed} failed")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fuzz-texts", description="Damaged texts for all that reads texts.")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="start of the random numbers (default: time)"
    )
    parser.add_argument("--count", type=int, default=60_000, help="texts to try")
    parser.add_argument("--only", type=int, help="the text of this number, and no other")
    parser.add_argument("--reader", choices=[reader.name for reader in READERS], action="append", help="default: all")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the longest that one may take")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="the most memory that one may need")
    parser.add_argument("--keep", type=Path, default=Path("build/texts"), help="where failing ones are kept")
    return parser


def made(readers: Sequence[Reader], seed: int, number: int) -> tuple[Reader, bytes]:
    """The text of a number, and who reads it."""
    rng = np.random.default_rng([seed, number])
    weights = np.array([reader.weight for reader in readers], float)
    reader = readers[int(rng.choice(len(readers), p=weights / weights.sum()))]
    texts = reader.texts()
    return reader, damaged(texts[int(rng.integers(len(texts)))], texts, rng)


def run(
    readers: Sequence[Reader], seed: int, numbers: Iterable[int], limits: Limits, keep: Path
) -> tuple[Counter[tuple[str, str]], int]:
    """Try texts in a process of their own, and in another one behind each that ends it.

    Returns how many each reader has read and refused, and how many failed.
    """
    left, counts, failed = list(numbers), Counter[tuple[str, str]](), 0
    for reader in readers:
        reader.texts()  # made once, here
    with tempfile.TemporaryDirectory(prefix="daedal-texts-") as folder:
        while left:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.close(reading)
                _try_all(readers, seed, left, limits, Path(folder), writing)
            os.close(writing)
            with os.fdopen(reading, encoding="utf-8") as lines:
                done = [line.rstrip("\n").split("\t") for line in lines]
            _, status = os.waitpid(child, 0)
            for name, what, *_ in done:
                counts[name, what] += what in ("read", "refused")
            reports = [entry[2] for entry in done if entry[1] == "failed"]
            if len(done) < len(left):
                reports.append(f"{left[len(done)]}: ended the process, {os.waitstatus_to_exitcode(status)}")
            for report in reports:
                failed += 1
                number = int(report.partition(":")[0])
                reader, text = made(readers, seed, number)
                keep.mkdir(parents=True, exist_ok=True)
                path = keep / f"{reader.name.replace(' ', '-')}-{seed}-{number}{reader.suffix}"
                path.write_bytes(text)
                print(f"FAILED {path}: {report}", flush=True)
            left = left[len(done) + (len(done) < len(left)) :]
    return +counts, failed


def _try_all(
    readers: Sequence[Reader], seed: int, numbers: Sequence[int], limits: Limits, folder: Path, out: int
) -> None:
    """In the process of their own: a line for each text. A text that takes too long ends it, whatever it does."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (limits.megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.chdir(folder)
    with os.fdopen(out, "w", encoding="utf-8", buffering=1) as lines:
        for number in numbers:
            reader, text = made(readers, seed, number)
            path = folder / f"text{reader.suffix}"
            path.write_bytes(text)
            signal.alarm(limits.seconds)
            try:
                lines.write(f"{reader.name}\t{judge(reader, path)}\n")
            except BaseException as error:
                said = " ".join(f"{type(error).__name__}: {error}".split())[:700]
                lines.write(f"{reader.name}\tfailed\t{number}: {said}\n")
            signal.alarm(0)
    os._exit(0)


if __name__ == "__main__":
    with one_line("make fuzz-texts"):
        sys.exit(main(sys.argv[1:]))
