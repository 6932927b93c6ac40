"""The suite ``machine``: cycles and memory traffic of single layers on the simulated machine."""

import time
from typing import Any

import torch

import daedal
from bench.options import Options
from bench.report import Row, Suite, against, column, say
from bench.workloads import WORKLOADS, Tables, Workload
from daedal.cosim.memory_spec import IDEAL, MemorySpec
from daedal.workloads.runner import same_bits

COUNTED = ("lookups", "rows", "lines_read", "lines_written", "bytes_read", "bytes_written", "launches")
"""Figures that are taken from the statistics of a run as they are."""


Clock = tuple[int, float]
"""Cycles simulated and seconds spent on it."""


def run(options: Options) -> list[Row]:
    """A row for each workload, each on a machine of its own."""
    torch.set_num_threads(1)
    rows = []
    for workload in WORKLOADS:
        say(f"machine: {workload.name}")
        rows.append(_attempt(workload.smaller() if options.quick else workload, options))
    return rows


def _attempt(workload: Workload | Tables, options: Options) -> Row:
    """A workload that breaks is a row too: the others are still of use."""
    try:
        return measure(workload, options)
    except daedal.DaedalError as error:
        return {
            "workload": workload.name, "target": options.target, "config": options.config.name,
            "memory": options.memory, "bit_exact": False, "verdict": f"{type(error).__name__}: {error}",
        }  # fmt: skip


def measure(workload: Workload | Tables, options: Options) -> Row:
    """One workload: run it, compare it with PyTorch, and put its figures together."""
    row: Row = {
        "workload": workload.name, "target": options.target, "config": options.config.name,
        "memory": options.memory, "dim": workload.dim, "bags": workload.bags, "pooling": workload.pooling,
        "table_rows": workload.rows, "goal": None if options.quick else workload.goal,
    }  # fmt: skip
    row |= figures_of(workload, options)
    if isinstance(workload, Workload):
        longer = figures_of(workload.longer(), options)
        row["bit_exact"] = row["bit_exact"] and longer["bit_exact"]
        row["steady_share"] = steady_share(row, longer, options)
        row["allowed_share"] = allowed_share(row, workload.waits, options)
    of_allowed = getattr(workload, "of_allowed", False)
    return {**row, "verdict": _verdict(row, "allowed_share" if of_allowed else "line_share")}


def figures_of(workload: Workload | Tables, options: Options) -> Row:
    """The figures of one run, on a machine of its own."""
    module, inputs = workload.make(options.seed)
    with daedal.Device.open(options.target, config=options.config, memory=options.memory) as device:
        exe = daedal.compile(module, inputs, device=device)
        before, start = _simulated(device.target), time.monotonic()
        result = exe(*inputs)
        wall = time.monotonic() - start
        row = figures(exe.stats, options)
        row["sim_kcycles_per_s"] = _speed(before, _simulated(device.target), wall, row["cycles"])
    row["bit_exact"] = same_bits(result, module(*inputs))
    return row


def steady_share(run: Row, longer: Row, options: Options) -> float | None:
    """The share of one line per cycle of what ``longer`` did more: start and end of the launch drop out."""
    if not run["cycles"]:
        return None
    lines = [row["lines_read"] + row["lines_written"] for row in (run, longer)]
    per_cycle = MemorySpec.parse(options.memory).lines
    return float((lines[1] - lines[0]) / ((longer["cycles"] - run["cycles"]) * per_cycle))


def allowed_share(run: Row, waits: int, options: Options) -> float | None:
    """Least cycles that a launch's traffic takes ÷ cycles taken: one line after the other at the rate of the memory,
    and its latency for each of ``waits`` reads and writes that cannot begin before the one before has come.

    None without a clock, or on a memory whose latency is not one number.
    """
    spec = MemorySpec.parse(options.memory)
    if not run["cycles"] or spec.model != IDEAL:
        return None
    lines = run["lines_read"] + run["lines_written"]
    return float((lines / spec.lines + waits * spec.latency) / run["cycles"])


def figures(stats: Any, options: Options) -> Row:
    """The figures of a run; those that need a clock are None on a target without one."""
    counted = {name: getattr(stats, name) for name in COUNTED}
    cycles = stats.cycles or None
    lines = counted["lines_read"] + counted["lines_written"]
    per_cycle = MemorySpec.parse(options.memory).lines
    stalls = {name: count for name, count in dict(stats.stalls).items() if count}
    return {
        **counted,
        "cycles": cycles,
        "line_share": lines / (cycles * per_cycle) if cycles else None,
        "stalls": stalls,
        "main_stall": max(stalls, key=stalls.__getitem__, default=""),
    }


def _simulated(target: Any) -> Clock:
    """Cycles simulated so far and the seconds that it took, where the target knows."""
    return getattr(target, "cycles", 0), getattr(target, "seconds", 0.0)


def _speed(before: Clock, after: Clock, wall: float, cycles: int | None) -> float | None:
    """Thousands of cycles per second: of the clock loop alone if the target tells, else of the whole run."""
    if not cycles:
        return None
    simulated, seconds = after[0] - before[0], after[1] - before[1]
    rate = simulated / seconds if simulated and seconds else cycles / wall
    return round(rate / 1000, 1)


def _verdict(row: Row, figure: str) -> str:
    words = [] if row["bit_exact"] else ["NOT EQUAL to PyTorch"]
    return "; ".join(words + ([against(row[figure], row["goal"])] if row["goal"] else []))


SUITE = Suite(
    name="machine",
    title="One layer, share of the lines that the memory can move",
    columns=(
        column("workload", "workload"), column("cycles", "cycles", ",d"),
        column("lookups", "lookups", ",d"), column("read", "lines_read", ",d"),
        column("written", "lines_written", ",d"), column("share", "line_share", ".3f"),
        column("steady", "steady_share", ".3f"), column("of allowed", "allowed_share", ".3f"),
        column("main stall", "main_stall"), column("equal", "bit_exact"), column("", "verdict"),
    ),
    run=run,
    is_broken=lambda row: not row["bit_exact"],
    about=lambda options: f"{options.target}, {options.config.name}, {options.memory}",
)  # fmt: skip
