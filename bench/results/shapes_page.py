"""The text of ``docs/results-shapes.md``: a row for each shape, memories beside each other."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.results.sections import one_line
from daedal.bench.report.table import Column, Row, column, markdown
from daedal.cosim.memory_spec import IDEAL, MemorySpec

HEAD = """# Shapes that are hard

Made by `python -m bench.results` from `bench/results/shapes.json` and `bench/results/shapes-wide.json`; do not edit."""

TEXT = """*Simulated*: cycles · need / limit / bound, useful bytes of their ceiling
([columns and goals](measuring/shapes.md#columns)). The stall is that on the first memory. A goal is of every memory
unless it names one. Tables have 65,536 rows unless the name says otherwise, indices are int64."""


def page(rows: Sequence[Row], revisions: Sequence[str]) -> str:
    """Goals that are reached, the table for each configuration, and launches at several latencies.

    ``revisions`` are the commits whose sources were measured.
    """
    usual = [row for row in rows if _latency(row) in (None, MemorySpec().latency)]
    commits = ", ".join(dict.fromkeys(revisions))
    parts = [HEAD, f"{one_line(TEXT)} {_reached(rows)} Commit: {commits}."]
    for config in dict.fromkeys(row["config"] for row in usual):
        parts += [f"## {config}", markdown(*_table([row for row in usual if row["config"] == config]))]
    starts = [row for row in rows if row["batch"] == 1 and row["memory"].startswith(IDEAL) and row["pooling"] == [1, 1]]
    parts += ["## Launches of a few rows", "*Simulated* cycles by the latency of memory:", markdown(*_starts(starts))]
    return "\n\n".join(parts) + "\n"


def _reached(rows: Sequence[Row]) -> str:
    goals = [goal for row in rows for goal in row.get("goals", [])]
    return f"{sum(bool(goal['reached']) for goal in goals)} of {len(goals)} goals are reached."


def _latency(row: Row) -> int | None:
    spec = MemorySpec.parse(row["memory"])
    return spec.latency if spec.model == IDEAL else None


def _table(rows: Sequence[Row]) -> tuple[tuple[Column, ...], list[Row]]:
    memories = dict.fromkeys(row["memory"] for row in rows)
    shown = (
        column("shape", "name"),
        *(column(memory, memory, ">") for memory in memories),
        column("main stall", "stall"),
        column("goals", "goals"),
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(row["workload"], {"name": row["workload"], "stall": row["main_stall"], "goals": []})
        entry[row["memory"]] = _figures(row)
        entry["goals"] += [(text, row["memory"]) for text in row["outcome"].split("; ") if text]
    return shown, [{**entry, "goals": _goals(entry["goals"])} for entry in found.values()]


def _figures(row: Row) -> str:
    shares = " / ".join(f"{row[name]:.2f}" for name in ("need_share", "limit_share", "bound_share"))
    return f"{row['cycles']:,} · {shares}, {row['useful_share']:.2f} of {row['useful_ceiling']:.2f}"


def _goals(found: Sequence[tuple[str, str]]) -> str:
    """Each outcome once, with its memory if memories differ in it."""
    memories: dict[str, list[str]] = {}
    for text, memory in found:
        memories.setdefault(text, []).append(memory)
    of_goal: dict[str, int] = {}
    for text, _ in found:
        of_goal[text.rpartition(":")[0]] = of_goal.get(text.rpartition(":")[0], 0) + 1
    texts = [
        text if len(where) == of_goal[text.rpartition(":")[0]] and len(where) > 1 else f"{text} on {', '.join(where)}"
        for text, where in memories.items()
    ]
    return "; ".join(texts)


def _starts(rows: Sequence[Row]) -> tuple[tuple[Column, ...], list[Mapping[str, Any]]]:
    latencies = sorted({_latency(row) or 0 for row in rows})
    shown = (column("launch", "name"), *(column(f"{each} cycles", str(each), ",d") for each in latencies))
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["workload"], {"name": row["workload"]})[str(_latency(row))] = row["cycles"]
    return shown, list(found.values())
