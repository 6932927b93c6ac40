"""``daedal tune``: a faster simulation of one machine."""

import json
from pathlib import Path

import click

from daedal.cli._options import OutputFile, config_option, write_bytes, writing
from daedal.cli.bench import check_memory
from daedal.hw.config.core import Config


@click.command()
@config_option("The machine.")
@click.option("--memory", default="ideal", show_default=True, callback=check_memory, help="Memory model and options.")
@click.option(
    "--json", "json_path", is_flag=False, flag_value="-", type=OutputFile(), metavar="[FILE]",
    help="Write JSON instead of text.",
)  # fmt: skip
def command(config: Config, memory: str, json_path: Path | None) -> None:
    """Make the simulation of a machine faster, once and for all.

    Runs the machine to see which of its logic is busy, and has the compiler use that: some 1.1 times the cycles per
    second, for some minutes of compiling. Later runs of the same machine find the faster model by themselves;
    what it computes, and in how many cycles, stays.
    """
    from daedal.bench.tuning import tune

    def say(text: str) -> None:
        click.echo(f"{config.name}, {memory}: {text}", err=True)

    before, after = tune(config, memory, say)
    if json_path is None:
        with writing():
            click.echo(f"{config.name}, {memory}: {before:,.0f} -> {after:,.0f} simulated cycles per second")
        return
    document = {
        "schema": 1, "config": config.name, "hash": config.hash, "memory": memory,
        "cycles_per_second": {"before": round(before), "after": round(after)},
    }  # fmt: skip
    write_bytes(str(json_path), (json.dumps(document, indent=2) + "\n").encode())
