"""``daedal sim``: run the workloads on simulated hardware and compare with PyTorch, bit for bit."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from daedal.bench.workloads import WORKLOADS
from daedal.cli._options import OutputFile, config_option, write_bytes, writing
from daedal.driver.targets.target_registry import TARGETS
from daedal.hw.config.core import Config

if TYPE_CHECKING:
    from daedal.bench.workloads.runner import Result
    from daedal.cosim.simulator_time import Profile
    from daedal.cosim.verilator import VerilatorTarget

SCHEMA = 1
"""Version of the JSON output."""

FILE_WIDTH = 140
"""Columns of the table where there is no terminal to fit."""


@click.command()
@click.argument("workloads", nargs=-1, type=click.Choice(list(WORKLOADS)), metavar="[WORKLOAD]...")
@click.option("--target", type=click.Choice(list(TARGETS)), default="verilator", show_default=True)
@config_option("Configuration: a preset, or a TOML or JSON file of Config fields.")
@click.option(
    "--memory",
    default="ideal",
    show_default=True,
    help="Memory model, as ideal:latency=200,stall=0.1 or litedram-ddr3-x16 (docs/machine/memory.md).",
)
@click.option(
    "--json",
    "json_path",
    type=OutputFile(),
    help="Write the results to this file; - is standard output, the table goes to the standard error then.",
)
@click.option("--wave", type=OutputFile(), help="Write a waveform (VCD) and views of it; slow.")
@click.option("--profile", is_flag=True, help="Say what the simulator's own time went to, by unit of the RTL.")
@click.pass_context
def command(
    context: click.Context,
    workloads: Sequence[str],
    target: str,
    config: Config,
    memory: str,
    json_path: Path | None,
    wave: Path | None,
    profile: bool,
) -> None:
    """Run WORKLOADs (all if none is given) on simulated hardware and compare with PyTorch.

    \b
    text    EmbeddingBag of a text classifier over the English text that ships with Python
    dlrm    the embedding layers of a recommender: 8 tables, power-law indices
    gather  rows of one table, unchanged
    """  # noqa: D301 (click keeps the lines below \b as they are)
    options = {"target": target, "config": config, "memory": memory, "wave": wave and str(wave)}
    if profile and target != "verilator":
        raise click.BadParameter(f"--profile must go with target verilator, which simulates the RTL, not {target}")
    results, times, settings = _run(list(workloads) or list(WORKLOADS), options, profile)
    aside = str(json_path) == "-"
    with writing():
        _print_table(results, aside=aside)
    if settings:
        click.echo(f"memory: {settings}", err=aside)
    if times is not None:
        click.echo(times.text(), err=aside)
    if json_path is not None:
        document: dict[str, Any] = {"schema": SCHEMA, "results": [result.as_dict() for result in results]}
        if times is not None:
            document["simulator_time"] = times.as_dict()
        write_bytes(str(json_path), (json.dumps(document, indent=2) + "\n").encode())
    if wave is not None:
        views, hint = wave.with_suffix(""), "in the waveform's folder"
        click.echo(f"look at it with: gtkwave {views}.gtkw, or surfer -c {views}.sucl {wave} {hint}", err=aside)
    wrong = [result for result in results if not result.bit_exact]
    for result in wrong:
        click.echo(f"{result.workload}: {result.operation} differs from PyTorch: {result.difference}", err=True)
    context.exit(1 if wrong else 0)


def _run(
    workloads: Sequence[str], options: dict[str, Any], profile: bool
) -> "tuple[list[Result], Profile | None, str]":
    """Run all cases with a line of progress on the standard error; what the simulator's time went to, if asked for; and
    all that shapes the memory's time, if it has one.
    """
    from rich.console import Console

    from daedal.driver.device import Device

    if profile:
        os.environ["DAEDAL_PROFILE"] = "1"

    console = Console(stderr=True)
    results, times = [], None
    with console.status("starting PyTorch") as status:
        from daedal.bench.workloads import cases
        from daedal.bench.workloads.runner import run_case

        if options["target"] == "verilator":
            text = f"the model of {options['config'].name} takes minutes to build the first time, and is kept then"
            status.update(text)
            if not console.is_terminal:
                console.print(text, highlight=False)
        try:
            device = Device.open(**options)
        except (ValueError, OSError) as error:
            raise click.BadParameter(str(error)) from error
        with device:
            settings = getattr(device.target, "memory_settings", "")
            for workload in workloads:
                for case in cases(workload):
                    status.update(f"{workload}: {case.operation}, {case.shape}")
                    result = run_case(case, device, target=options["target"], memory=options["memory"])
                    results.append(result)
                    console.print(f"{workload}: {case.operation} in {result.seconds:.1f} s", highlight=False)
            if profile:
                times = cast("VerilatorTarget", device.target).profile()
    return results, times, settings


def _print_table(results: "Sequence[Result]", *, aside: bool) -> None:
    """On the standard output; ``aside`` on the standard error."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="cycles: from doorbell to last acknowledged write; share: of one line per cycle")
    for heading in ("workload", "operation", "shape"):
        table.add_column(heading)
    for heading in ("cycles", "share"):
        table.add_column(heading, justify="right")
    for heading in ("main stall", "PyTorch"):
        table.add_column(heading)
    for result in results:
        table.add_row(
            result.workload,
            result.operation,
            result.shape,
            f"{result.cycles:,}" if result.cycles else "–",
            f"{result.line_share:.3f}" if result.cycles else "–",
            result.main_stall.replace("_", " ") if result.cycles else "–",
            "[green]equal[/]" if result.bit_exact else "[red]differs[/]",
        )
    Console(width=None if Console(stderr=aside).is_terminal else FILE_WIDTH, stderr=aside).print(table)
    speed = [result.sim_kcycles_per_s for result in results if result.sim_kcycles_per_s]
    if speed:
        click.echo(f"simulated {min(speed):,.0f} to {max(speed):,.0f} thousand cycles per second", err=aside)
