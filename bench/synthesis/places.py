"""Places that a netlist for Gowin takes, by unit: ``python -m bench.synthesis.places NETLIST``.

In nextpnr's model of these parts (``himbaechel/uarch/gowin/gowin.cc``) a place is a LUT with a flip-flop behind it that
takes its input from nowhere else. So a flip-flop that anything else feeds (another one, a memory, a multiplier, a LUT
that feeds one already) takes the place of an empty LUT, and next to a distributed memory, which has eight places, there
is none for flip-flops. Yosys' counts do not show it.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click

from bench.report import WIDTH
from daedal.hw.boards.netlist import top_module
from daedal.hw.boards.reports import unit_of
from daedal.measure.table import column, show

LOGIC = {"F": r"LUT[1-4]", "SUM": "ALU"}
"""Output of logic -> the types of cells that have it."""

MEMORY_PLACES = 8
"""Places of a distributed memory (RAM16SDP4)."""

COLUMNS = (
    column("unit", "unit"), column("LUT, adder", "logic", ",d"), column("FF", "ff", ",d"),
    column("of these behind a LUT", "paired", ",d"), column("distributed memories", "memories", ",d"),
    column("places", "places", ",d"),
)  # fmt: skip

Row = dict[str, Any]


def rows(module: dict[str, Any]) -> list[Row]:
    """A row for each unit of a netlist's top module, the one with the most places first, and one for all."""
    cells = module["cells"]
    drivers = {
        cell["connections"][pin][0]: name
        for name, cell in cells.items()
        for pin, types in LOGIC.items()
        if re.fullmatch(types, cell["type"]) and cell["connections"].get(pin)
    }
    counts: dict[str, Counter[str]] = {}
    paired: set[str] = set()
    for name, cell in cells.items():
        unit = counts.setdefault(unit_of(name), Counter())
        kind = cell["type"]
        if kind.startswith("DFF"):
            unit["ff"] += 1
            driver = drivers.get(cell["connections"]["D"][0])
            if driver is not None and driver not in paired:
                paired.add(driver)
                unit["paired"] += 1
        elif kind.startswith("RAM16"):
            unit["memories"] += 1
        elif any(re.fullmatch(types, kind) for types in LOGIC.values()):
            unit["logic"] += 1
    found = [_row(unit, count) for unit, count in counts.items()]
    found = sorted((row for row in found if row["places"]), key=lambda row: -row["places"])
    return [*found, _row("all", sum(counts.values(), Counter()))]


def _row(unit: str, count: Counter[str]) -> Row:
    places = count["logic"] + count["ff"] - count["paired"] + MEMORY_PLACES * count["memories"]
    return {"unit": unit, "places": places, **{name: count[name] for name in ("logic", "ff", "paired", "memories")}}


@click.command()
@click.argument("netlist", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def main(netlist: Path, as_json: bool) -> None:
    """Count the places that NETLIST, which Yosys wrote for a Gowin part, takes."""
    try:
        found = rows(top_module(json.loads(netlist.read_text(encoding="utf-8"))))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        raise click.ClickException(f"{netlist} must be a netlist as Yosys writes them (write_json)") from None
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        show("Places", COLUMNS, found, width=WIDTH)


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.places")
