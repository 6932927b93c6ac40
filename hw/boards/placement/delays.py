"""Delays of a placed design, as nextpnr writes them with ``--sdf``, and its formula for wires."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PS = 0.001
"""A picosecond, ns."""

ESCAPED = re.compile(r"\\(.)")
SLOWEST = 2
"""The last of an SDF triple: least, typical, most."""

NEAR = 5
"""Tiles up to which a wire costs twice."""

STEPS = 6
"""Of a wire within a tile."""

SLOW_LUTS = (1, 6)
"""Logic cells of a tile whose LUT has no direct wire to the others there."""

NETWORK = "CLKO"
"""The output that drives the part's network for clocks: its wires count as none."""

Pin = tuple[str, str]
"""Cell and port."""

Place = tuple[int, int, int]
"""Column, row, and number in the tile of a logic cell (-1: of something else)."""


@dataclass
class Delays:
    """All in ns, in the slowest case."""

    through: dict[str, list[tuple[str, str, float]]] = field(default_factory=lambda: defaultdict(list))
    """Cell -> input, output and delay of each way through it."""
    starts: dict[Pin, float] = field(default_factory=dict)
    """Output -> from the clock's edge to it."""
    ends: dict[Pin, float] = field(default_factory=dict)
    """Input -> how long before the clock's edge it must be there."""
    wires: dict[Pin, float] = field(default_factory=dict)
    """Input -> from its driver to it."""


def read_delays(path: Path) -> Delays:
    """What the file says; ValueError if it is no such file."""
    try:
        with path.open(encoding="utf-8") as lines:
            found = _read(lines)
    except (ValueError, IndexError):
        found = Delays()
    if not found.wires:
        raise ValueError(f"{path} must be a file of delays as nextpnr writes them with --sdf")
    return found


def _read(lines: Iterable[str]) -> Delays:
    found, cell = Delays(), ""
    for line in lines:
        words = line.split()
        match words[0] if words else "":
            case "(INSTANCE":
                cell = _name(words[1][:-1]) if len(words) > 1 else ""
            case "(INTERCONNECT":
                reader, _, port = _name(words[2]).rpartition("/")
                found.wires[reader, port] = _slowest(words[3])
            case "(IOPATH":
                _add_path(found, cell, words[1], words[2], _slowest(words[3]))
            case "(SETUPHOLD" if words[1] == "(posedge":
                found.ends[cell, words[2].rstrip(")")] = _slowest(words[5])
    return found


def _add_path(found: Delays, cell: str, start: str, end: str, ns: float) -> None:
    if start.startswith("CLK") and start != "CLKI":
        found.starts[cell, end] = max(ns, found.starts.get((cell, end), 0.0))
    else:
        found.through[cell].append((start, end, ns))


def _name(text: str) -> str:
    return ESCAPED.sub(r"\1", text)


def _slowest(triple: str) -> float:
    return int(triple.strip("()").split(":")[SLOWEST]) * PS


def spread(distance: int) -> int:
    """Steps of so many columns or rows."""
    return distance + min(distance, NEAR)


def steps(port: str, place: Place, reading_port: str, reading_place: Place) -> int:
    """Length of a wire from an output to an input in nextpnr's formula (``predictDelay`` of its ECP5): the delay is
    that times a number of the speed grade's.
    """
    if port == NETWORK or (port, reading_port) in (("FCO", "FCI"), ("F", "DI")):
        return 0
    across, up = abs(place[0] - reading_place[0]), abs(place[1] - reading_place[1])
    if not across and not up and reading_port in ("A", "B", "C", "D"):
        same = port == "Q" and place[2] == reading_place[2]
        if same or (port == "F" and place[2] not in SLOW_LUTS):
            return 0
    return STEPS + spread(across) + spread(up)


def step_delay(lengths: Iterator[tuple[int, float]]) -> float:
    """What a step takes, ns, from lengths and delays of wires.

    ValueError if they are not in proportion: then nextpnr's formula is another one.
    """
    pairs = [pair for pair in lengths if pair[0]]
    if not pairs:
        raise ValueError("there are no wires")
    each = pairs[0][1] / pairs[0][0]
    for length, delay in pairs:
        if abs(length * each - delay) > 2 * PS:
            raise ValueError(f"a wire of {length} steps takes {delay:.3f} ns where others need {each:.3f} ns a step")
    return each
