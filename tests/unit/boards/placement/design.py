"""Small placed designs, as nextpnr would write them, and plain answers to compare with."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEP = 80
"""ps that a step of a wire takes in these designs."""

LUT_PS, FLIP_FLOP_PS, MEMORY_PS, RESET_PS = 236, 525, 5830, 424


@dataclass
class Design:
    """Cells with their places; ``write`` makes the two files."""

    cells: dict[str, Any] = field(default_factory=dict)
    nets: dict[str, int] = field(default_factory=dict)

    def net(self, name: str) -> int:
        return self.nets.setdefault(name, 100 + len(self.nets))

    def add(
        self, name: str, kind: str, place: str, inputs: dict[str, str], outputs: dict[str, str], **parameters: str
    ) -> None:
        self.cells[name] = {
            "type": kind, "parameters": parameters, "attributes": {"NEXTPNR_BEL": place, "BEL_STRENGTH": "1"},
            "port_directions": {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output"), "OPEN": "input"},
            "connections": {**{port: [self.net(net)] for port, net in (inputs | outputs).items()}, "OPEN": []},
        }  # fmt: skip

    def lut(self, name: str, place: str, *inputs: str, **parameters: str) -> None:
        """Its output is the net ``name``."""
        self.add(name, "TRELLIS_COMB", place, dict(zip("ABCD", inputs, strict=False)), {"F": name}, **parameters)

    def flip_flop(self, name: str, place: str, source: str, *, direct: bool = False, clock: str = "clk",
                  enable: str = "", reset: str = "", **parameters: str) -> None:  # fmt: skip
        """Its output is the net ``name``; ``direct``: it takes the output of the LUT in its place."""
        inputs = {"DI" if direct else "M": source, "CLK": clock}
        inputs |= {"CE": enable} if enable else {}
        inputs |= {"LSR": reset} if reset else {}
        given = {"CEMUX": "CE" if enable else "1 ", "CLKMUX": "CLK", "LSRMUX": "LSR", "GSR": "DISABLED"}
        self.add(name, "TRELLIS_FF", place, inputs, {"Q": name}, **{**given, **parameters})

    def memory(self, name: str, place: str, source: str) -> None:
        """A block RAM: its output is the net ``name``."""
        self.add(name, "DP16KD", place, {"DIA0": source, "CLKA": "clk"}, {"DOB0": name})

    def write(self, folder: Path) -> tuple[Path, Path]:
        placed, delays = folder / "placed.json", folder / "placed.sdf"
        placed.write_text(json.dumps({"modules": {"top": {"attributes": {"top": "1"}, "cells": self.cells}}}))
        delays.write_text(sdf(self.cells))
        return placed, delays


def spot(place: str) -> tuple[int, int, str]:
    column, row, rest = place.split("/")
    return int(column[1:]), int(row[1:]), rest


def ends(cell: dict[str, Any], direction: str) -> dict[str, int]:
    return {port: bits[0] for port, bits in cell["connections"].items()
            if bits and cell["port_directions"][port] == direction}  # fmt: skip


def drivers(cells: dict[str, Any]) -> dict[int, tuple[str, str]]:
    return {net: (name, port) for name, cell in cells.items() for port, net in ends(cell, "output").items()}


def wire_ps(cells: dict[str, Any], start: tuple[str, str], end: tuple[str, str]) -> int:
    """nextpnr's estimate, written out: once for each tile, twice for the first five of each direction."""
    (x, y, at), (u, v, to) = (spot(cells[name]["attributes"]["NEXTPNR_BEL"]) for name, _ in (start, end))
    if (start[1], end[1]) == ("F", "DI") or start[1] == "CLKO":
        return 0
    if (x, y) == (u, v) and end[1] in "ABCD":
        if start[1] == "Q" and at.replace("FF", "K") == to:
            return 0
        if start[1] == "F" and at not in ("SLICEA.K1", "SLICED.K0"):
            return 0
    steps = 6
    for distance in (abs(x - u), abs(y - v)):
        steps += 2 * distance if distance < 5 else 5 + distance
    return steps * STEP


def inside(cell: dict[str, Any]) -> tuple[list[tuple[str, str, int]], dict[str, int]]:
    """The ways through a cell (from a clock: ``CLK``), and for inputs, how long before the edge."""
    inputs, outputs = ends(cell, "input"), ends(cell, "output")
    match cell["type"]:
        case "TRELLIS_COMB":
            return [(port, "F", LUT_PS) for port in "ABCD" if port in inputs], {}
        case "TRELLIS_FF":
            return [("CLK", "Q", FLIP_FLOP_PS)], {
                port: RESET_PS if port == "LSR" else 0 for port in inputs if port != "CLK"
            }
        case "DCCA":
            return [("CLKI", "CLKO", 0)], {}
        case _:
            return [("CLKA", port, MEMORY_PS) for port in outputs], {port: 218 for port in inputs if port != "CLKA"}


def sdf(cells: dict[str, Any]) -> str:
    lines = ["(DELAYFILE", '  (CELL (CELLTYPE "top")', "    (INSTANCE )"]
    driver = drivers(cells)
    for name, cell in cells.items():
        for port, net in ends(cell, "input").items():
            if net in driver:
                ps = wire_ps(cells, driver[net], (name, port))
                start = "/".join(map(escaped, driver[net]))
                lines.append(f"    (INTERCONNECT {start} {escaped(name)}/{port} ({ps}:{ps}:{ps}) ({ps}:{ps}:{ps}))")
    for name, cell in cells.items():
        lines.append(f"    (INSTANCE {escaped(name)})")
        through, before = inside(cell)
        lines += [f"    (IOPATH {start} {end} (1:2:{ps}) (1:2:{ps}))" for start, end, ps in through]
        for port, ps in before.items():
            lines += [
                f"    (SETUPHOLD ({edge} {port}) (posedge CLK) (0:1:{ps}) (0:0:0))" for edge in ("posedge", "negedge")
            ]
    return "\n".join(lines) + "\n)\n"


def escaped(name: str) -> str:
    return name.replace("$", "\\$")


def longest_ps(cells: dict[str, Any]) -> float:
    """Of all ways from clock to clock, by looking at every way."""
    driver = drivers(cells)

    def ready(net: int) -> float:
        name, output = driver[net]
        through, _ = inside(cells[name])
        times = []
        for start, end, ps in through:
            if end == output and (start != "CLKI" or start in cells[name]["connections"]):
                times.append(ps if start in ("CLK", "CLKA") else ps + at(name, start))
        return max(times, default=float("-inf"))

    def at(name: str, port: str) -> float:
        net = cells[name]["connections"][port][0]
        return ready(net) + wire_ps(cells, driver[net], (name, port)) if net in driver else float("-inf")

    return max(at(name, port) + ps for name, cell in cells.items() for port, ps in inside(cell)[1].items())


def problems(cells: dict[str, Any]) -> list[str]:
    """What may not be so in a tile: written out from what the tiles' wires are, for each pair of cells."""
    found, tiles = [], {}
    for name, cell in cells.items():
        x, y, at = spot(cell["attributes"]["NEXTPNR_BEL"])
        tiles.setdefault((x, y), []).append((at, name, cell))
    for tile in tiles.values():
        found += pair_problems(tile)
    for name, cell in cells.items():
        if "DI" in ends(cell, "input"):
            source = drivers(cells)[cell["connections"]["DI"][0]][0]
            if cells[source]["attributes"]["NEXTPNR_BEL"].replace("K", "FF") != cell["attributes"]["NEXTPNR_BEL"]:
                found.append(f"{name} is not with its LUT")
    return found


def pair_problems(tile: Iterable[tuple[str, str, dict[str, Any]]]) -> list[str]:
    found, cells = [], list(tile)
    for number, (at, name, cell) in enumerate(cells):
        for other_at, other, beside in cells[number + 1 :]:
            if at == other_at:
                found.append(f"{name} and {other} are in one place")
            if cell["type"] == beside["type"] == "TRELLIS_FF":
                tile_wide = ("CLK", "LSR")
                if any(cell["connections"].get(port) != beside["connections"].get(port) for port in tile_wide):
                    found.append(f"{name} and {other} have other clocks or resets")
                same_slice = at[:6] == other_at[:6]
                enables = [(each["connections"].get("CE"), each["parameters"]["CEMUX"]) for each in (cell, beside)]
                if same_slice and enables[0] != enables[1]:
                    found.append(f"{name} and {other} have other enables")
    return found


def scattered(seed: int) -> Design:
    """Flip-flops, LUTs and memories all over the part; each LUT takes what flip-flops or LUTs before it give."""
    rng = random.Random(seed)
    design = Design()
    sites = [f"X{x}/Y{y}" for x in range(2, 60, 6) for y in range(2, 60, 6)]
    rng.shuffle(sites)
    registers = [f"register{number}" for number in range(12)]
    known = [*registers, "memory0", "memory1", "memory2"]
    luts = [f"lut{number}$" for number in range(25)]
    for name in luts:
        design.lut(
            name, f"{sites.pop()}/SLICE{rng.choice('ABCD')}.K{rng.randrange(2)}", *rng.sample(known, rng.randint(1, 4))
        )
        known.append(name)
    for number in range(3):
        design.memory(f"memory{number}", f"X{10 + 20 * number}/Y70/EBR{number}", rng.choice(known))
    pairs = dict(zip(registers[:5], rng.sample(luts, 5), strict=True))
    for name in registers:
        options = {"enable": rng.choice(["", luts[0], luts[1]]), "reset": rng.choice(["", luts[2]])}
        if name in pairs:
            place = design.cells[pairs[name]]["attributes"]["NEXTPNR_BEL"].replace("K", "FF")
            design.flip_flop(name, place, pairs[name], direct=True, **options)
        else:
            place = f"{sites.pop()}/SLICE{rng.choice('ABCD')}.FF{rng.randrange(2)}"
            design.flip_flop(name, place, rng.choice(known), **options)
    return design
