"""A placed netlist as nextpnr writes it (``--write``), and where its cells are."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from daedal.files import write_whole
from daedal.hw.boards.netlist import top_module
from daedal.hw.boards.placement.delays import Pin, Place

BEL, STRENGTH = "NEXTPNR_BEL", "BEL_STRENGTH"
PLACED = 1
"""nextpnr's strength of a place that its placer chose; those of constraints are greater."""

LUT, FLIP_FLOP, MEMORY_WRITE, OTHER = "K", "FF", "RAMW", ""
"""Kinds of places in a logic tile, as nextpnr calls them, and any other place."""

Spot = tuple[int, int, str, int]
"""Column, row, kind and number of a place in a logic tile."""


class Placed:
    """A placed design: ValueError if the file is none.

    Attributes
    ----------
    cells
        Name -> cell, as in the file.
    place, kind
        Name -> where it is, which kind of place.
    ports
        Name -> port -> net; ports without a net are left out.
    driver
        Net -> the output that drives it.
    readers
        Net -> the inputs on it.
    at
        Place in a logic tile -> the cell there.
    """

    def __init__(self, path: Path) -> None:
        self.place: dict[str, Place] = {}
        self.kind: dict[str, str] = {}
        self.at: dict[Spot, str] = {}
        self.ports: dict[str, dict[str, int]] = {}
        self.driver: dict[int, Pin] = {}
        self.readers: dict[int, list[Pin]] = defaultdict(list)
        try:
            self._design: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            self.cells: dict[str, Any] = top_module(self._design)["cells"]
            for name, cell in self.cells.items():
                self._add_place(name, cell["attributes"][BEL])
                self._add_pins(name, cell)
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise ValueError(f"{path} must be a placed netlist as nextpnr writes them with --write") from error

    def _add_place(self, name: str, text: str) -> None:
        column, row, rest = text.split("/")
        x, y = int(column[1:]), int(row[1:])
        kind, number = OTHER, -1
        if rest.startswith("SLICE"):
            part, within = rest.removeprefix("SLICE").split(".")
            kind = within.rstrip("01")
            number = 2 * "ABCD".index(part) + (int(within[-1]) if within[-1].isdigit() else 0)
            self.at[x, y, kind, number] = name
        self.place[name], self.kind[name] = (x, y, number), kind

    def _add_pins(self, name: str, cell: dict[str, Any]) -> None:
        ports = {port: bits[0] for port, bits in cell["connections"].items() if bits and isinstance(bits[0], int)}
        self.ports[name] = ports
        for port, net in ports.items():
            direction = cell["port_directions"][port]
            if direction == "output":
                self.driver[net] = name, port
            elif direction == "input":
                self.readers[net].append((name, port))

    def source(self, pin: Pin) -> Pin:
        """The output that drives an input."""
        name, port = pin
        return self.driver[self.ports[name][port]]

    def is_free(self, name: str) -> bool:
        """Whether the placer chose a cell's place, so that it may be another."""
        return int(self.cells[name]["attributes"].get(STRENGTH, "0"), 2) == PLACED

    def parameter(self, name: str, key: str, other: str = "") -> str:
        """A cell's parameter, without the space that nextpnr writes behind digits."""
        return str(self.cells[name]["parameters"].get(key, other)).strip()

    def move(self, cells: tuple[str, ...], place: Place) -> None:
        """Put cells of logic into a place each of which must be free or theirs."""
        for name in cells:
            x, y, number = self.place[name]
            del self.at[x, y, self.kind[name], number]
        for name in cells:
            x, y, number = self.place[name] = place
            kind = self.kind[name]
            self.at[x, y, kind, number] = name
            self.cells[name]["attributes"][BEL] = f"X{x}/Y{y}/SLICE{'ABCD'[number // 2]}.{kind}{number % 2}"

    def swap(self, one: str, other: str) -> None:
        """Exchange the places of two cells of one type that is not logic."""
        self.place[one], self.place[other] = self.place[other], self.place[one]
        here, there = (self.cells[name]["attributes"] for name in (one, other))
        here[BEL], there[BEL] = there[BEL], here[BEL]

    def write(self, path: Path) -> None:
        """The netlist with its cells where they are now."""
        write_whole(path, json.dumps(self._design).encode())
