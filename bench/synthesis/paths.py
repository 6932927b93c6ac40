"""The longest ways through a netlist for ECP5: ``python -m bench.synthesis.paths build/ecpix5/work-*/netlist.json``.

Seconds, where a placement takes a quarter of an hour and shows one way. Cells and nets have typical delays: what is
last here will not limit a placement, what is first might.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from bench.report import WIDTH, save_rows, say
from daedal.hw.boards.netlist import top_module
from daedal.measure.table import column, show

Row = dict[str, Any]

LUT, CARRY_IN, CARRY, CARRY_OUT, READ = 0.18, 0.4, 0.05, 0.25, 0.22
"""Delays of cells, ns, speed grade 8: a LUT, into a chain of carries, two bits along it, out of it, a distributed RAM.
They and those of nets are chosen so that the ways that limited three placements of ``ecpix5`` (15.5, 14.0, 13.9 ns)
come within 4 % of what they had there. Others had up to a tenth less than here: the placer looks after what is long."""

BEGIN = {"TRELLIS_FF": 0.35, "DP16KD": 4.0, "MULT18X18D": 2.0}
"""From the clock to the output."""

BLOCK_RAM_REGISTER = 0.9
"""The same of a block RAM with registers at its outputs."""

CLOCKS = {"CLK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3", "WCK"}

COLUMNS = (
    column("ns", "ns", ".1f"), column("cells", "cells", "d"), column("from", "start"), column("to", "end"),
    column("by way of", "way"),
)  # fmt: skip

MADE_UP = re.compile(r"_(LUT4|CCU2C|TRELLIS|PFUMX|DPR16X4).*")
"""What Yosys appends to a name for what it has made."""


def net_delay(readers: int) -> float:
    """Of a net with so many readers, ns."""
    spread = 0.5 if readers > 30 else 0.0
    return 0.48 + 0.1 * math.pow(min(readers, 8), 0.8) + spread + (1.1 if readers > 150 else 0.0)


class Netlist:
    """A flat netlist as Yosys writes it: which bits lead to which, and when they are there.

    ValueError if it has no flip-flops of ECP5.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        self._names = _names(module["netnames"])
        self._sources: dict[int, list[tuple[int, float, bool]]] = {}
        """Bit -> the bits it comes from, the cell's delay, whether by way of a chain of carries."""
        self._times: dict[int, float] = {}
        self._before: dict[int, int] = {}
        self.ends: list[tuple[int, str]] = []
        """Bits that end at a clock, and the cell."""
        self._readers: Counter[int] = Counter()
        if not any(cell["type"] == "TRELLIS_FF" for cell in module["cells"].values()):
            raise ValueError("there is no flip-flop of type TRELLIS_FF")
        for name, cell in module["cells"].items():
            self._add(name, cell)

    def _add(self, name: str, cell: Mapping[str, Any]) -> None:
        pins = {pin: [bit for bit in bits if isinstance(bit, int)] for pin, bits in cell["connections"].items()}
        inputs = [pin for pin in pins if cell["port_directions"].get(pin) == "input"]
        self._readers.update(bit for pin in inputs for bit in pins[pin])
        outputs = [pin for pin in pins if pin not in inputs]
        kind = cell["type"]
        if kind == "CCU2C":
            ways = [(bit, CARRY_IN, False) for pin in inputs if pin != "CIN" for bit in pins[pin]]
            for pin in outputs:
                along = CARRY if pin == "COUT" else CARRY_OUT
                for bit in pins[pin]:
                    self._sources[bit] = [*ways, *((carry, along, True) for carry in pins.get("CIN", []))]
            return
        if kind == "TRELLIS_DPR16X4":
            reads = [(bit, READ, False) for bit in pins["RAD"]]
            self._sources.update((bit, reads) for bit in pins["DO"])
            self.ends += [(bit, name) for pin in ("DI", "WAD", "WRE") for bit in pins.get(pin, [])]
            return
        if kind in ("LUT4", "PFUMX", "L6MUX21"):
            through = [(bit, LUT, False) for pin in inputs for bit in pins[pin]]
            self._sources.update((bit, through) for pin in outputs for bit in pins[pin])
            return
        begin = BEGIN.get(kind, 1.0)
        if kind == "DP16KD" and "OUTREG" in cell.get("parameters", {}).get("REGMODE_A", ""):
            begin = BLOCK_RAM_REGISTER
        self._times.update((bit, begin) for pin in outputs for bit in pins[pin])
        self.ends += [(bit, name) for pin in inputs if pin not in CLOCKS for bit in pins[pin]]

    def time(self, bit: int) -> float:
        """When a bit is there, ns after the clock; its way is kept."""
        waiting = [bit]
        """Each for the one after it."""
        while waiting:
            here = waiting[-1]
            if here in self._times:
                waiting.pop()
                continue
            sources = self._sources.get(here, [])
            unknown = (source for source, _, _ in sources if source not in self._times and source not in waiting)
            if (missing := next(unknown, None)) is not None:
                waiting.append(missing)
                continue
            self._times[here] = 0.0
            for source, delay, carried in sources:
                if source not in self._times:  # a loop of logic: it is cut here
                    continue
                there = self._times[source] + delay + (0.0 if carried else net_delay(self._readers[source]))
                if there > self._times[here]:
                    self._times[here], self._before[here] = there, source
            waiting.pop()
        return self._times[bit]

    def rows(self) -> Iterator[Row]:
        """The ways, longest first; of those from one signal to one unit, the longest."""
        slowest = sorted(((self.time(bit) + net_delay(self._readers[bit]), bit, end) for bit, end in self.ends),
                         key=lambda each: -each[0])  # fmt: skip
        seen = set()
        for time, bit, end in slowest:
            way = [bit]
            while way[-1] in self._before:
                way.append(self._before[way[-1]])
            names = [_short(self._names.get(each, "?")) for each in reversed(way)]
            units = [name.rpartition(".")[0] for name in (*names, _short(end))]
            key = re.sub(r"\d+", "", f"{names[0]} {'.'.join(units[-1].split('.')[:2])}")
            if key in seen:
                continue
            seen.add(key)
            between = [unit for unit, before in zip(units, ["", *units], strict=False) if unit != before]
            yield {"ns": round(time, 2), "cells": len(way) - 1, "start": names[0], "end": _short(end),
                   "way": " > ".join(between)}  # fmt: skip


def _names(netnames: Mapping[str, Any]) -> dict[int, str]:
    """The shortest name of each bit."""
    names: dict[int, str] = {}
    for name, net in netnames.items():
        for number, bit in enumerate(net["bits"]):
            if isinstance(bit, int):
                full = f"{name}[{number}]" if len(net["bits"]) > 1 else name
                if bit not in names or len(full) < len(names[bit]):
                    names[bit] = full
    return names


def _short(name: str) -> str:
    return MADE_UP.sub("", name).replace("daedal_core.core.", "").replace("generate_real_", "")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("netlist", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--count", default=20, show_default=True, type=click.IntRange(1), help="Ways that are shown.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
def main(netlist: Path, count: int, json_file: Path | None) -> None:
    """Show the longest ways through a flat netlist for ECP5, as `daedal bitstream` keeps it in its work folder."""
    say(f"paths: {netlist}")
    try:
        rows = list(islice(Netlist(top_module(json.loads(netlist.read_text(encoding="utf-8")))).rows(), count))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise click.ClickException(f"{netlist} must be a netlist for ECP5 as Yosys writes it: {error!r}") from None
    if json_file is not None:
        save_rows(json_file, rows, netlist=str(netlist))
    show("Longest ways, typical delays", COLUMNS, rows, width=WIDTH)


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.paths")
