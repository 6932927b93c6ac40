"""What may be together in a logic tile of ECP5 (nextpnr's ``slices_compatible``): eight LUTs and eight flip-flops.

Two of each are a slice. The flip-flops of a slice share their enable, those of a tile their clock and their reset. A
LUT next to one with carries must have carries too; where a distributed memory is written from there are none.
"""

from daedal.hw.boards.placement.delays import Place
from daedal.hw.boards.placement.netlist import FLIP_FLOP, LUT, MEMORY_WRITE, Placed

CELLS = range(8)
MEMORY_WRITER = 4
"""Where it is, in the third slice; the places of the LUTs of that slice are its own."""

WIDE = frozenset(("OFX", "FXA", "FXB", "F1", "M"))
"""Ports of LUTs that make a multiplexer together."""

Cells = tuple[str, ...]


class Tiles:
    """Which cells move together, and where they fit; ValueError if there are multiplexers wider than a LUT."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self.columns_and_rows = frozenset((x, y) for x, y, kind, _ in placed.at if kind in (LUT, FLIP_FLOP))
        """Of tiles that have logic: others are left alone."""
        self._tile_wide: dict[str, tuple[object, ...]] = {}
        self._inverted: set[str] = set()
        """Flip-flops with an inverted clock or reset."""
        self._slice_wide: dict[str, tuple[object, ...]] = {}
        self._group: dict[str, Cells] = {}
        for name, kind in placed.kind.items():
            if kind == FLIP_FLOP:
                self._add_flip_flop(name)
            elif kind == LUT and WIDE.intersection(placed.ports[name]):
                raise ValueError(f"{name} is part of a wide multiplexer: synthesise with -nowidelut")
            elif kind == LUT and placed.parameter(name, "MODE", "LOGIC") == "LOGIC":
                self._add_lut(name)
        self._group = {name: group for name, group in self._group.items() if all(map(placed.is_free, group))}

    def _add_flip_flop(self, name: str) -> None:
        placed, ports = self._placed, self._placed.ports[name]
        enable = placed.parameter(name, "CEMUX", "CE")
        inverted = tuple(placed.parameter(name, key) in ("INV", "0") for key in ("CLKMUX", "LSRMUX"))
        if any(inverted):
            self._inverted.add(name)
        asynchronous = placed.parameter(name, "SRMODE") == "ASYNC"
        self._tile_wide[name] = ports.get("CLK"), ports.get("LSR"), inverted, asynchronous
        self._slice_wide[name] = (
            ports.get("CE"), enable in ("INV", "0"), enable in ("1", "0"), placed.parameter(name, "GSR"),
        )  # fmt: skip
        if "DI" not in ports:
            self._group[name] = (name,)

    def _add_lut(self, name: str) -> None:
        """A LUT, and the flip-flop that takes its output by the wire between the two of one place."""
        ports = self._placed.ports[name]
        readers = self._placed.readers[ports["F"]] if "F" in ports else []
        group = (name, *(reader for reader, port in readers if port == "DI"))
        if len({self._placed.place[each] for each in group}) == 1:
            self._group.update(dict.fromkeys(group, group))

    def group(self, name: str) -> Cells:
        """The cells that move with this one; none if it must stay."""
        return self._group.get(name, ())

    def find(self, group: Cells, column: int, row: int) -> Place | None:
        """A place for a group in a tile with logic, if there is any."""
        if (column, row) not in self.columns_and_rows:
            return None
        return next(((column, row, number) for number in CELLS if self._fits(group, (column, row, number))), None)

    def _fits(self, group: Cells, place: Place) -> bool:
        kinds = self._placed.kind
        return all(self._fits_lut(group, place) if kinds[name] == LUT else self._fits_flip_flop(group, name, place)
                   for name in group)  # fmt: skip

    def _fits_lut(self, group: Cells, place: Place) -> bool:
        x, y, number = place
        at = self._placed.at
        beside = at.get((x, y, LUT, number ^ 1))
        writer = number // 2 == MEMORY_WRITER // 2 and (x, y, MEMORY_WRITE, MEMORY_WRITER) in at
        free = at.get((x, y, LUT, number)) in (None, *group)
        return free and not writer and (beside is None or self._placed.parameter(beside, "MODE") != "CCU2")

    def _fits_flip_flop(self, group: Cells, name: str, place: Place) -> bool:
        x, y, number = place
        at = self._placed.at
        there = {other: cell for other in CELLS if (cell := at.get((x, y, FLIP_FLOP, other))) and cell not in group}
        beside = there.get(number ^ 1)
        return (
            number not in there
            and all(self._tile_wide[cell] == self._tile_wide[name] for cell in there.values())
            and (beside is None or self._slice_wide[beside] == self._slice_wide[name])
            and not (name in self._inverted and self._has_memory(x, y))
        )

    def _has_memory(self, x: int, y: int) -> bool:
        """Whether there is distributed memory, whose clock and write enable are not inverted."""
        luts = (self._placed.at.get((x, y, LUT, number)) for number in CELLS)
        return any(self._placed.parameter(cell, "MODE") == "DPRAM" for cell in luts if cell)
