"""Puts the figures of result files into ``docs/measurements.md``: ``python -m bench.figures FILE …``.

Those of the suite ``levels`` are a picture too, ``docs/levels.svg``.
"""

import json
from pathlib import Path
from typing import Any

import click

from bench import picture
from bench.__main__ import SUITES
from bench.report import Row, Suite
from daedal.measure.table import markdown

BEGIN, END = "<!-- figures: made by python -m bench.figures -->", "<!-- end of figures -->"
"""What stands between these lines is replaced."""

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
PICTURE = PAGE.with_name("levels.svg")


def table(suite: Suite, rows: list[Row]) -> str:
    """The rows as a table in Markdown, with the columns that the suite has on the screen."""
    return markdown(suite.columns, rows)


def section(document: dict[str, Any]) -> str:
    """All suites of one result file, with what the figures depend on."""
    facts = document["facts"]
    tools = ", ".join(f"{name} {number}" for name, number in facts["tools"].items())
    about = (
        f"Configuration {facts['config']} ({facts['config_hash']}), memory `{facts['memory']}`, data seed "
        f"{facts['data_seed']}, placement seeds {facts['placement_seeds']}; {facts['processor']}; {tools}."
    )
    parts = [f"**{SUITES[name].title}**\n\n{table(SUITES[name], rows)}" for name, rows in document["results"].items()]
    if "levels" in document["results"]:
        parts.append(f"![What each level gains, factors on a logarithmic scale]({PICTURE.name})")
    return "\n\n".join([*parts, about])


def insert(page: str, text: str) -> str:
    """``page`` with ``text`` between its marks; ValueError if it has none."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page must have the lines {BEGIN!r} and {END!r}")
    return page[: page.index(BEGIN) + len(BEGIN)] + f"\n{text}\n" + page[page.index(END) :]


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
def main(files: tuple[Path, ...]) -> None:
    """Put the figures of these result FILES into the page, in this order."""
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    if any(document["facts"]["quick"] for document in documents):
        raise click.UsageError("figures of a run with --quick mean nothing: run the bench without it")
    for document in documents:
        if "levels" in document["results"]:
            PICTURE.write_text(picture.picture(document["results"]["levels"]), encoding="utf-8")
    text = "\n\n".join(section(document) for document in documents)
    PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m bench.figures")
