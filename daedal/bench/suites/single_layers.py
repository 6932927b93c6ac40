"""The suite ``layers``: cycles and memory traffic of single layers on the simulated machine."""

import time
from collections.abc import Iterator
from typing import Any

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, against, machines_of, one_thread
from daedal.bench.workloads.layers import WORKLOADS, Tables, Workload
from daedal.bench.workloads.runner import same_bits
from daedal.cosim.memory_spec import IDEAL, MemorySpec

COUNTED = ("lookups", "rows", "lines_read", "lines_written", "bytes_read", "bytes_written", "launches")
"""Figures that are taken from the statistics of a run as they are."""


Clock = tuple[int, float]
"""Cycles simulated and seconds spent on it."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each workload, each on a machine of its own."""
    with one_thread():
        for machine in machines_of(order):
            for workload in WORKLOADS:
                say(f"layers: {workload.name} on {machine.memory}")
                yield _attempt(workload.smaller() if machine.quick else workload, machine)


def _attempt(workload: Workload | Tables, machine: Machine) -> Row:
    """A workload that breaks is a row too: the others are still of use."""
    try:
        return measure(workload, machine)
    except daedal.DaedalError as error:
        verdict = f"{type(error).__name__}: {error}"
        return {"workload": workload.name, **machine.facts(), "bit_exact": False, "verdict": verdict}


def measure(workload: Workload | Tables, machine: Machine) -> Row:
    """One workload: run it, compare it with PyTorch, and put its figures together."""
    row: Row = {
        "workload": workload.name, **machine.facts(), "dim": workload.dim, "bags": workload.bags,
        "pooling": workload.pooling, "table_rows": workload.rows, "goal": None if machine.quick else workload.goal,
    }  # fmt: skip
    row |= figures_of(workload, machine)
    if isinstance(workload, Workload):
        longer = figures_of(workload.longer(), machine)
        row["bit_exact"] = row["bit_exact"] and longer["bit_exact"]
        row["steady_share"] = steady_share(row, longer, machine)
        row["allowed_share"] = allowed_share(row, workload.waits, machine)
    figure = "allowed_share" if getattr(workload, "of_allowed", False) else "line_share"
    return {**row, "verdict": "" if row["bit_exact"] else NOT_EQUAL, "outcome": against(row[figure], row["goal"])}


def figures_of(workload: Workload | Tables, machine: Machine) -> Row:
    """The figures of one run, on a machine of its own."""
    module, inputs = workload.make(machine.seed)
    with daedal.Device.open(machine.target, config=machine.config, memory=machine.memory) as device:
        exe = daedal.compile(module, inputs, device=device)
        before, start = _simulated(device.target), time.monotonic()
        result = exe(*inputs)
        wall = time.monotonic() - start
        row = figures(exe.stats, machine)
        row["sim_kcycles_per_s"] = _speed(before, _simulated(device.target), wall, row["cycles"])
    row["useful_bytes"] = workload.useful_bytes
    row["useful_share"] = useful_share(row, machine)
    row["bit_exact"] = same_bits(result, module(*inputs))
    return row


def steady_share(run: Row, longer: Row, machine: Machine) -> float | None:
    """The share of one line per cycle of what ``longer`` did more: start and end of the launch drop out."""
    if not run["cycles"]:
        return None
    lines = [row["lines_read"] + row["lines_written"] for row in (run, longer)]
    per_cycle = MemorySpec.parse(machine.memory, predicted=True).lines
    return float((lines[1] - lines[0]) / ((longer["cycles"] - run["cycles"]) * per_cycle))


def useful_share(run: Row, machine: Machine) -> float | None:
    """Bytes of rows, indices, offsets, weights and results ÷ what the memory can move in the run's cycles.

    None without a clock.
    """
    if not run["cycles"]:
        return None
    moved = run["cycles"] * MemorySpec.parse(machine.memory, predicted=True).lines * machine.config.bus_bytes
    return float(run["useful_bytes"] / moved)


def allowed_share(run: Row, waits: int, machine: Machine) -> float | None:
    """Least cycles that a launch's traffic takes ÷ cycles taken: one line after the other at the rate of the memory,
    and its latency for each of ``waits`` reads and writes that cannot begin before the one before has come.

    None without a clock, or on a memory whose latency is not one number.
    """
    spec = MemorySpec.parse(machine.memory, predicted=True)
    if not run["cycles"] or spec.model != IDEAL:
        return None
    lines = run["lines_read"] + run["lines_written"]
    return float((lines / spec.lines + waits * spec.latency) / run["cycles"])


def figures(stats: Any, machine: Machine) -> Row:
    """The figures of a run; those that need a clock are None on a target without one."""
    counted = {name: getattr(stats, name) for name in COUNTED}
    cycles = stats.cycles or None
    lines = counted["lines_read"] + counted["lines_written"]
    per_cycle = MemorySpec.parse(machine.memory, predicted=True).lines
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


SUITE = Suite(
    name="layers",
    title="One layer, share of the lines that the memory can move",
    columns=(
        column("workload", "workload"), column("cycles", "cycles", ",d"),
        column("lookups", "lookups", ",d"), column("read", "lines_read", ",d"),
        column("written", "lines_written", ",d"), column("share", "line_share", ".3f"),
        column("useful", "useful_share", ".3f"),
        column("steady", "steady_share", ".3f"), column("of allowed", "allowed_share", ".3f"),
        column("main stall", "main_stall"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
