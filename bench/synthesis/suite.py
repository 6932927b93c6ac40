"""The suite ``synthesis``: every unit, one after the other."""

from bench.options import Options
from bench.report import Row, Suite, column, say
from bench.synthesis.run import measure
from bench.synthesis.units import UNITS

TIMEOUT = 7200.0
"""Longest run of one tool on one unit, seconds; the core takes most of an hour on a slow machine."""


def run(options: Options) -> list[Row]:
    """A row for each unit that exists."""
    seeds = range(1, options.place_seeds + 1)
    rows = []
    for unit in UNITS:
        if not unit.exists(options.config) or (options.units and unit.name not in options.units):
            continue
        say(f"synthesis: {unit.name}")
        route = options.route_large or not unit.large
        row = measure(unit, options.config, seeds=seeds, route=route, timeout=TIMEOUT)
        rows.append({**row, "note": _note(row)})
    return rows


def _note(row: Row) -> str:
    """What the last column says: what went wrong or did not map as it should."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['reason']}"
    return "; ".join(row["marks"])


SUITE = Suite(
    name="synthesis",
    title="Size and clock on LFE5U-85F, grade 6",
    columns=(
        column("unit", "unit"), column("LUT", "lut", "d"), column("FF", "ff", "d"),
        column("BRAM", "bram", "d"), column("DSP", "dsp", "d"), column("MHz", "fmax_mhz", ".0f"),
        column("clock", "clock"), column("limited by", "critical_path"), column("marks", "note"),
    ),
    run=run,
    is_broken=lambda row: row["status"] == "failed",
)  # fmt: skip
