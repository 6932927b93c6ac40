"""What was landed, as a table in ``docs/measurements.md``: ``python -m bench.synthesis.landed``."""

from collections.abc import Iterable
from pathlib import Path

import click

from bench.pages import insert
from bench.synthesis.history import RESOURCES, Row, read
from bench.synthesis.units import UNITS
from daedal.hw.boards.reports import clock_kind
from daedal.measure.table import column, markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"
BEGIN = "<!-- landed: made by python -m bench.synthesis.landed -->"
"""What stands between this line and the next end of figures is replaced."""

CLOCK = ("fmax_mhz", "place_seeds", "routed")

COLUMNS = (
    column("unit", "unit"), column("LUT", "lut", ",d"), column("FF", "ff", ",d"), column("BRAM", "bram", "d"),
    column("DSP", "dsp", "d"), column("MHz", "fmax_mhz", ".1f"), column("clock", "clock"),
    column("placements", "placements", "d"), column("revision", "revision"),
)  # fmt: skip


def rows(landings: Iterable[Row], config: str) -> list[Row]:
    """A row for each unit that was landed in a configuration, in the order of ``UNITS``.

    Cells and clock are each those of the last landing that has them; ``revision`` is that of the clock, or else of the
    cells.
    """
    found: dict[str, Row] = {}
    for landing in landings:
        if landing["config"] != config:
            continue
        for unit, figures in landing["units"].items():
            row = found.setdefault(unit, {"unit": unit, "revision": landing["revision"]})
            row |= {name: figures[name] for name in RESOURCES}
            if "fmax_mhz" in figures:
                row |= {name: figures[name] for name in CLOCK} | {"revision": landing["revision"]}
    for row in found.values():
        if "fmax_mhz" in row:
            row |= {"placements": len(row["place_seeds"]), "clock": clock_kind(row["routed"])}
    return [found[unit.name] for unit in UNITS if unit.name in found]


@click.command()
@click.option("--config", default="ddr3", show_default=True, help="The configuration.")
def main(config: str) -> None:
    """Put the units' landed cells and clocks into docs/measurements.md."""
    found = rows(read(), config)
    if not found:
        raise click.ClickException(f"nothing was landed for configuration {config!r}: make synth ARGS='--land' does so")
    page = insert(PAGE.read_text(encoding="utf-8"), BEGIN, markdown(COLUMNS, found))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.landed")
