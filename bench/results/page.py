"""The text of ``docs/results.md``, made of the landed results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.results import columns, peers, structures_table
from bench.results.files import DRAMS, MEMORIES, STRUCTURES
from bench.results.sections import one_line, rows_of, section
from daedal.bench.report.table import Column, column, markdown
from daedal.bench.suites import sweep

Row = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Any]]

README_DIM = 64
"""Columns of the README's layers."""

WHOLE_FROM = 100
"""Wall-clock figures from here on are written as whole numbers."""

WIDTHS = (4, 16, 64, 256, 1024)
"""Bytes of the rows that the sweep's tables have."""

HEAD = """# Results

Made by `python -m bench.results` from `bench/results/*.json`; do not edit. [The bench](measuring/bench.md) says how
each figure is taken and what each column is. [Shapes that are hard](results-shapes.md), [types of
elements](results-types.md), [models of other people](results-models.md), [systems, plans, and CPUs and
GPUs](results-systems.md) and [boards and sizes](results-boards.md) have pages of their own.

Each section says what its figures are: *measured* (by the wall clock), *simulated* (cycles of the RTL under Verilator),
*predicted* (from simulated cycles and a board's clock), *routed* or *estimated before routing* (nextpnr's clocks), or
*published* (by others). Every simulated result was equal to PyTorch's on the CPU, bit for bit, unless its section says
to what else."""

LAYERS_TEXT = """*Simulated*, memory `ideal`: one line a cycle, 100 cycles of latency. One table of 65,536 rows of
binary32, 128 bags of 32 rows, int32 indices, uniformly distributed."""

WORKLOADS_TEXT = """*Simulated*: cycles · share of the memory's limit / share of what its pins can move / useful bytes
(rows, indices, offsets, weights, results) ÷ what the pins can move. Indices are uniformly distributed, or the
workload's own; the files have those with Zipf's distribution."""

LEVELS_TEXT = """*Simulated* cycles, memory `ideal`, and how many times faster each step is. In brackets are *published*
factors of the same steps on other machines and workloads."""

ORACLE_TEXT = """*Simulated*: share of what the pins move, in %, for reads of uniform rows without dependences. In
brackets is the *published* figure of an earlier study of the same controller."""

SWEEP_TEXT = """*Simulated*: bytes of looked-up rows ÷ what the memory's pins can move / share of the memory's limit.
int64 indices, which are not counted here; the memories are those of *Workloads*."""


def page(results: Results) -> str:
    """The page's text, of landed documents by name."""
    layers, host = results["layers"], results["host"]
    measured = f"*Measured* by the wall clock, one process: {host['facts']['processor']}."
    peer = peers.read()
    parts = [
        HEAD,
        section("Layers", LAYERS_TEXT, columns.LAYERS, rows_of(layers, "layers")),
        section("Workloads", WORKLOADS_TEXT, *_by_memory(workload_rows(results))),
        "![The workloads' shares of the memory's limit](limit.svg)",
        _structures(results),
        _sweep([*rows_of(results["sweep"], sweep.NAME), *rows_of(results["sweep-wide"], sweep.NAME)]),
        section("Beside another engine", peers.text(peer), *peers.table(peer, rows_of(results["sweep"], sweep.NAME))),
        section(
            "Programs by hand and compiled",
            "*Simulated*, memory `ideal`. Rows fill their lines, so *share* is that of useful bytes too.",
            columns.HANDWRITTEN,
            rows_of(layers, "handwritten"),
        ),
        section("Optimisation levels", LEVELS_TEXT, columns.LEVELS, rows_of(layers, "levels")),
        "![What each level gains, factors on a logarithmic scale](levels.svg)",
        section(
            "Launches that follow each other",
            "*Simulated*, memory `ideal`, four launches.",
            columns.LAUNCHES,
            rows_of(layers, "launches"),
        ),
        _linearity(rows_of(layers, "linearity")),
        section("Simulators and host", measured, columns.HOST, _wall_clock(host)),
        section("The limit itself", ORACLE_TEXT, *_oracle(results["oracle"])),
        _settings(results),
    ]
    return "\n\n".join(parts) + "\n"


def readme_table(results: Results) -> str:
    """The README's table: the layers that have a goal, and rows of 64 elements."""
    shown = (
        columns.LAYERS[0],
        column("cycles, simulated", "cycles", ",d"),
        column("share of one line per cycle", "line_share", ".3f"),
        column("of useful bytes", "useful_share", ".3f"),
    )
    rows = [row for row in rows_of(results["layers"], "layers") if row.get("goal") and row["dim"] == README_DIM]
    return markdown(shown, rows)


def workload_rows(results: Results) -> list[Row]:
    """Rows of all workloads, of the first placement."""
    documents = (results["workloads"], results["workloads-wide"])
    rows = [row for document in documents for suite in document["results"].values() for row in suite]
    return [row for row in rows if row["placement"] == 0]


def _structures(results: Results) -> str:
    """Workloads over graphs, triples and blocks."""
    documents = (results["structures"], results["structures-wide"])
    rows = [row for name in STRUCTURES for document in documents for row in rows_of(document, name)]
    said = structures_table.text(documents[0]["facts"], rows)
    return section("Graphs, triples and blocks", said, *structures_table.table(rows))


def _wall_clock(document: Mapping[str, Any]) -> list[Row]:
    """Rows of both suites, with as many digits as their figures are worth."""
    rows = [*rows_of(document, "speed"), *rows_of(document, "overhead")]
    return [{**row, **{name: _short(row[name]) for name in ("value", "least", "most")}} for row in rows]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= WHOLE_FROM else f"{value:g}"


def _pivot(rows: Sequence[Row], name: Callable[[Row], str], cell: Callable[[Row], str]) -> list[dict[str, str]]:
    """A row for each name, with a cell for each memory."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(name(row), {"name": name(row)})[row["memory"]] = cell(row)
    return list(found.values())


def _by_memory(rows: Sequence[Row]) -> tuple[tuple[Column, ...], list[dict[str, str]]]:
    """Workloads against memories."""
    rows = [row for row in rows if row["distribution"] != "zipf"]
    configs = {row["memory"]: row["config"] for row in rows}
    shown = (
        column("workload", "name"),
        *(column(f"{memory}, `{config}`", memory, ">") for memory, config in configs.items()),
    )
    return shown, _pivot(rows, lambda row: str(row["workload"]), _of_limit)


def _of_limit(row: Row) -> str:
    return f"{row['cycles']:,} · {row['limit_share']:.3f} / {row['line_share']:.3f} / {row['useful_share']:.3f}"


def _linearity(rows: Sequence[Row]) -> str:
    """The shortest and the longest launch in a sentence."""
    found = [f"{row['cycles_per_row']:.3f} cycles in a launch of {row['rows']:,} rows" for row in (rows[0], rows[-1])]
    return f"## Cost by length\n\n*Simulated*, memory `ideal`, sums, D = 64: a row costs {' and '.join(found)}."


def _oracle(document: Mapping[str, Any]) -> tuple[tuple[Column, ...], list[dict[str, str]]]:
    shown = (column("row bytes", "name"), *(column(memory, memory, ">") for memory in DRAMS))
    rows = _pivot(rows_of(document, "oracle"), lambda row: str(row["row_bytes"]), _of_reference)
    return shown, rows


def _of_reference(row: Row) -> str:
    return f"{row['share']:.1f} ({row['reference']:.1f})"


def _sweep(rows: Sequence[Row]) -> str:
    """A table for each operation: memories and distributions beside each other."""
    kinds = [f"{memory}, {distribution}" for memory in MEMORIES for distribution in sweep.DISTRIBUTIONS]
    shown = (
        column("row bytes", "width", ">"),
        *(column(kind.removeprefix("litedram-"), kind, ">") for kind in kinds),
    )
    parts = [f"## Widths of rows\n\n{one_line(SWEEP_TEXT)}"]
    for operation in sweep.OPERATIONS:
        table: dict[int, dict[str, str]] = {width: {"width": str(width)} for width in WIDTHS}
        for row in rows:
            if row["workload"] == operation and row["placement"] == 0 and row["row_bytes"] in table:
                kind = f"{row['memory']}, {row['distribution']}"
                table[row["row_bytes"]][kind] = f"{row['row_share']:.3f} / {row['limit_share']:.3f}"
        parts += ["Gathers:" if operation == "gather" else "Sums of 32 rows:", markdown(shown, list(table.values()))]
    return "\n\n".join(parts)


def _settings(results: Results) -> str:
    """What the figures depend on."""
    facts = {name: document["facts"] for name, document in results.items() if "revision" in document["facts"]}
    configs = {name: number for each in facts.values() for name, number in each["configs"].items()}
    memories = dict.fromkeys(text for each in facts.values() for text in each["memories"].values())
    first = next(iter(facts.values()))
    said = [
        "Configurations " + ", ".join(f"`{name}` ({number})" for name, number in configs.items()),
        f"data seed {first['seed']}, placement 0",
        ", ".join(f"{name} {number}" for name, number in first["tools"].items()),
        "commits: " + ", ".join(f"{name} {each['revision']}" for name, each in facts.items()),
    ]
    listed = "\n".join(f"* {text}." for text in memories)
    return f"## Settings\n\n{'; '.join(said)}.\n\n{listed}"
