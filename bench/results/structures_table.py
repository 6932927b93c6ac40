"""The table of workloads over graphs, triples and blocks: memories beside each other."""

from collections.abc import Sequence
from typing import Any

from daedal.bench.report.table import Column, Row, column

TEXT = """*Simulated*: cycles · share of the memory's limit / useful bytes ÷ what the pins can move; and where the
lanes need longer than the memory, the share of the least cycles that they need. Message
passing and scores are sums along rows, whose order is the machine's own: they are equal to the specification, the
others to PyTorch."""

HOST_TEXT = """*PyTorch* is *measured*: bytes that the operation must move ÷ seconds ÷ the bandwidth of a triad in the
same run, on {processor}."""


def text(facts: Row, rows: Sequence[Row]) -> str:
    """What stands above the table."""
    measured = any(row.get("torch_share") is not None for row in rows)
    return f"{TEXT} {HOST_TEXT.format(processor=facts['processor'])}" if measured else TEXT


def table(rows: Sequence[Row]) -> tuple[tuple[Column, ...], list[Row]]:
    """A row for each workload."""
    configs = {row["memory"]: row["config"] for row in rows}
    shown = (
        column("workload", "name"),
        *(column(f"{memory}, `{config}`", memory, ">") for memory, config in configs.items()),
        *([column("PyTorch", "torch_share", ".2f")] if any(row.get("torch_share") for row in rows) else []),
        column("equal to", "equal_to"),
        column("data", "data"),
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(
            row["workload"], {"name": row["workload"], "equal_to": row["equal_to"], "data": row["data"]}
        )
        entry[row["memory"]] = _figures(row)
        if row.get("torch_share") is not None:
            entry.setdefault("torch_share", row["torch_share"])
    return shown, list(found.values())


def _figures(row: Row) -> str:
    said = f"{row['cycles']:,} · {row['limit_share']:.3f} / {row['useful_share']:.3f}"
    decides = row["lane_cycles"] and row["lane_cycles"] > row["limit_cycles"]
    return f"{said}, lanes {row['lane_share']:.3f}" if decides else said
