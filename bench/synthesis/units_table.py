"""The landed cells and clock of each unit, as a table of a page."""

from collections.abc import Iterable, Sequence

from bench.synthesis.history import RESOURCES, Row
from bench.synthesis.units import UNITS
from daedal.bench.report.table import column
from daedal.fpga.flow.reports import clock_kind
from daedal.hw.config.core import PRESETS

LUT6 = "lut6"
CLOCK = ("fmax_mhz", "place_seeds", "routed")

COLUMNS = (
    column("unit", "unit"), column("LUT", "lut", ",d"), column("FF", "ff", ",d"), column("BRAM", "bram", "d"),
    column("DSP", "dsp", "d"), column("MHz", "fmax_mhz", ".1f"), column("clock", "clock"),
    column("placements", "placements", "d"), column("revision", "revision"),
)  # fmt: skip


PRESET_COLUMNS = (
    column("preset", "config"), column("LUT", "lut", ",d"), column("FF", "ff", ",d"), column("BRAM", "bram", "d"),
    column("DSP", "dsp", "d"), column("LUT6", LUT6, ",d"), column("MHz", "fmax_mhz", ".1f"), column("clock", "clock"),
    column("revision", "revision"),
)  # fmt: skip


def cores(landings: Sequence[Row]) -> list[Row]:
    """A row for the core of each preset that was landed."""
    found = ((name, row) for name in PRESETS for row in rows(landings, name) if row["unit"] == "core")
    return [{**row, "config": name} for name, row in found]


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
            row |= {name: figures[name] for name in (*RESOURCES, LUT6) if name in figures}
            if "fmax_mhz" in figures:
                row |= {name: figures[name] for name in CLOCK} | {"revision": landing["revision"]}
    for row in found.values():
        if "fmax_mhz" in row:
            row |= {"placements": len(row["place_seeds"]), "clock": clock_kind(row["routed"])}
    return [found[unit.name] for unit in UNITS if unit.name in found]
