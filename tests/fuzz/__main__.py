"""`make fuzz`: random programs without end, or as many as asked for.

::

    make fuzz ARGS="--config edge --seed 7 --count 10000"
    make fuzz ARGS="--config wide --memory litedram-ddr4-x64 --accesses"
    make fuzz ARGS="--emulator"
    make fuzz ARGS="tests/fuzz/kept/memory-edge-12345678.txt"
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np

from daedal.base.boundary import one_line
from daedal.hw.config.core import Config
from tests.fuzz.campaign import KEPT, KINDS, MEMORIES, Campaign, read_cases, run
from tests.fuzz.configs import BUILT, KNOWN, RTL, random_config
from tests.fuzz.judge import Failure

PER_TURN = 200
"""Programs of one configuration before the next one's turn."""


def main(arguments: list[str]) -> int:
    """Run programs; 1 if one failed."""
    options = _parser().parse_args(arguments)
    try:
        if options.files:
            return _run_files(options.files)
        return _run_random(options)
    except Failure as failure:
        print(f"\nFAILED {failure}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fuzz", description="Random programs on contract, emulator and RTL.")
    parser.add_argument("files", nargs="*", type=Path, help="kept programs to run again, and nothing else")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="start of the random numbers (default: time)"
    )
    parser.add_argument("--count", type=int, default=None, help="programs to run (default: no end)")
    parser.add_argument("--config", choices=[*KNOWN, "random"], action="append", help="default: all with RTL")
    parser.add_argument("--emulator", action="store_true", help="contract and emulator only, in any configuration")
    parser.add_argument("--kind", choices=KINDS, action="append", help="kinds of programs (default: all)")
    parser.add_argument("--accesses", action="store_true", help="read registers while the RTL works")
    parser.add_argument("--memory", action="append", help="memory model of the simulation (default: several)")
    return parser


def _config(name: str, seed: list[int]) -> Config:
    return random_config(np.random.default_rng(seed)) if name == "random" else KNOWN[name]


def _run_random(options: argparse.Namespace) -> int:
    names = options.config or ([*KNOWN, "random"] if options.emulator else list(RTL))
    missing = [name for name in names if name not in BUILT]
    if missing and not options.emulator:
        print(f"{', '.join(missing)} has no RTL: add --emulator", file=sys.stderr)
        return 2
    memories = () if options.emulator else tuple(options.memory or MEMORIES)
    print(f"seed {options.seed}", flush=True)
    done, start = 0, time.monotonic()
    for turn in itertools.count():
        config = _config(names[turn % len(names)], [options.seed, turn])
        most = PER_TURN if options.count is None else min(PER_TURN, options.count - done)
        if most <= 0:
            break
        numbers = itertools.islice(itertools.count(turn * PER_TURN), most)
        with Campaign(config, memories, KEPT, accesses=options.accesses) as campaign:
            for number, kind in run(campaign, options.seed, numbers, options.kind or KINDS):
                done += 1
                if done % 20 == 0:
                    rate = done / (time.monotonic() - start)
                    print(f"\r{done} programs, {rate:.1f}/s: {config.name} {number} {kind}   ", end="", flush=True)
    print(f"\n{done} programs agree")
    return 0


def _run_files(files: list[Path]) -> int:
    for path in files:
        cases = read_cases(path, KNOWN)
        memories = (cases[0].memory or "ideal",) if cases[0].config.name in BUILT else ()
        with Campaign(cases[0].config, memories) as campaign:
            campaign.check(cases)
        print(f"{path} agrees")
    return 0


if __name__ == "__main__":
    with one_line("make fuzz"):
        sys.exit(main(sys.argv[1:]))
