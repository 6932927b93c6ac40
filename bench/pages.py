"""Puts results of ``daedal bench`` into the pages: ``python -m bench.pages [FILE …]``.

The suite ``sweep`` goes into ``README.md``, workloads and the suite ``oracle`` into ``docs/bench.md``, with pictures
of the first placement, the detailed suites into ``docs/measurements.md``, with a picture of ``levels``, and
``prediction`` into ``docs/boards.md``. What was landed of the units (``make synth``) is put there in any case.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from bench import levels_picture
from bench.synthesis import history, units_table
from daedal.base.boundary import one_line
from daedal.bench import registry
from daedal.bench.report.document import load
from daedal.bench.report.pictures import write_pictures
from daedal.bench.report.table import markdown, with_means
from daedal.bench.suite import Suite
from daedal.bench.suites import calibration, levels, model_runs, prediction, sweep

ROOT = Path(__file__).resolve().parents[1]
README, PAGE, PICTURES = ROOT / "README.md", ROOT / "docs" / "bench.md", ROOT / "docs" / "bench"
MEASUREMENTS, BOARDS = ROOT / "docs" / "measurements.md", ROOT / "docs" / "boards.md"
LEVELS, LEVELS_CAPTION = ROOT / "docs" / "levels.svg", "What each level gains, factors on a logarithmic scale"

END = "<!-- end of figures -->"
SWEEP_BEGIN = "<!-- sweep: made by python -m bench.pages -->"
FIGURES_BEGIN = "<!-- figures: made by python -m bench.pages -->"
PREDICTION_BEGIN = "<!-- prediction: made by python -m bench.pages -->"
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
    found = [row["settings"] for row in results.get(calibration.NAME, []) if "settings" in row]
    return described(facts, [*found, *([] if set(results) == {calibration.NAME} else facts["memories"].values())])


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


def figures(document: dict[str, Any], suites: Iterable[Suite]) -> str:
    """A table for those of these suites that the result has, one for all of a title; empty if it has none."""
    results = document["results"]
    found = [suite for suite in suites if results.get(suite.name)]
    parts = []
    for title, columns in {suite.title: suite.columns for suite in found}.items():
        rows = [row for suite in found if suite.title == title for row in results[suite.name]]
        parts.append(f"**{title}**\n\n{markdown(columns, with_means(rows))}")
        parts += [f"![{LEVELS_CAPTION}]({LEVELS.name})"] if title == levels.SUITE.title else []
    return "\n\n".join([*parts, about(document)]) if parts else ""


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(files: tuple[Path, ...]) -> None:
    """Put the landed units, and the results in these FILES in this order, into the pages."""
    documents = [load(file) for file in files]
    if any(document["facts"]["quick"] for document in documents):
        raise click.UsageError("figures of a run with --quick mean nothing: run the bench without it")
    _put(MEASUREMENTS, UNITS_BEGIN, markdown(units_table.COLUMNS, units_table.rows(history.read(), UNITS_CONFIG)))
    swept = [document for document in documents if document["results"].get(sweep.NAME)]
    if swept:
        tables = (f"{sweep.table(document['results'][sweep.NAME])}\n\n{about(document)}" for document in swept)
        _put(README, SWEEP_BEGIN, "\n\n".join(tables))
    workloads = (*model_runs.SUITES, calibration.SUITE)
    texts = [text for document in documents if (text := figures(document, workloads))]
    texts += _draw(documents)
    pages = {
        (PAGE, FIGURES_BEGIN): texts,
        (MEASUREMENTS, FIGURES_BEGIN): [text for each in documents if (text := figures(each, registry.DETAILS))],
        (BOARDS, PREDICTION_BEGIN): [
            markdown(prediction.COLUMNS, found) for each in documents if (found := each["results"].get("prediction"))
        ],
    }
    for (page, begin), parts in pages.items():
        if parts:
            _put(page, begin, "\n\n".join(parts))


def _draw(documents: list[dict[str, Any]]) -> list[str]:
    """Draw the pictures of all results; the text that shows those of the workloads."""
    levelled = [row for document in documents for row in document["results"].get(levels.SUITE.name, [])]
    if levelled:
        LEVELS.write_text(levels_picture.picture(levelled), encoding="utf-8")
    names = {suite.name for suite in model_runs.SUITES}
    rows = [row for document in documents for suite, found in document["results"].items() if suite in names
            for row in found if row["placement"] == 0]  # fmt: skip
    if not rows:
        return []
    write_pictures(PICTURES, rows)
    shown = (("roofline.svg", "Operations per cycle by operations per byte"), ("stalls.svg", "Stalled cycles"))
    return [f"![{what}]({PICTURES.name}/{name})" for name, what in shown]


def _put(page: Path, begin: str, text: str) -> None:
    page.write_text(insert(page.read_text(encoding="utf-8"), begin, text), encoding="utf-8")


if __name__ == "__main__":
    with one_line("python -m bench.pages"):
        main(prog_name="python -m bench.pages")
