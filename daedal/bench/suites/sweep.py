"""The suite ``sweep``: gathers and sums of rows of 4 to 1,024 bytes."""

from collections.abc import Iterator
from typing import Any

from daedal.bench.report.table import COLUMNS, column
from daedal.bench.suite import Order, Say, Suite
from daedal.bench.suites.model_runs import measured
from daedal.bench.workloads.models import ROWS, Workload
from daedal.hw.isa.elements import BINARY32

NAME = "sweep"

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Bytes of a row."""

POOLING = 32
"""Rows of a bag."""

MOST, LEAST, BYTES = 16_384, 2_048, 1 << 20
"""Lookups: as many as make up so many bytes of rows, within these bounds."""

OPERATIONS = ("gather", "sum")
DISTRIBUTIONS = ("uniform", "zipf")


def workloads() -> Iterator[Workload]:
    """One for each operation and width."""
    for operation in OPERATIONS:
        for width in WIDTHS:
            lookups = min(MOST, max(LEAST, BYTES // width))
            what, dim = f"rows of {width} bytes", width // BINARY32.bytes
            if operation == "gather":
                yield Workload("gather", what, "gather", (ROWS,), dim, lookups)
            else:
                yield Workload("sum", what, "sum", (ROWS,), dim, lookups // POOLING, (POOLING, POOLING))


def run(order: Order, say: Say) -> Iterator[dict[str, Any]]:
    """A row for each operation, width, distribution and machine."""
    return measured(NAME, workloads(), order, say, host=False)


_LEFT = [entry for entry in COLUMNS if entry.key not in ("data", "torch_share", "fbgemm_share")]

SUITE = Suite(NAME, "Widths of rows", (_LEFT[0], column("row bytes", "row_bytes", "d"), *_LEFT[1:]), run)
