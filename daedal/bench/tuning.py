"""Makes the simulation of one machine faster: runs it, and has it compiled again by what was seen.

``python -m daedal.bench.tuning`` is the run, in a process of its own, for models write what they learn as it ends.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch

from daedal.compiler.api import compile
from daedal.cosim.builder import profile
from daedal.driver.device import Device
from daedal.errors import DaedalError
from daedal.hw.config.core import Config

ROWS, BAGS = 4096, 128

LAYERS = (("sum", 64, 16), ("mean", 64, 8), ("sum", 16, 1), ("max", 8, 4))
"""Mode, columns, and rows of a bag: long rows and short ones, with and without division."""


def tune(config: Config, memory: str, say: Callable[[str], None]) -> tuple[float, float]:
    """Simulated cycles per second of this machine before and after.

    Later runs of the same machine, in any process, find the faster model. Raises TuningFailed if a run fails.
    """
    say("compiling and timing it as it is")
    before = _run(config, memory, train=False)
    say("compiling and running it to learn what runs often")
    _run(config, memory, train=True)
    say("compiling it again and timing that")
    return before, _run(config, memory, train=False)


class TuningFailed(DaedalError):
    """The machine could not be run."""


def _run(config: Config, memory: str, *, train: bool) -> float:
    words = [sys.executable, "-m", "daedal.bench.tuning", json.dumps(asdict(config)), memory]
    environment = profile.training_environment() if train else None
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise TuningFailed(f"{config.name} on {memory} could not be run: {said[-1]}")
    return float(done.stdout.strip().splitlines()[-1])


def cycles_per_second(config: Config, memory: str) -> float:
    """Run layers of several kinds; simulated cycles per second of the processor's time."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    cycles, seconds = 0, 0.0
    with Device.open("verilator", config, memory=memory) as device:
        for mode, dim, pooling in LAYERS:
            layer = torch.nn.EmbeddingBag(ROWS, dim, mode=mode)
            indices = torch.randint(ROWS, (BAGS, pooling), generator=generator)
            executable = compile(layer, (indices,), device=device)
            executable(indices)  # tables and program are in memory after this
            start = time.process_time()
            executable(indices)
            seconds += time.process_time() - start
            cycles += executable.stats.cycles
    return cycles / seconds


def main(words: Sequence[str]) -> None:
    """Run the machine given as JSON, on a memory, and print the speed."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(words[0]).items()
    }
    print(cycles_per_second(Config(**fields), words[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
