"""Puts results of ``daedal bench`` into the pages: ``python -m bench.pages [FILE …]``.

The suite ``sweep`` goes into ``README.md``, workloads and the suite ``oracle`` into ``docs/bench.md``, with pictures
of the first placement. What was landed of the units (``make synth``) goes into ``docs/measurements.md`` in any case.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from bench.synthesis import history, units_table
from daedal.measure import sweep
from daedal.measure.document import load
from daedal.measure.pictures import write_pictures
from daedal.measure.suites import ORACLE, SWEEP, columns_of
from daedal.measure.table import markdown, with_means

ROOT = Path(__file__).resolve().parents[1]
README, PAGE, PICTURES = ROOT / "README.md", ROOT / "docs" / "bench.md", ROOT / "docs" / "bench"
MEASUREMENTS = ROOT / "docs" / "measurements.md"

END = "<!-- end of figures -->"
SWEEP_BEGIN = "<!-- sweep: made by python -m bench.pages -->"
FIGURES_BEGIN = "<!-- figures: made by python -m bench.pages -->"
UNITS_BEGIN = "<!-- units: made by python -m bench.pages -->"
"""What stands between a beginning and the next END is replaced."""

UNITS_CONFIG = "ddr3"
"""The configuration whose units are shown."""


def insert(page: str, begin: str, text: str) -> str:
    """``page`` with ``text`` between its marks; ValueError if it has none."""
    start = page.find(begin)
    end = page.find(END, start)
    if start < 0 or end < 0:
        raise ValueError(f"the page must have the lines {begin!r} and, behind it, {END!r}")
    return f"{page[: start + len(begin)]}\n{text}\n{page[end:]}"


def about(document: dict[str, Any]) -> str:
    """What the figures of a document depend on."""
    facts, results = document["facts"], document["results"]
    found = [row["settings"] for row in results.get(ORACLE, []) if "settings" in row]
    return described(facts, [*found, *([] if set(results) == {ORACLE} else facts["memories"].values())])


def described(facts: dict[str, Any], settings: Iterable[str] | None = None) -> str:
    """What figures depend on, as sentences; with these ``settings`` of memories instead of the facts' own."""
    configs = ", ".join(f"{name} ({number})" for name, number in facts["configs"].items())
    tools = ", ".join(f"{name} {number}" for name, number in facts["tools"].items())
    memories = dict.fromkeys(facts["memories"].values() if settings is None else settings)
    placements = "placement 0" if facts["placements"] == 1 else f"placements 0 to {facts['placements'] - 1}"
    return (
        f"Configurations {configs}; data seed {facts['seed']}, {placements}; {facts['processor']}; {tools}."
        + "".join(f"\n\nMemory {text}." for text in memories)
    )


def figures(document: dict[str, Any]) -> str:
    """Tables of the workloads and of the oracle; empty if the result has neither."""
    results = document["results"]
    workloads = [row for suite, rows in results.items() if suite not in (SWEEP, ORACLE) for row in rows]
    parts = []
    if workloads:
        parts.append(f"**Workloads**\n\n{markdown(columns_of('rm1'), with_means(workloads))}")
    if results.get(ORACLE):
        parts.append(
            f"**The limit on traffic whose best figure is known**\n\n{markdown(columns_of(ORACLE), results[ORACLE])}"
        )
    return "\n\n".join([*parts, about(document)]) if parts else ""


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(files: tuple[Path, ...]) -> None:
    """Put the landed units, and the results in these FILES in this order, into the pages."""
    documents = [load(file) for file in files]
    if any(document["facts"]["quick"] for document in documents):
        raise click.UsageError("figures of a run with --quick mean nothing: run the bench without it")
    landed = markdown(units_table.COLUMNS, units_table.rows(history.read(), UNITS_CONFIG))
    _put(MEASUREMENTS, UNITS_BEGIN, landed)
    swept = [document for document in documents if document["results"].get(SWEEP)]
    if swept:
        text = "\n\n".join(f"{sweep.table(document['results'][SWEEP])}\n\n{about(document)}" for document in swept)
        _put(README, SWEEP_BEGIN, text)
    texts = [text for document in documents if (text := figures(document))]
    rows = [row for document in documents for suite, found in document["results"].items()
            if suite not in (SWEEP, ORACLE) for row in found if row["placement"] == 0]  # fmt: skip
    if rows:
        write_pictures(PICTURES, rows)
        shown = (("roofline.svg", "Operations per cycle by operations per byte"), ("stalls.svg", "Stalled cycles"))
        texts += [f"![{what}]({PICTURES.name}/{name})" for name, what in shown]
    if texts:
        _put(PAGE, FIGURES_BEGIN, "\n\n".join(texts))


def _put(page: Path, begin: str, text: str) -> None:
    page.write_text(insert(page.read_text(encoding="utf-8"), begin, text), encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m bench.pages")
