"""``python -m bench.results``: make the page of results anew; with ``--measure``, run the bench before."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.results import (
    boards_page,
    files,
    levels_picture,
    limit_picture,
    models_page,
    page,
    shapes_page,
    systems_page,
    training_page,
    types_page,
)
from bench.results.sections import rows_of
from bench.synthesis import history
from daedal.base.boundary import one_line
from daedal.cli.bench import command as bench

ROOT = Path(__file__).resolve().parents[2]
DOCS, README = ROOT / "docs", ROOT / "README.md"

BEGIN, END = "<!-- layers: made by python -m bench.results -->", "<!-- end of figures -->"
"""What stands between these lines of the README is replaced."""


def insert(text: str, table: str) -> str:
    """The README's text with this table between its marks; ValueError if it has none."""
    start = text.find(BEGIN)
    end = text.find(END, start)
    if start < 0 or end < 0:
        raise ValueError(f"README.md must have the lines {BEGIN!r} and, behind it, {END!r}")
    return f"{text[: start + len(BEGIN)]}\n{table}\n{text[end:]}"


def pages() -> dict[Path, str]:
    """Each file that shows results, and what is to be in it."""
    found: dict[str, dict[str, Any]] = files.results()
    return {
        DOCS / "results.md": page.page(found),
        DOCS / "results-shapes.md": _shapes(found),
        DOCS / "results-systems.md": systems_page.page(found),
        DOCS / "results-models.md": models_page.page(found["models"]),
        DOCS / "results-training.md": training_page.page(found["training"]),
        DOCS / "results-types.md": types_page.page([found[name] for name in types_page.DOCUMENTS]),
        DOCS / "results-boards.md": boards_page.page(found["prediction"], files.boards(), history.read()),
        DOCS / "levels.svg": levels_picture.picture(found["layers"]["results"]["levels"]),
        DOCS / "limit.svg": limit_picture.picture(page.workload_rows(found)),
        README: insert(README.read_text(encoding="utf-8"), page.readme_table(found)),
    }


def _shapes(found: dict[str, dict[str, Any]]) -> str:
    documents = [found["shapes"], found["shapes-wide"]]
    rows = [row for document in documents for row in rows_of(document, "shapes")]
    return shapes_page.page(rows, [document["facts"]["revision"] for document in documents])


def measure(name: str) -> None:
    """Run the bench for one file; ClickException if a result is not PyTorch's, and then the file has it."""
    path = files.path_of(name)
    status = bench.main([*files.RUNS[name], "--json", str(path)], prog_name="daedal bench", standalone_mode=False)
    if status:
        raise click.ClickException(f"the bench failed: see {path}")
    files.land(name, _revision())


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--measure", "measured", multiple=True, type=click.Choice(list(files.RUNS)),
              help="Run the bench for this file of bench/results first; repeatable.")  # fmt: skip
@click.option("--board", "reports", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Land the figures of this report.json of `daedal bitstream` first; repeatable.")  # fmt: skip
def main(measured: Sequence[str], reports: Sequence[Path]) -> None:
    """Make docs/results*.md, their pictures and the README's table from the files in bench/results."""
    for name in measured:
        measure(name)
    for report in reports:
        files.land_board(report, _revision())
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        click.echo(path.relative_to(ROOT))


def _revision() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


if __name__ == "__main__":
    with one_line("python -m bench.results"):
        main(prog_name="python -m bench.results")
