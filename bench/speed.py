"""The suite ``speed``: how fast the simulators and the host's part of a run are, by the wall clock."""

import statistics
import time
from typing import Any

import torch

import daedal
from bench.options import Options
from bench.report import Row, Suite, against, column, say
from bench.workloads import SUM, Workload, same_bits

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
    """Simulated cycles per second of the C++ loop with its memory model, without Python."""
    with daedal.Device.open("verilator", config=options.config, memory=options.memory) as device:
        rates, exact = [], True
        exe, inputs, expected = _compiled(workload, options, device)
        target: Any = device.target
        for _ in range(REPEATS):
            cycles, seconds = target.cycles, target.seconds
            exact &= same_bits(exe(*inputs), expected)
            rates.append((target.cycles - cycles) / (target.seconds - seconds))
    return _row("verilated core", "simulated cycles / s", rates, CYCLES_PER_SECOND, exact, options)


def _emulated(workload: Workload, options: Options) -> Row:
    """Rows per second of whole runs on the emulator, index upload and result download included."""
    with daedal.Device.open("emulator", config=options.config) as device:
        exe, inputs, expected = _compiled(workload, options, device)
        times, exact = _timed(exe, inputs, expected)
        rates = [exe.stats.rows / seconds for seconds in times]
    return _row("emulator", "rows / s", rates, ROWS_PER_SECOND, exact, options)


def _overhead(workload: Workload, options: Options) -> Row:
    """Wall-clock microseconds of a run with next to no work on the emulator."""
    with daedal.Device.open("emulator", config=options.config) as device:
        exe, inputs, expected = _compiled(TINY, options, device)
        times, exact = _timed(exe, inputs, expected, repeats=20 * REPEATS)
    return _row("host, one run", "µs", [1e6 * seconds for seconds in times], None, exact, options)


def _compiled(workload: Workload, options: Options, device: Any) -> tuple[Any, Any, torch.Tensor]:
    """Executable, inputs and PyTorch's result; run once, so that tables and program are resident."""
    module, inputs = workload.make(options.seed)
    exe = daedal.compile(module, inputs, device=device)
    exe(*inputs)
    return exe, inputs, module(*inputs)


def _timed(exe: Any, inputs: Any, expected: torch.Tensor, repeats: int = REPEATS) -> tuple[list[float], bool]:
    times, exact = [], True
    for _ in range(repeats):
        start = time.perf_counter()
        result = exe(*inputs)
        times.append(time.perf_counter() - start)
        exact &= same_bits(result, expected)
    return times, exact


def _row(what: str, unit: str, values: list[float], goal: int | None, exact: bool, options: Options) -> Row:
    value = round(statistics.median(values), 1)
    goal = None if options.quick else goal
    verdict = against(value, goal) if exact else "NOT EQUAL to PyTorch"
    return {
        "what": what, "unit": unit, "value": value, "least": round(min(values), 1),
        "most": round(max(values), 1), "goal": goal, "config": options.config.name,
        "memory": options.memory, "bit_exact": exact, "verdict": verdict,
    }  # fmt: skip


SUITE = Suite(
    name="speed",
    title="Speed of the simulators and of the host",
    columns=(
        column("what", "what"), column("median", "value", ",.0f"), column("least", "least", ",.0f"),
        column("most", "most", ",.0f"), column("unit", "unit"), column("equal", "bit_exact"),
        column("", "verdict"),
    ),
    run=run,
    is_broken=lambda row: not row["bit_exact"],
    about=lambda options: f"{options.config.name}, {options.memory}",
)  # fmt: skip
