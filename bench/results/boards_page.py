"""The text of ``docs/results-boards.md``: boards, what they would do, and the sizes of units and presets."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.results import columns
from bench.results.sections import rows_of, section
from bench.synthesis import units_table
from daedal.bench.report.table import Row

UNITS_CONFIG, LEAST_LUT = "ddr3", 1000
"""The configuration whose units are shown, and the LUTs from which a unit is."""

HEAD = """# Boards and sizes

Made by `python -m bench.results` from `bench/results/*.json` and `bench/synthesis/history.json`; do not edit.
Each section says what its figures are: *predicted* (from simulated cycles and a board's clock), *routed* or *estimated
before routing* (nextpnr's clocks), or *published* (by others)."""

BOARDS_TEXT = """Cells of the whole system, and its *routed* clock by nextpnr. *Sources* is the commit in which the
figures were landed. No board has run one of these files."""

PREDICTION_TEXT = """*Predicted*: simulated cycles at the board's *routed* clock, energy by *published* figures of
other chips ([how](boards.md#what-a-board-would-do)). Workloads that do not fit a board are left out."""

UNITS_TEXT = f"""Units of {LEAST_LUT:,} LUTs and more of `{UNITS_CONFIG}`, each alone on an LFE5U-85F of
grade 6: cells by Yosys, clock by nextpnr, with the commit of the clock's sources."""

PRESETS_TEXT = """The whole core of each preset alone, as *Units* has it; LUT6: the LUTs of six inputs that Yosys'
`synth_xilinx` makes of the same Verilog, without placing. A clock that is *estimated before routing* is no promise."""


def page(prediction: Mapping[str, Any], boards: Sequence[Mapping[str, Any]], landings: Sequence[dict[str, Any]]) -> str:
    """The page's text: the landed prediction, the boards' rows, and the landings of synthesis."""
    predicted: list[Row] = [row for row in rows_of(prediction, "prediction") if row.get("cycles")]
    units = [row for row in units_table.rows(landings, UNITS_CONFIG) if row["lut"] >= LEAST_LUT]
    parts = [
        HEAD,
        section("Boards", BOARDS_TEXT, columns.BOARDS, boards),
        section("What boards would do", PREDICTION_TEXT, columns.PREDICTION, predicted),
        section("Units", UNITS_TEXT, units_table.COLUMNS, units),
        section("Presets", PRESETS_TEXT, units_table.PRESET_COLUMNS, units_table.cores(landings)),
    ]
    return "\n\n".join(parts) + "\n"
