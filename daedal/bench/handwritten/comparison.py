"""The suite ``handwritten``: programs written by hand for speed, beside each what the compiler makes of the same."""

from collections.abc import Iterator
from statistics import geometric_mean
from typing import Any

import numpy as np

import daedal
from daedal.bench.handwritten import compiled, operations
from daedal.bench.handwritten.operations import OPERATIONS, SMALL, Operation, Size
from daedal.bench.report.table import column
from daedal.bench.suite import Machine, Order, Row, Say, Suite, machines_of
from daedal.driver.launch.record import Stats

MEAN = "geometric mean"
"""Name of the row below the operations."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each operation, each on machines of its own, and one for all."""
    size = SMALL if order.quick else Size()
    for machine in machines_of(order):
        rows = []
        for operation in OPERATIONS:
            say(f"handwritten: {operation.name} on {machine.memory}")
            rows.append(measure(operation, size, machine))
            yield rows[-1]
        yield mean(rows) | machine.facts()


def mean(rows: list[Row]) -> Row:
    """The geometric mean of compiled / hand-written, of the operations that have both."""
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    return {
        "workload": MEAN, "ratio": geometric_mean(ratios) if ratios else None, "bit_exact": True,
        "outcome": f"of {len(ratios)} operations",
    }  # fmt: skip


def measure(operation: Operation, size: Size, machine: Machine) -> Row:
    """One operation: both programs on the same data, compared with NumPy."""
    case = operation.make(np.random.default_rng(machine.seed), size)
    row: Row = {
        "workload": operation.name, "programs": list(operation.programs), "bound": operation.bound,
        **machine.facts(), "outputs": size.outputs, "pooling": size.pooling, "table_rows": size.rows,
        "lines": case.lines,
    }  # fmt: skip
    words = []
    ours = _attempt(operations.run, machine, case)
    theirs = _attempt(compiled.run, machine, operation, case)
    for name, (result, stats, reason) in (("handwritten", ours), ("compiled", theirs)):
        cycles = stats.cycles or None
        row[f"{name}_cycles"] = cycles
        row[f"{name}_lines"] = stats.lines_read + stats.lines_written
        row[f"{name}_share"] = case.lines / cycles if cycles else None
        words += [f"{name}: {reason}"] if reason else []
        if result is not None and not _same_bits(result, case.expected):
            words.append(f"{name}: NOT EQUAL to NumPy")
    row["ratio"] = _ratio(row["compiled_cycles"], row["handwritten_cycles"])
    return {**row, "bit_exact": not words, "verdict": "; ".join(words)}


def _attempt(make: Any, machine: Machine, *arguments: Any) -> tuple[Any, Stats, str]:
    """Result and figures of a run on a machine of its own, and in words why there is none."""
    try:
        with daedal.Device.open(machine.target, config=machine.config, memory=machine.memory) as device:
            return *make(device, *arguments), ""
    except daedal.DaedalError as error:
        return None, Stats(), f"{type(error).__name__}: {error}"


def _same_bits(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))


def _ratio(cycles: int | None, others: int | None) -> float | None:
    return cycles / others if cycles and others else None


SUITE = Suite(
    name="handwritten",
    title="Hand-written programs and compiled ones, share of the lines that the operation has to move",
    columns=(
        column("operation", "workload"), column("lines", "lines", ",.0f"),
        column("by hand", "handwritten_cycles", ",d"), column("share", "handwritten_share", ".3f"),
        column("compiled", "compiled_cycles", ",d"), column("share", "compiled_share", ".3f"),
        column("compiled / by hand", "ratio", ".3f"), column("bound", "bound"), column("equal", "bit_exact"),
        column("note", "outcome"),
    ),
    run=run,
)  # fmt: skip
