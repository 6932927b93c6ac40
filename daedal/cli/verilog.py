"""``daedal verilog``: a core, or several, as one Verilog file, and what a host sees of it as CSV."""

import json

import click

from daedal.cli._options import config_option, write_bytes
from daedal.hw.config.core import Config
from daedal.hw.isa.registers import MOST_SYSTEM_TILES
from daedal.hw.memory.axi import MASTERS


@click.command()
@config_option("The machine to write out.")
@click.option(
    "--tiles",
    type=click.IntRange(1, MOST_SYSTEM_TILES),
    metavar="N",
    help="So many cores with a register window for all; left out, one core alone.",
)
@click.option(
    "--axi",
    type=click.Choice(MASTERS),
    default=MASTERS[0],
    show_default=True,
    help="A core's memory: by its own ports, or by one AXI4 or AXI3 master with an identifier for each.",
)
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="Verilog; - is standard output.")
@click.option("--map", "map_path", metavar="FILE", help="Write registers, launch block and record to this file as CSV.")
@click.option("--json", "json_path", metavar="FILE", help="Write ports and map to this file as JSON.")
def command(
    config: Config, tiles: int | None, axi: str, output: str, map_path: str | None, json_path: str | None
) -> None:
    """Write a core, or several, as one Verilog file.

    It begins with a comment that lists every port. The top module is daedal_core, daedal_tile with a single master, or
    daedal_system with --tiles; memory and host are AXI4 and AXI4-Lite.

    \b
    A configuration file is TOML or JSON: fields of Config, and `base` for the preset that the others come from.
        base = "edge"
        ports = 4
    """  # noqa: D301 (click keeps the lines below \b as they are)
    from dataclasses import asdict

    from daedal.hw.core_ports import top_ports
    from daedal.hw.isa.tools.memory_map import memory_map, memory_map_csv
    from daedal.hw.verilog import documented_verilog

    given = [path for path in (output, map_path, json_path) if path is not None]
    if len(set(given)) < len(given):
        raise click.UsageError(f"--output, --map and --json must name different files, not {' and '.join(given)}")
    write_bytes(output, documented_verilog(config, tiles, axi).encode())
    if map_path is not None:
        write_bytes(map_path, memory_map_csv(config, is_system=tiles is not None).encode())
    if json_path is not None:
        document = {
            "schema": 1,
            "tiles": tiles,
            "axi": axi,
            "config": asdict(config) | {"hash": config.hash},
            "ports": [asdict(port) for port in top_ports(config, tiles, axi)],
            "map": [asdict(entry) for entry in memory_map(config, is_system=tiles is not None)],
        }
        write_bytes(json_path, (json.dumps(document, indent=2) + "\n").encode())
