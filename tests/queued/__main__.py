"""Queued launches with register accesses meanwhile, as many as asked for.

::

    python -m tests.queued --config wide --memory litedram-ddr4-x64 --count 5000 --seed 7
"""

import argparse
import sys
import time

from daedal.errors import DaedalError
from tests.queued.traffic import traffic
from tests.system.test_rtl_configs import CONFIGS

PART = 250
"""Launches on one machine, before it is made anew with other layers."""


def main(arguments: list[str]) -> int:
    """Run launches; 1 if one was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.queued", description=__doc__.partition("\n")[0])
    parser.add_argument("--config", choices=CONFIGS, default="ddr3")
    parser.add_argument(
        "--memory", default="litedram-ddr3-x16", help="memory model and options, see docs/machine/memory.md"
    )
    parser.add_argument("--count", type=int, default=1000, help="launches (default: 1000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    done = accesses = cancelled = part = 0
    start = time.monotonic()
    while done < options.count:
        with traffic(CONFIGS[options.config], options.memory, [options.seed, part]) as machine:
            try:
                machine.run(min(PART, options.count - done))
            except (AssertionError, DaedalError) as error:
                print(f"\nFAILED after {done + machine.launches} launches, seed {options.seed}, part {part}: {error!r}")
                return 1
        done, part = done + machine.launches, part + 1
        accesses, cancelled = accesses + machine.accesses.total(), cancelled + machine.cancelled
        print(f"\r{done} launches, {accesses} accesses, {done / (time.monotonic() - start):.1f}/s ", end="", flush=True)
    print(f"\n{options.config}, {options.memory}: {done} queued launches right, {cancelled} cancelled by resets;")
    print(f"{accesses} register accesses while one was at work")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
