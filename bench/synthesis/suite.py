"""Every unit of a configuration, one after the other."""

from collections.abc import Collection

import click

from bench.synthesis.run import Row, measure
from bench.synthesis.units import UNITS
from daedal.bench.report.table import column
from daedal.hw.config.core import Config

TIMEOUT = 7200.0
"""Longest run of one tool on one unit, seconds; the core takes most of an hour on a slow machine."""

TITLE = "Size and clock on LFE5U-85F, grade 6"

COLUMNS = (
    column("unit", "unit"), column("LUT", "lut", "d"), column("LUT6", "lut6", "d"), column("FF", "ff", "d"),
    column("BRAM", "bram", "d"), column("DSP", "dsp", "d"), column("MHz", "fmax_mhz", ".0f"),
    column("clock", "clock"), column("limited by", "critical_path"), column("marks", "note"),
)  # fmt: skip


def measure_units(config: Config, units: Collection[str] = (), *, place_seeds: int = 0, route_large: bool = False,
                  with_lut6: bool = False) -> list[Row]:  # fmt: skip
    """A row for each of these units (none: all) that the configuration has, with progress on the standard error.

    ``place_seeds``: placements of each unit, of which the median clock counts; 0 for no clocks. ``route_large``: the
    large units are routed too, which takes up to an hour for each placement. ``with_lut6``: also what a part with
    LUTs of six inputs takes.
    """
    rows = []
    for unit in UNITS:
        if not unit.exists(config) or (units and unit.name not in units):
            continue
        click.echo(f"synthesis: {unit.name}", err=True)
        row = measure(unit, config, seeds=range(1, place_seeds + 1), route=route_large or not unit.large,
                      timeout=TIMEOUT, with_lut6=with_lut6)  # fmt: skip
        rows.append({**row, "note": _note(row)})
    return rows


def is_broken(row: Row) -> bool:
    """Whether the tools failed; a unit that is missing is no error."""
    return bool(row["status"] == "failed")


def _note(row: Row) -> str:
    """What the last column says: what went wrong or did not map as it should."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['reason']}"
    return "; ".join(row["marks"])
