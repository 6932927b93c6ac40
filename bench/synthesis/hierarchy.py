"""Where a unit's LUTs are: ``python -m bench.synthesis.hierarchy``, a table by submodule.

Every module is mapped by itself (``abc -lut 4``), so nothing is shared across their borders: the sum is some percent
more than ``make synth`` says of the whole.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from amaranth.back import verilog

from bench.report import WIDTH, save_rows, say
from bench.synthesis import tools
from bench.synthesis.units import UNITS
from daedal.errors import DaedalError
from daedal.hw.config import PRESETS, Config
from daedal.hw.config_file import find_config
from daedal.measure.table import column, show

Row = dict[str, Any]

SCRIPT = f"""\
read_verilog {tools.UNIT}.v
synth_ecp5 -top {tools.UNIT} -noflatten {" ".join(tools.FLAGS)} -run begin:map_luts
abc -lut 4
opt_clean
tee -q -o modules.json stat -json
"""

WEIGHTS = {"$lut": 1, "LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
"""LUTs that a cell takes, as ``make synth`` counts them."""

FIGURES = {"ff": "TRELLIS_FF", "bram": "DP16KD", "dsp": "MULT18X18D"}

COLUMNS = (
    column("module", "module"), column("LUT", "lut", ",d"), column("of it its own", "own", ",d"),
    column("FF", "ff", ",d"), column("BRAM", "bram", "d"), column("DSP", "dsp", "d"),
)  # fmt: skip


def rows_of(modules: Mapping[str, Counter[str]], name: str = tools.UNIT, depth: int = 0) -> Iterator[Row]:
    """A row for the module ``name``, then those of its submodules; ``modules``: the cells in each, by type."""
    whole = _cells(modules, name)
    row = {figure: whole[cell] for figure, cell in FIGURES.items()}
    yield {**row, "module": "  " * depth + name, "lut": _luts(whole), "own": _luts(modules[name])}
    for part in modules[name]:
        if part in modules:
            yield from rows_of(modules, part, depth + 1)


def _cells(modules: Mapping[str, Counter[str]], name: str) -> Counter[str]:
    """Cells of a module with all that is in it."""
    total: Counter[str] = Counter()
    for kind, count in modules[name].items():
        inside = _cells(modules, kind) if kind in modules else Counter({kind: 1})
        total.update({cell: count * number for cell, number in inside.items()})
    return total


def _luts(cells: Mapping[str, int]) -> int:
    return sum(weight * cells.get(cell, 0) for cell, weight in WEIGHTS.items())


def measure(unit: str, config: Config, folder: Path) -> list[Row]:
    """The rows of ``unit``; ToolFailed if Yosys stops."""
    component = next(each for each in UNITS if each.name == unit).build(config)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tools.UNIT}.v").write_text(verilog.convert(component, name=tools.UNIT), encoding="utf-8")
    (folder / "hierarchy.ys").write_text(SCRIPT, encoding="utf-8")
    tools.run(tools.YOSYS, ["hierarchy.ys"], folder, "hierarchy.log", timeout=3600)
    found = json.loads((folder / "modules.json").read_text(encoding="utf-8"))["modules"]
    return list(rows_of({name.lstrip("\\"): Counter(each["num_cells_by_type"]) for name, each in found.items()}))


def _config(context: click.Context, parameter: click.Parameter, value: str) -> Config:
    try:
        return find_config(value)
    except DaedalError as error:
        raise click.BadParameter(str(error)) from None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--unit", type=click.Choice([unit.name for unit in UNITS]), default="core", show_default=True)
@click.option("--config", default="ddr3", show_default=True, callback=_config, metavar=f"[{'|'.join(PRESETS)}|FILE]")
@click.option("--least", default=400, show_default=True, type=click.IntRange(0), help="LUTs of a module that is shown.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file, all modules.")
def main(unit: str, config: Config, least: int, json_file: Path | None) -> None:
    """Map each module of a unit by itself and say what it takes; minutes for the core."""
    say(f"hierarchy: {unit} ({config.name})")
    try:
        rows = measure(unit, config, Path("build/bench/hierarchy") / f"{unit.replace(' ', '_')}-{config.hash:08x}")
    except tools.ToolFailed as error:
        raise click.ClickException(str(error)) from None
    if json_file is not None:
        save_rows(json_file, rows, config=config.name, unit=unit, tools=tools.versions())
    show(f"{unit} ({config.name}): LUTs by module", COLUMNS, [row for row in rows if row["lut"] >= least], width=WIDTH)


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.hierarchy")
