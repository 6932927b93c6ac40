"""Flips bits of programs in memory: is each of them noticed, and nothing written outside of the store window?

::

    .venv/bin/python -m tests.fuzz.bit_flips --target emulator --target verilator --count 2000

Each flip is a launch of its own. It must end in a fault. One that does not end counts as noticed if the machine comes
out of a reset, and then runs the program as it was.
"""

import sys
from collections import Counter
from collections.abc import Sequence

import click
import numpy as np

from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import State
from tests.fuzz.machines import Machine, Stuck
from tests.fuzz.snapshots import MEMORY_BYTES, Snapshot, snapshots

SECONDS = {"emulator": 0.1, "verilator": 5.0}
"""After so long a launch counts as one that does not end; those that do take a tenth of it or less."""


WHOLE_SECONDS = 120.0
"""The same for launches of the program as it is."""


class Unnoticed(DaedalError):
    """A flip that was not noticed, or not in time."""


class Flips:
    """One machine on which launches of damaged programs are run. Use it in a ``with`` block."""

    def __init__(self, config: Config, name: str, memory: str = "ideal") -> None:
        self.config, self.name = config, name
        self._machine = Machine(config, name, memory, memory_bytes=MEMORY_BYTES)

    def __enter__(self) -> "Flips":
        return self

    def __exit__(self, *exception: object) -> None:
        self._machine.close()

    def whole(self, snapshot: Snapshot) -> None:
        """The program as it is must do what it did; Unnoticed if it does not."""
        self._machine.seconds = WHOLE_SECONDS
        end, memory = self._launch(snapshot, snapshot.memory)
        self._machine.seconds = SECONDS[self.name]
        inside = slice(snapshot.first, snapshot.end)
        if end != State.DONE.name or memory[inside] != snapshot.after[inside]:
            raise Unnoticed(f"{self}: {snapshot.name} must be DONE as on the emulator, not {end}")

    def flipped(self, snapshot: Snapshot, *bits: int) -> str:
        """How a launch with these bits wrong ended: a Cause or "no end"."""
        before = snapshot.with_flips(*bits)
        end, memory = self._launch(snapshot, before)
        what = f"{self}: {snapshot.name} with wrong bits {bits}"
        if end == State.DONE.name:
            raise Unnoticed(f"{what} must not be DONE")
        if snapshot.outside(memory) != snapshot.outside(before):
            raise Unnoticed(f"{what} must not write outside of its window ({end})")
        if end == "no end":
            self.whole(snapshot)
        return end

    def _launch(self, snapshot: Snapshot, memory: bytes) -> tuple[str, bytes]:
        target = self._machine.target
        target.mem_write(0, memory)
        try:
            record = self._machine.launch(snapshot.block, snapshot.record)
        except Stuck:
            self._machine.reset()
            return "no end", target.mem_read(0, MEMORY_BYTES)
        if record.state is not State.DONE:
            self._machine.reset()
        end = record.cause.name if record.state is State.FAULTED else record.state.name
        return end, target.mem_read(0, MEMORY_BYTES)

    def __str__(self) -> str:
        return f"{self.name} {self.config.name}"


def run(flips: Flips, listed: Sequence[Snapshot], count: int, seed: int, wrong: int = 1) -> Counter[str]:
    """How so many flips of ``wrong`` bits each ended, over the programs in turn; Unnoticed for one that was not."""
    rng, ends = np.random.default_rng([seed, wrong]), Counter[str]()
    for snapshot in listed:
        flips.whole(snapshot)
    for number in range(count):
        snapshot = listed[number % len(listed)]
        bits = rng.choice(64 * snapshot.words, wrong, replace=False)
        ends[flips.flipped(snapshot, *map(int, bits))] += 1
    return ends


@click.command()
@click.option("--target", "targets", multiple=True, type=click.Choice(list(SECONDS)), default=list(SECONDS))
@click.option("--config", "names", multiple=True, default=["minimum", "edge", "ddr3"], show_default=True)
@click.option("--count", default=2000, show_default=True, help="Flips for each target, over all configurations.")
@click.option("--wrong", default=1, show_default=True, help="Bits that are wrong at a time.")
@click.option("--seed", default=1, show_default=True)
def main(targets: tuple[str, ...], names: tuple[str, ...], count: int, wrong: int, seed: int) -> None:
    """Flip bits of programs and print how the launches ended; status 1 if one was not noticed."""
    for target in targets:
        total = Counter[str]()
        for number, name in enumerate(names):
            config = Config.preset(name)
            listed = list(snapshots(config))
            part = count * (number + 1) // len(names) - count * number // len(names)
            with Flips(config, target) as flips:
                try:
                    ends = run(flips, listed, part, seed, wrong)
                except Unnoticed as error:
                    raise click.ClickException(str(error)) from None
            total += ends
            print(f"{target} {name}: {part} flips in {len(listed)} launches: {_text(ends)}", flush=True)
        print(f"{target}: {count} flips, each noticed, none outside of its window: {_text(total)}", flush=True)


def _text(ends: Counter[str]) -> str:
    return ", ".join(f"{end} {count}" for end, count in ends.most_common())


if __name__ == "__main__":
    sys.exit(main())
