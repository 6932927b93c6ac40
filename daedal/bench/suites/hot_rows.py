"""The suite ``hot``: batches that read only the rows that a sample reads most, and the lines that these rows are."""

from collections.abc import Iterator
from math import ceil

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.workloads.records import ROW_BYTES, Records, all_records, inputs_of
from daedal.bench.workloads.runner import same_bits

BUDGETS = (0.01, 0.05, 0.2)
"""Bytes of hot rows, as a share of the tables' bytes."""

SAMPLED = 0.05
"""Share of the records, every 20th, that hot rows are chosen by; figures are of all records."""

BATCH = 128

MEASURED = 2048
"""Records whose lines are counted."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each kind of records and budget."""
    with one_thread():
        for machine in machines_of(order):
            for records in all_records(order.data, order.seed, quick=order.quick):
                for budget in BUDGETS:
                    say(f"hot rows: {records.name}, {budget:.0%} of the bytes")
                    yield measure(records, budget, machine)


def measure(records: Records, budget: float, machine: Machine) -> Row:
    """Choose hot rows by a sample, sort all records into batches, and count lines of some on the emulator."""
    model = records.model(machine.seed)
    some = inputs_of([records[sample] for sample in range(min(MEASURED, len(records)))])
    expected = model(*some)
    sample = [inputs_of([records[number] for number in range(0, len(records), int(1 / SAMPLED))])]
    total = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    found = daedal.hot_rows(model, sample, bytes=max(int(total * budget), ROW_BYTES))
    batches = found.batches(records, BATCH, collate_fn=inputs_of)
    with daedal.Device.open("emulator", config=machine.config) as device:
        executable = daedal.compile(model, some, device=device)
        equal = all(same_bits(got, wanted) for got, wanted in zip(executable(*some), expected, strict=True))
        lines = executable.stats.lines_read + executable.stats.lines_written
    hot, lookups = found.lookups(*some)
    row_lines = ROW_BYTES / machine.config.bus_bytes
    return {
        "workload": records.name, "source": records.source, "config": machine.config.name, "target": "emulator",
        "seed": machine.seed, "records": len(records), "bytes": found.hot_bytes, "budget": budget,
        "lookups": hot / lookups, "hot_batches": batches.hot_share, "batches": len(batches),
        "lines_saved": hot * ceil(row_lines) / lines, "bit_exact": equal, "verdict": None if equal else NOT_EQUAL,
    }  # fmt: skip


NAME = "hot"

SUITE = Suite(
    name=NAME,
    title="Hot rows: batches that read no others, and the lines that they are",
    columns=(
        column("records", "workload"), column("of", "source"), column("bytes", "budget", ".0%"),
        column("look-ups that are hot", "lookups", ".1%"), column("batches that are hot", "hot_batches", ".1%"),
        column("lines saved", "lines_saved", ".1%"), column("equal", "bit_exact"),
    ),
    run=run,
)  # fmt: skip
