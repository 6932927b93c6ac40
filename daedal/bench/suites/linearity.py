"""The suite ``linearity``: whether a row costs the same in a short launch and in a long one."""

from collections.abc import Iterator
from dataclasses import replace

from daedal.bench.report.table import column
from daedal.bench.suite import Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.suites.single_layers import figures_of
from daedal.bench.workloads.layers import POOLING, Workload

LOOKUPS = (10_240, 32_000, 102_400, 320_000, 1_024_000)
"""Rows gathered, whole bags of POOLING."""

QUICK = (64, 128, 256)

TOLERANCE = 0.02
"""Most by which cycles per row may differ from those of the longest launch."""

WORKLOAD = Workload("sum, D = 64", "sum", 64)


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each length of a launch, once all were run."""
    base = replace(WORKLOAD, rows=256, dim=16) if order.quick else WORKLOAD
    with one_thread():
        for machine in machines_of(order):
            rows = []
            for lookups in QUICK if order.quick else LOOKUPS:
                say(f"linearity: {lookups} rows on {machine.memory}")
                figures = figures_of(replace(base, bags=lookups // POOLING), machine)
                rows.append({"workload": WORKLOAD.name, **machine.facts(), **figures, "goal": TOLERANCE})
            yield from compare(rows)


def compare(rows: list[Row]) -> list[Row]:
    """Cycles per row once the start-up is taken off, which the two shortest launches give by a straight line."""
    if not all(row["cycles"] for row in rows):
        return [row | {"outcome": f"{TOLERANCE}: not measured"} for row in rows]
    first, second = rows[:2]
    slope = (second["cycles"] - first["cycles"]) / (second["rows"] - first["rows"])
    start_up = first["cycles"] - slope * first["rows"]
    last = (rows[-1]["cycles"] - start_up) / rows[-1]["rows"]
    compared = []
    for row in rows:
        per_row = (row["cycles"] - start_up) / row["rows"]
        deviation = per_row / last - 1
        reached = abs(deviation) <= TOLERANCE
        compared.append(
            row
            | {
                "start_up": round(start_up), "cycles_per_row": per_row, "deviation": deviation,
                "outcome": f"within {TOLERANCE}: {'reached' if reached else 'missed'}",
            }
        )  # fmt: skip
    return compared


SUITE = Suite(
    name="linearity",
    title="Cycles per row by the length of a launch, sum, D = 64",
    columns=(
        column("rows", "rows", ",d"), column("cycles", "cycles", ",d"), column("start-up", "start_up", ",d"),
        column("cycles per row", "cycles_per_row", ".3f"), column("deviation", "deviation", "+.2%"),
        column("share", "line_share", ".3f"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
