"""The text of ``docs/results-systems.md``: tiles and plans, hot rows, and CPUs and GPUs."""

from collections.abc import Mapping
from typing import Any

from bench.results import against_table
from bench.results.sections import one_line, rows_of, section
from daedal.bench.report.table import column

HEAD = """# Systems, plans, hot rows, CPUs and GPUs

Made by `python -m bench.results` from `system.json`, `plans.json`, `hot.json` and `against.json` of
`bench/results`; do not edit.
[Systems](systems.md) and [hot rows](hot-rows.md) say what they are. The figures are of the commits {revisions}."""

TILES_TEXT = """*Simulated*, `ddr3` on a channel of `litedram-ddr3-x16` for each tile, Zipf indices: cycles of a
call in the middle of a queue, of the tile that takes longest by the plan or of one more at random, if
that takes longer. All other tiles run on the [model](measuring/model.md), whose cycles
are in *longest ÷ shortest*. *Error* is that of the plan's prediction for a call alone, of the worse
of the two tiles that are simulated. A tenth more bytes may go to copies."""

PLANS_TEXT = """*Predicted* by the [model](measuring/model.md). *Longest ÷ shortest time*: uniform, Zipf, fixed,
strided and sorted indices under one plan. The tables of the last rows are planned only: 1,000 to 10
million rows, 16 to 128 columns, bags of 1 to 80 rows; beside them is the *published* planner of
TorchRec 1.9.2 on the same tables, by its own model of CPUs. Seconds are *measured* by the wall
clock."""

HOT_TEXT = """*Counted* on the emulator, but for the lines, which are *predicted*: those of look-ups of hot rows, as a
share of all lines that a batch of 2,048 records moves, which a memory of their own would save. `ddr3`, rows of 16
binary32 elements; hot rows are chosen by every 20th record, figures are of all records, batches have 128. *Fields* are
records of 15 fields with a row each, those *of words* without fields of numbers, one of which differs in almost each
record; *bags* are of 7 rows of one table in the mean."""

TILES = (
    column("fleet", "workload"), column("tiles", "tiles"), column("cycles", "cycles", ",.0f"),
    column("× one", "speed_up", ".2f"), column("share", "share", ".3f"),
    column("error", "prediction_error", "+.1%"), column("longest ÷ shortest", "longest_by_shortest", ".3f"),
    column("more bytes", "extra_bytes", ".1%"), column("goal", "outcome"),
)  # fmt: skip

PLANS = (
    column("what", "workload"), column("tiles", "tiles"), column("figure", "figure"), column("is", "value", ".3f"),
    column("TorchRec's", "published", ".3f"), column("seconds", "seconds", ".2f"), column("goal", "outcome"),
)  # fmt: skip


HOT = (
    column("records", "workload"), column("are", "source"), column("bytes that are hot", "budget", ".0%"),
    column("look-ups", "lookups", ".1%"), column("batches", "hot_batches", ".1%"),
    column("lines saved", "lines_saved", ".1%"),
)  # fmt: skip


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of ``docs/results-systems.md``."""
    documents = [results["system"], results["plans"], results["hot"], results["against"]]
    revisions = ", ".join(dict.fromkeys(str(document["facts"]["revision"]) for document in documents))
    parts = [
        one_line_of(HEAD.format(revisions=revisions)),
        section("Tiles", TILES_TEXT, TILES, rows_of(results["system"], "system")),
        section("Plans", PLANS_TEXT, PLANS, rows_of(results["plans"], "plans")),
        section("Hot rows", HOT_TEXT, HOT, rows_of(results["hot"], "hot")),
        against_table.text(results["against"]),
    ]
    return "\n\n".join(parts) + "\n"


def one_line_of(text: str) -> str:
    """Its heading, and the paragraph behind it in a line."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{one_line(rest)}"
