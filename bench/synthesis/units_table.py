"""The landed cells and clock of each unit, as a table of a page."""

from collections.abc import Iterable

from bench.synthesis.history import RESOURCES, Row
from bench.synthesis.units import UNITS
from daedal.bench.report.table import column
from daedal.fpga.flow.reports import clock_kind

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
