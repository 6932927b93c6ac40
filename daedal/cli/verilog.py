"""``daedal verilog``: the core as one Verilog file, and what a host sees of it as CSV."""

import json

import click

from daedal.cli._options import config_option, write_bytes
from daedal.hw.config.core import Config


@click.command()
@config_option("The machine to write out.")
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="Verilog; - is standard output.")
@click.option("--map", "map_path", metavar="FILE", help="Write registers, launch block and record to this file as CSV.")
@click.option("--json", "json_path", metavar="FILE", help="Write ports and map to this file as JSON.")
def command(config: Config, output: str, map_path: str | None, json_path: str | None) -> None:
    """Write the core as one Verilog file.

    It begins with a comment that lists every port. The top module is daedal_core; memory and host are AXI4 and
    AXI4-Lite.

    \b
    A configuration file is TOML or JSON: fields of Config, and `base` for the preset that the others come from.
        base = "edge"
        ports = 4
    """  # noqa: D301 (click keeps the lines below \b as they are)
    from dataclasses import asdict

    from daedal.hw.core_ports import core_ports
    from daedal.hw.isa.tools.memory_map import memory_map, memory_map_csv
    from daedal.hw.verilog import documented_verilog

    given = [path for path in (output, map_path, json_path) if path is not None]
    if len(set(given)) < len(given):
        raise click.UsageError(f"--output, --map and --json must name different files, not {' and '.join(given)}")
    write_bytes(output, documented_verilog(config).encode())
    if map_path is not None:
        write_bytes(map_path, memory_map_csv(config).encode())
    if json_path is not None:
        document = {
            "schema": 1,
            "config": asdict(config) | {"hash": config.hash},
            "ports": [asdict(port) for port in core_ports(config)],
            "map": [asdict(entry) for entry in memory_map(config)],
        }
        write_bytes(json_path, (json.dumps(document, indent=2) + "\n").encode())
