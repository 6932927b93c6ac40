"""``make synth``: size and clock of the units, compared with what was landed."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.synthesis import history, suite, tools
from bench.synthesis.run import Row
from bench.synthesis.units import UNITS
from daedal.base.boundary import one_line
from daedal.base.files import write_json
from daedal.bench.report.document import SCHEMA
from daedal.bench.report.table import show
from daedal.hw.config.core import PRESETS, Config

FAST = (
    "reciprocal", "token queue", "scalar queue", "store address queue", "vector queues", "store unit", "iterative unit",
    "loader", "control port", "controller", "statistics", "record writer",
)  # fmt: skip
"""Units that Yosys is through with in seconds."""


WIDTH = 130
"""Columns of a table that goes into a file."""


def say(text: str) -> None:
    """Tell the user what is going on, apart from the results."""
    click.echo(text, err=True)


def facts() -> Row:
    """What a landing says besides its figures."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    return {"date": day, "revision": revision, "tools": tools.versions(), "flags": list(tools.FLAGS)}


def judge(rows: list[Row], landings: list[Row], changelog: str) -> list[history.Growth]:
    """Say how the rows of one configuration stand against the history; the growth that is not explained."""
    before = history.landed(landings, rows[0]["config"]) if rows else {}
    grown = history.growths(rows, before)
    bad = history.unexplained(grown, changelog)
    for each in grown:
        say(f"{each}" + (" (in the changelog)" if each not in bad else ""))
    for row in rows:
        if row["status"] == "ok" and row["unit"] not in before:
            say(f"{row['unit']} ({row['config']}) has not been landed")
    return bad


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "configs", multiple=True, type=click.Choice(list(PRESETS)), default=["ddr3"],
              show_default=True, help="A preset; may be given several times.")  # fmt: skip
@click.option("--unit", "units", multiple=True, type=click.Choice([unit.name for unit in UNITS]),
              help="This unit only; may be given several times.")  # fmt: skip
@click.option("--fast", is_flag=True, help="Only the units that take seconds, and no clocks: what CI runs.")
@click.option("--place-seeds", default=5, show_default=True, type=click.IntRange(0),
              help="Placements of each unit, of which the median clock counts; 0 for none.")  # fmt: skip
@click.option("--route-large", is_flag=True, help="Route the large units too: up to an hour for each placement.")
@click.option("--lut6", "with_lut6", is_flag=True,
              help="Also the LUTs of six inputs that synth_xilinx makes of each unit.")  # fmt: skip
@click.option("--land", is_flag=True, help="Add the figures to the history, unless they grew without an entry.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
def main(configs: tuple[str, ...], units: tuple[str, ...], fast: bool, place_seeds: int, route_large: bool,
         with_lut6: bool, land: bool, json_file: Path | None) -> None:  # fmt: skip
    """LUT, FF, BRAM, DSP and clock of every unit, compared with bench/synthesis/history.json.

    A unit that takes over 5 % more of anything than was landed needs an entry in the changelog, under "Unreleased",
    such as "- Area of lane (ddr3): 2,100 LUT, 990 FF, for …": no less than what was measured. Ends with status 1
    without it, or if a unit could not be synthesised.
    """
    broken = False
    grown: list[history.Growth] = []
    for name in configs:
        config = Config.preset(name)
        chosen, seeds = units or (FAST if fast else ()), 0 if fast else place_seeds
        rows = suite.measure_units(config, chosen, place_seeds=seeds, route_large=route_large, with_lut6=with_lut6)
        show(f"{suite.TITLE} ({name})", suite.COLUMNS, rows, width=WIDTH)
        if json_file is not None:
            path = json_file if len(configs) == 1 else json_file.with_stem(f"{json_file.stem}-{name}")
            about = {**facts(), "config": name, "config_hash": f"{config.hash:#010x}", "place_seeds": seeds}
            write_json(path, {"schema": SCHEMA, "facts": about, "results": {"synthesis": rows}})
        failed = any(map(suite.is_broken, rows))
        bad = judge(rows, history.read(), history.CHANGELOG.read_text(encoding="utf-8"))
        if land and not bad and not failed:
            history.land(rows, facts())
        broken, grown = broken or failed, [*grown, *bad]
    if grown:
        say("growth of over 5 % without an entry in CHANGELOG.md, see python -m bench.synthesis --help:")
        for each in grown:
            say(f"  {each}")
    sys.exit(broken or bool(grown))


if __name__ == "__main__":
    with one_line("python -m bench.synthesis"):
        main(prog_name="python -m bench.synthesis")
