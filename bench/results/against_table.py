"""The tables against CPUs and GPUs: a row for each workload, and what others say of theirs."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.results.sections import one_line, rows_of, section
from daedal.bench.report.table import Column, Row, column, markdown
from daedal.bench.suites.against import MEASURED, NAME, PREDICTED, PUBLISHED_KIND

TEXT = """Cells: millions of look-ups a second · share · least to most energy of a look-up in nJ. PyTorch and FBGEMM are
*measured* on an {processor} (one or all of them, what is quicker), while **other work took most of the computer**:
*share* is that of a triad in the same run, which had {triad}, where an idle computer of the kind has 40 GB/s. So these
two columns tell little; `daedal bench against` measures them on yours. Rows that caches have give shares above 1. Their
energy is that of DDR memory alone. Memories are *predicted* by the [model](measuring/model.md): *share* is that of what
the pins can move, in brackets are the channels, each a tile's, for which a batch of these workloads is short; the
energy is that of core and memory, from *published* figures of others."""

OTHERS = """*Published* by others, of GPUs. The energy is that of HBM2 alone, of the bytes of the rows."""

COLUMNS = (
    column("engine", "engine"), column("processor", "on"), column("M look-ups/s", "millions", ",.0f"),
    column("share of HBM", "share", ".0%"), column("nJ", "energy"), column("what, and source", "note"),
)  # fmt: skip


def text(document: Mapping[str, Any]) -> str:
    """The section's text."""
    rows = rows_of(document, NAME)
    measured = [row for row in rows if row["kind"] == MEASURED]
    predicted = [row for row in rows if row["kind"] == PREDICTED]
    others = [
        {**row, "energy": _energy(row), "millions": _millions(row)} for row in rows if row["kind"] == PUBLISHED_KIND
    ]
    names = dict.fromkeys(_heading(row) for row in (*measured, *predicted))
    cells: dict[str, dict[str, str]] = {}
    for row in (*measured, *predicted):
        cells.setdefault(row["workload"], {"name": row["workload"]})[_heading(row)] = _cell(row)
    shown: Sequence[Column] = [column("workload", "name"), *(column(name, name) for name in names)]
    triads = sorted(float(row["of"].split()[1]) for row in measured)
    said = TEXT.format(processor=measured[0]["on"], triad=f"{triads[0]:.1f} to {triads[-1]:.1f} GB/s")
    first = section("Against CPUs and GPUs", said, shown, list(cells.values()))
    return f"{first}\n\n{one_line(OTHERS)}\n\n{markdown(COLUMNS, others)}"


def _heading(row: Row) -> str:
    if row["kind"] == MEASURED:
        return str(row["engine"])
    return f"`{row['memory']}` ({row['tiles']})"


def _cell(row: Row) -> str:
    if row.get("lookups_per_s") is None:
        return str(row.get("note") or "–")
    return f"{row['lookups_per_s'] / 1e6:,.1f} · {row['share']:.2f} · {_energy(row)}"


def _energy(row: Row) -> str:
    return "–" if row.get("nj_least") is None else f"{row['nj_least']:.0f} to {row['nj_most']:.0f}"


def _millions(row: Row) -> float | None:
    rate = row.get("lookups_per_s")
    return None if rate is None else rate / 1e6
