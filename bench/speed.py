"""The suite ``speed``: how fast the simulators and the host's part of a run are, by the wall clock."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

import daedal
from bench.options import Options
from bench.report import Row, Suite, against, column, say
from bench.workloads import SUM, Workload
from daedal.workloads.runner import same_bits

REPEATS = 5
"""Runs of each measurement; their median counts."""

CYCLES_PER_SECOND, ROWS_PER_SECOND = 300_000, 200_000
"""Least that is wanted of the verilated core and of the emulator."""

TINY = Workload("one row", "sum", 4, rows=16, bags=1, pooling=1)
"""As little work as there is: what remains is the host's."""


def run(options: Options) -> list[Row]:
    """Speed of both targets, and the host's time per run."""
    torch.set_num_threads(1)
    workload = SUM.smaller() if options.quick else SUM
    rows = []
    for measure, name in ((_verilated, "verilated core"), (_emulated, "emulator"), (_overhead, "one run")):
        if measure is _verilated and options.target != "verilator":
            continue
        say(f"speed: {name}")
        rows.append(measure(workload, options))
    return rows


def _verilated(workload: Workload, options: Options) -> Row:
    """Simulated cycles per second of whole runs: nearly all of it is the C++ loop with its memory model."""
    with daedal.Device.open("verilator", config=options.config, memory=options.memory) as device:
        target: Any = device.target
        runs = _timed(workload, options, device, lambda exe: target.cycles)
    amounts = [later - earlier for earlier, later in pairwise([run.mark for run in runs])]
    rates = [_Run(amount, run.wall, run.cpu, run.exact) for amount, run in zip(amounts, runs[1:], strict=True)]
    return _rates("verilated core", "simulated cycles / s", rates, CYCLES_PER_SECOND, options)


def _emulated(workload: Workload, options: Options) -> Row:
    """Rows per second of whole runs on the emulator, index upload and result download included."""
    with daedal.Device.open("emulator", config=options.config) as device:
        runs = _timed(workload, options, device, lambda exe: exe.stats.rows)
    return _rates("emulator", "rows / s", runs, ROWS_PER_SECOND, options)


def _overhead(workload: Workload, options: Options) -> Row:
    """Microseconds of a run with next to no work on the emulator."""
    with daedal.Device.open("emulator", config=options.config) as device:
        runs = _timed(TINY, options, device, lambda exe: 0, repeats=20 * REPEATS)
    walls, cpus = [1e6 * run.wall for run in runs], [1e6 * run.cpu for run in runs]
    return _row("host, one run", "µs", walls, cpus, None, all(run.exact for run in runs), options)


@dataclass(frozen=True)
class _Run:
    """One run: what was counted by its end, its seconds by the clock and of the processor, its result."""

    mark: int
    wall: float
    cpu: float
    exact: bool


def _timed(workload: Workload, options: Options, device: Any, mark: Callable[[Any], int],
           repeats: int = REPEATS) -> list[_Run]:  # fmt: skip
    """Runs of the workload, after one that makes tables and program resident."""
    module, inputs = workload.make(options.seed)
    exe, expected = daedal.compile(module, inputs, device=device), module(*inputs)
    runs = []
    for _ in range(repeats + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        result = exe(*inputs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        runs.append(_Run(mark(exe), wall, cpu, same_bits(result, expected)))
    return runs


def _rates(what: str, unit: str, runs: Sequence[_Run], goal: int, options: Options) -> Row:
    """The row of something that goes so fast."""
    walls, cpus = [run.mark / run.wall for run in runs], [run.mark / run.cpu for run in runs]
    return _row(what, unit, walls, cpus, goal, all(run.exact for run in runs), options)


def _row(what: str, unit: str, walls: Sequence[float], cpus: Sequence[float], goal: int | None, exact: bool,
         options: Options) -> Row:  # fmt: skip
    value = round(statistics.median(walls), 1)
    goal = None if options.quick else goal
    return {
        "what": what, "unit": unit, "value": value, "least": round(min(walls), 1),
        "most": round(max(walls), 1), "by_processor_time": round(statistics.median(cpus), 1), "goal": goal,
        "config": options.config.name, "memory": options.memory, "bit_exact": exact,
        "verdict": against(value, goal) if exact else "NOT EQUAL to PyTorch",
    }  # fmt: skip


SUITE = Suite(
    name="speed",
    title="Speed of the simulators and of the host",
    columns=(
        column("what", "what"), column("median", "value", ",.0f"), column("least", "least", ",.0f"),
        column("most", "most", ",.0f"), column("by processor time", "by_processor_time", ",.0f"),
        column("unit", "unit"), column("equal", "bit_exact"), column("", "verdict"),
    ),
    run=run,
    is_broken=lambda row: not row["bit_exact"],
    about=lambda options: f"{options.config.name}, {options.memory}",
)  # fmt: skip
