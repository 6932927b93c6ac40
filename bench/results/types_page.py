"""The text of ``docs/results-types.md``: a row for each type and operation, widths beside each other."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.results.sections import one_line, rows_of
from daedal.bench.report.table import Column, Row, column, markdown
from daedal.bench.suites.element_types import NAME
from daedal.bench.workloads.typed import MODES, TYPES

HEAD = """# Types of elements

Made by `python -m bench.results` from `bench/results/types*.json`; do not edit."""

DOCUMENTS = ("types", "types-fp8", "types-narrow16", "types-widths", "types-wide")
"""Names of what is shown; PyTorch and FBGEMM are those of the first."""

TEXT = """*Simulated*, and with ~ *predicted* by [the model](measuring/model.md): cycles a row / share of the memory's
limit / useful bytes of what its pins can move, by elements of a row ([what is
measured](measuring/bench.md#types)). Useful bytes are those of rows (of integers with scale and bias), indices,
offsets, weights and results."""

HOST = """*Measured* by the wall clock, beside other work on the computer: useful bytes of PyTorch's, and of FBGEMM's
operators for inference where they have the type, ÷ what a triad moves; {processor}."""


def page(documents: Sequence[Mapping[str, Any]]) -> str:
    """A table for each machine and memory, of the landed documents, and one of the host, of the first of them."""
    rows = [row for document in documents for row in rows_of(document, NAME)]
    goals = [row["outcome"] for row in rows if row.get("outcome")]
    reached = f"{sum('reached' in goal for goal in goals)} of {len(goals)} goals, of 64 elements, are reached."
    commits = ", ".join(dict.fromkeys(document["facts"]["revision"] for document in documents))
    parts = [HEAD, f"{one_line(TEXT)} {reached} Commit: {commits}."]
    for config, memory in dict.fromkeys((row["config"], row["memory"]) for row in rows):
        found = [row for row in rows if (row["config"], row["memory"]) == (config, memory)]
        parts += [f"## {config} on {memory}", markdown(*_table(found, _figures))]
    host = rows_of(documents[0], NAME)
    first = [row for row in host if row["memory"] == host[0]["memory"]]
    parts += ["## PyTorch and FBGEMM", one_line(HOST.format(processor=documents[0]["facts"]["processor"]))]
    parts += [markdown(*_table(first, _shares))]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row], cell: Any) -> tuple[tuple[Column, ...], list[Row]]:
    widths = sorted({row["dim"] for row in rows})
    shown = (
        column("type", "type"), column("operation", "mode"), *(column(f"D = {dim}", str(dim), ">") for dim in widths),
        column("goal, D = 64", "goal"),
    )  # fmt: skip
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault((row["type"], row["mode"]), {"type": row["type"], "mode": row["mode"]})
        entry[str(row["dim"])] = cell(row)
        if row.get("outcome"):
            entry["goal"] = row["outcome"]
    order = sorted(found, key=lambda entry: (TYPES.index(entry[0]), MODES.index(entry[1])))
    return (shown if cell is _figures else shown[:-1]), [found[entry] for entry in order]


def _figures(row: Row) -> str:
    cycles, useful = f"{row['cycles_each']:.2f}", f"{row['useful_share']:.2f}"
    if row["target"] == "model":
        return f"~{cycles} / – / {useful}"
    return f"{cycles} / {row['limit_share']:.2f} / {useful}"


def _shares(row: Row) -> str:
    ours, fused = (row.get(name) for name in ("torch_share", "fbgemm_share"))
    shown = "–" if ours is None else f"{ours:.2f}"
    return shown if fused is None else f"{shown} / {fused:.2f}"
