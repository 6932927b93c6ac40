"""The suite ``speed``: how fast the simulators and the host's part of a run are, by the wall clock."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, against, machines_of, one_thread
from daedal.bench.workloads.layers import SUM, Workload
from daedal.bench.workloads.runner import same_bits

REPEATS = 5
"""Runs of each measurement; their median counts."""

CYCLES_PER_SECOND, ROWS_PER_SECOND = 300_000, 200_000
"""Least that is wanted of the verilated core and of the emulator."""

TINY = Workload("one row", "sum", 4, rows=16, bags=1, pooling=1)
"""As little work as there is: what remains is the host's."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """Speed of both targets, and the host's time per run."""
    workload = SUM.smaller() if order.quick else SUM
    with one_thread():
        for machine in machines_of(order):
            for measure, name in ((_verilated, "verilated core"), (_emulated, "emulator"), (_overhead, "one run")):
                if measure is _verilated and machine.target != "verilator":
                    continue
                say(f"speed: {name}")
                yield measure(workload, machine)


def _verilated(workload: Workload, machine: Machine) -> Row:
    """Simulated cycles per second of whole runs: nearly all of it is the C++ loop with its memory model."""
    with daedal.Device.open("verilator", config=machine.config, memory=machine.memory) as device:
        target: Any = device.target
        runs = _timed(workload, machine, device, lambda exe: target.cycles)
    amounts = [later - earlier for earlier, later in pairwise([run.mark for run in runs])]
    rates = [_Run(amount, run.wall, run.cpu, run.exact) for amount, run in zip(amounts, runs[1:], strict=True)]
    return _rates("verilated core", "simulated cycles / s", rates, CYCLES_PER_SECOND, machine)


def _emulated(workload: Workload, machine: Machine) -> Row:
    """Rows per second of whole runs on the emulator, index upload and result download included."""
    with daedal.Device.open("emulator", config=machine.config) as device:
        runs = _timed(workload, machine, device, lambda exe: exe.stats.rows)
    return _rates("emulator", "rows / s", runs, ROWS_PER_SECOND, machine)


def _overhead(workload: Workload, machine: Machine) -> Row:
    """Microseconds of a run with next to no work on the emulator."""
    with daedal.Device.open("emulator", config=machine.config) as device:
        runs = _timed(TINY, machine, device, lambda exe: 0, repeats=20 * REPEATS)
    walls, cpus = [1e6 * run.wall for run in runs], [1e6 * run.cpu for run in runs]
    return _row("host, one run", "µs", walls, cpus, None, all(run.exact for run in runs), machine)


@dataclass(frozen=True)
class _Run:
    """One run: what was counted by its end, its seconds by the clock and of the processor, its result."""

    mark: int
    wall: float
    cpu: float
    exact: bool


def _timed(workload: Workload, machine: Machine, device: Any, mark: Callable[[Any], int],
           repeats: int = REPEATS) -> list[_Run]:  # fmt: skip
    """Runs of the workload, after one that makes tables and program resident."""
    module, inputs = workload.make(machine.seed)
    exe, expected = daedal.compile(module, inputs, device=device), module(*inputs)
    runs = []
    for _ in range(repeats + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        result = exe(*inputs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        runs.append(_Run(mark(exe), wall, cpu, same_bits(result, expected)))
    return runs


def _rates(what: str, unit: str, runs: Sequence[_Run], goal: int, machine: Machine) -> Row:
    """The row of something that goes so fast."""
    walls, cpus = [run.mark / run.wall for run in runs], [run.mark / run.cpu for run in runs]
    return _row(what, unit, walls, cpus, goal, all(run.exact for run in runs), machine)


def _row(what: str, unit: str, walls: Sequence[float], cpus: Sequence[float], goal: int | None, exact: bool,
         machine: Machine) -> Row:  # fmt: skip
    value = round(statistics.median(walls), 1)
    goal = None if machine.quick else goal
    return {
        "workload": what, "unit": unit, "value": value, "least": round(min(walls), 1),
        "most": round(max(walls), 1), "by_processor_time": round(statistics.median(cpus), 1), "goal": goal,
        "config": machine.config.name, "memory": machine.memory, "bit_exact": exact,
        "verdict": "" if exact else NOT_EQUAL, "outcome": against(value, goal),
    }  # fmt: skip


SUITE = Suite(
    name="speed",
    title="Speed of the simulators and of the host",
    columns=(
        column("what", "workload"), column("median", "value", ",.0f"), column("least", "least", ",.0f"),
        column("most", "most", ",.0f"), column("by processor time", "by_processor_time", ",.0f"),
        column("unit", "unit"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
