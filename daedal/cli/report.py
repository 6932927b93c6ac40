"""``daedal report``: one HTML page of a run."""

from pathlib import Path

import click

from daedal.cli._options import OutputFile, config_option, write_bytes
from daedal.cli.bench import Workloads, check_memory
from daedal.hw.config.core import Config

TRACED = 4
"""Bags over each table in a run with a waveform, unless told otherwise."""


@click.command()
@click.argument("workload", type=Workloads(), default="rm2", metavar="[WORKLOAD]")
@click.option("-o", "--output", default="report.html", show_default=True, type=OutputFile(), help="The page.")
@click.option("--memory", default="ideal", show_default=True, callback=check_memory, help="Memory model and options.")
@config_option("The machine; left out, the preset whose bus is as wide as the memory's.", default=None)
@click.option("--target", type=click.Choice(["verilator", "model"]), default="verilator", show_default=True,
              help="What it runs on; model predicts, and has nothing over time.")  # fmt: skip
@click.option("--distribution", default="uniform", show_default=True,
              type=click.Choice(["uniform", "zipf", "fixed", "stride", "sorted"]),
              help="Of the indices, for workloads without indices of their own.")  # fmt: skip
@click.option("--placement", default=0, show_default=True, type=click.IntRange(0), help="Placement of tables.")
@click.option("--batch", type=click.IntRange(1),
              help="Bags over each table (lookups of a gather: 64 times that). Left out: 4, for waveforms are large; "
              "all of them for target model.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Start of all random data.")
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), envvar="DAEDAL_DATA",
              help="Folder with real data (or the variable DAEDAL_DATA); without it, stand-ins.")  # fmt: skip
@click.option("--json", "json_file", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="A result of `daedal bench`, whose table and pictures go into the page.")  # fmt: skip
@click.pass_context
def command(
    context: click.Context,
    workload: str,
    output: Path,
    memory: str,
    config: Config | None,
    target: str,
    distribution: str,
    placement: int,
    batch: int | None,
    seed: int,
    data: Path | None,
    json_file: Path | None,
) -> None:
    """Run WORKLOAD (rm2 if left out) on the simulated RTL, or on the model of it, and write one HTML page of the run.

    The page has the figures, the stalls, pictures, queues and ports over time, and the program of both units. It
    needs nothing else: no file, no network. A run on the RTL is traced, hence short.

    Ends with status 1 if the result is not PyTorch's.
    """
    from rich.console import Console

    from daedal.bench.registry import machines
    from daedal.bench.report.document import load
    from daedal.bench.report.run_page import report, shortened
    from daedal.bench.run import Setting
    from daedal.bench.suites.model_runs import WORKLOADS
    from daedal.bench.workloads.models import OWN

    rows = [row for found in load(json_file)["results"].values() for row in found] if json_file else []
    others = [row for row in rows if "distribution" in row]  # of workloads
    chosen = WORKLOADS[workload]
    batch = batch if target == "model" else batch or TRACED
    short = chosen if batch is None else shortened(chosen, 64 * batch if chosen.mode == "gather" else batch)
    try:
        ((machine, _),) = machines(config, [memory], target)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    setting = Setting(machine, memory, placement, seed, data, target=target)
    how = "" if target == "model" else " with a waveform (the model is built the first time)"
    with Console(stderr=True).status(f"running {workload}{how}"):
        text, run = report(short, OWN if chosen.source else distribution, setting, others)
    write_bytes(str(output), text.encode())
    if run.row["verdict"]:
        click.echo(f"{workload}: {run.row['verdict']}", err=True)
    context.exit(1 if run.row["verdict"] else 0)
