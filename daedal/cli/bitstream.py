"""``daedal bitstream``: a board's configuration file, made with open tools."""

import json
from pathlib import Path
from typing import Any

import click

from daedal.cli._options import config_option, writing
from daedal.cli._progress import progress
from daedal.errors import FileError
from daedal.hw.config.core import Config


@click.command()
@click.option("--board", required=True, metavar="NAME", help="The board; docs/boards.md has them all.")
@config_option("The core instead of the board's own.", default=None)
@click.option("--core-mhz", type=float, metavar="MHZ", help="The core's clock instead of the board's own.")
@click.option("--etherbone", is_flag=True, help="With a bridge to the network as well.")
@click.option("--seed", type=int, help="Where the placement starts, instead of where the board's own core closes.")
@click.option(
    "--grade", type=int, metavar="N", help="What the system would do in a part of this speed grade: a report."
)
@click.option("--no-route", is_flag=True, help="Place only: a report with estimated clocks, no configuration file.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Instead of build/NAME, or build/NAME-gradeN.")  # fmt: skip
@click.option(
    "--history",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Designs that closed: one in this file is not made again, and one that closes is added.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    board: str, config: Config | None, core_mhz: float | None, etherbone: bool, seed: int | None, no_route: bool,
    output: Path | None, as_json: bool, grade: int | None, history: Path | None,
) -> None:  # fmt: skip
    """Make a board's configuration file, and a report on it.

    They go to build/NAME, with board.json, which the driver reads. It takes many minutes. Clocks that are not reached
    are an error, and so is a core that does not fit; neither leaves a configuration file.
    """
    from daedal.fpga.flow import history as designs
    from daedal.fpga.flow.bitstream import build

    closed = _closed(history)
    folder = output or Path("build") / (board if grade is None else f"{board}-grade{grade}")
    with progress("starting") as say:
        report = build(
            board, config, folder=folder, route=not no_route, seed=seed, etherbone=etherbone, grade=grade,
            core_hz=None if core_mhz is None else core_mhz * 1e6, closed=closed, say=say,
        )  # fmt: skip
    if history is not None and report.get("bitstream"):
        designs.add(history, report, after=closed)
    with writing():
        click.echo(json.dumps(report, indent=1) if as_json else _table(report))


def _closed(history: Path | None) -> list[dict[str, Any]]:
    """The designs in the file; none, with a warning, if it is damaged, so that the design is made."""
    from daedal.fpga.flow.history import read

    try:
        return [] if history is None else read(history)
    except FileError as error:
        click.echo(f"warning: {error}; the design is made, whether it closed before or not", err=True)
        return []


def _table(report: dict[str, Any]) -> str:
    """The report, for people; or what is known of a design that closed."""
    from daedal.fpga.flow.reports import clock_kind

    if "bitstream" not in report:
        reached = ", ".join(f"{name} {mhz} MHz" for name, mhz in report["clocks"].items())
        return f"{report['board']}: this design closed already, routed: {reached}"
    lines = [f"{name:5} {report[name]:7} of {report['available'][name]:7}" for name in report["available"]]
    lines.append(f"ff    {report['ff']:7}")
    kind = clock_kind(report["routed"])
    lines += [
        f"clock {name}: {clock['mhz']} MHz {kind}, wanted {clock['wanted_mhz']}"
        for name, clock in report["clocks"].items()
    ]
    why = "for another part" if report["routed"] else "placed only"
    made = report["bitstream"] or f"no configuration file ({why})"
    return "\n".join([f"{report['board']}: {made}, {report['seconds']} s", *lines])
