"""How small a core can get: cuts for iCEBreaker, as a table in ``docs/boards.md``: ``python -m bench.synthesis.cuts``.

Each is the board's whole system through the board's own synthesis; nothing is placed.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench.pages import insert
from bench.report import say
from daedal.hw.boards import find_board
from daedal.hw.boards.bitstream import synthesise
from daedal.hw.boards.flows import NETLIST
from daedal.hw.boards.netlist import top_module
from daedal.hw.boards.reports import SYSTEM, unit_of
from daedal.hw.config import Config
from daedal.measure.table import column, markdown

BOARD = "icebreaker"
PART = "5,280 logic cells (each a LUT, a carry and a flip-flop), 30 block RAMs and 8 multipliers"
"""What an iCE40UP5K has."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "boards.md"
BEGIN = "<!-- cuts: made by python -m bench.synthesis.cuts -->"
"""What stands between this line and the next end of figures is replaced."""

Row = dict[str, Any]

COLUMNS = (
    column("core", "what"), column("LUT, core", "core_lut", ",d"), column("FF, core", "core_ff", ",d"),
    column("LUT, all", "lut", ",d"), column("FF, all", "ff", ",d"), column("BRAM", "bram", "d"),
    column("DSP", "dsp", "d"), column("LUT of the largest units", "largest"), column("s", "seconds", ".0f"),
)  # fmt: skip

PER_LEVEL = ("sequential_loads", "random_loads", "alus", "shifters", "serial", "contexts")
"""Fields of a configuration that have an entry for each level."""

SHOWN = 4
"""Units that a row names."""


@dataclass(frozen=True)
class Cut:
    """A configuration that was tried, and what it is in words."""

    what: str
    config: Config


def cuts() -> list[Cut]:
    """The configurations, each with less than the one before."""
    own = find_board(BOARD).config
    first = replace(
        Config.preset("minimum"), name="cut1", banks=own.banks, page_bytes=own.page_bytes, write_batch=own.write_batch
    )
    second = replace(first, name="cut2", random_loads=(0, 0))
    third = replace(
        second, name="cut3", alus=(0, 0), registers=3, callbacks=2, instructions=4, lengths=1, vector_registers=2,
        watchdog=256,
    )  # fmt: skip
    fourth = replace(third, name="cut4", sequential_loads=(1, 0))
    per_level = {name: getattr(own, name) for name in PER_LEVEL}
    fifth = replace(third, name="cut5", levels=own.levels, **per_level)
    return [
        Cut("preset `minimum`: 1 lane, 1 port, 2 levels of 2 loads, the shortest queues", first),
        Cut("… without random loads", second),
        Cut("… without arithmetic in levels, the smallest tables", third),
        Cut("… one load in all: rows of one list, no offsets", fourth),
        Cut("… one level", fifth),
        Cut("… no execute unit, integers only: the board's own", own),
    ]


def counts(netlist: Path) -> Row:
    """What a netlist for iCE40 takes, with the units' LUTs (``units``)."""
    top = top_module(json.loads(netlist.read_text(encoding="utf-8")))
    kinds: Counter[str] = Counter()
    luts: Counter[str] = Counter()
    core_ff = 0
    for name, cell in top["cells"].items():
        kind = cell["type"]
        kinds[kind] += 1
        if kind == "SB_LUT4":
            luts[unit_of(name)] += 1
        core_ff += kind.startswith("SB_DFF") and unit_of(name) != SYSTEM
    return {
        "lut": kinds["SB_LUT4"], "ff": sum(count for kind, count in kinds.items() if kind.startswith("SB_DFF")),
        "bram": kinds["SB_RAM40_4K"], "dsp": kinds["SB_MAC16"], "core_ff": core_ff,
        "core_lut": kinds["SB_LUT4"] - luts[SYSTEM], "units": dict(luts),
    }  # fmt: skip


def largest(units: Mapping[str, int]) -> str:
    """The core's largest units in words."""
    core = Counter({name.removeprefix("core: "): count for name, count in units.items() if name != SYSTEM})
    return ", ".join(f"{name} {count:,}" for name, count in core.most_common(SHOWN))


def measure(cut: Cut, folder: Path) -> Row:
    """A row of the table."""
    say(f"cuts: {cut.what}")
    work, seconds = synthesise(BOARD, cut.config, folder=folder)
    row = counts(work / NETLIST)
    return {**row, "what": cut.what, "largest": largest(row["units"]), "seconds": seconds}


def text(rows: list[Row]) -> str:
    """The table, and what it means for the part."""
    last = rows[-1]
    system = last["units"].get(SYSTEM, 0)
    return f"{markdown(COLUMNS, rows)}\n\nThe part has {PART}.\nThe system around the core has {system:,} LUTs."


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build") / BOARD, show_default=True,
              help="Where netlists are kept.")  # fmt: skip
def main(folder: Path) -> None:
    """Synthesise every cut, smallest first, and put the table into docs/boards.md; as it is after each of them."""
    rows: list[Row] = []
    for cut in reversed(cuts()):
        rows.insert(0, measure(cut, folder))
        _write(rows)


def _write(rows: list[Row]) -> None:
    page = insert(PAGE.read_text(encoding="utf-8"), BEGIN, text(rows))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.cuts")
