"""Rows of LFE5U-85F without logic, so that their wires are for the rows beside them.

nextpnr's placer packs logic into as few columns as it can and leaves the rest of the part empty; ``router2`` then finds
too few wires where the logic is. (``--placer-heap-beta``, which should spread it, has no effect on ECP5.) So some rows
get cells that do nothing, at fixed places and joined to nothing: the rest takes more columns, and the wires of those
rows are free. Flip-flops may still go there.
"""

import json
import os
from pathlib import Path

from daedal.fpga.flow.netlist import top_module

ROWS = tuple(y for y in range(2, 94) if y not in (10, 22, 34, 46, 58, 70, 82))
COLUMNS = range(2, 125)
CELLS = tuple(f"SLICE{part}.K{cell}" for part in "ABCD" for cell in (0, 1))
"""Where LFE5U-85F has logic: rows, columns, cells of one place."""

LEAST_LOGIC = 15_000
"""Logic cells from which on it is worth it."""

LAST_PERIOD = 5
"""At least one row in so many is kept free: the first number, from the board's own on, that leaves room enough."""

FULLEST = 0.72
"""How full the other rows may get. The placer fills at most 0.75 of any area, and some cells must be adjacent."""

LOGIC_CELLS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
"""Yosys' cells of logic -> logic cells of the part."""


def keep_rows_free(netlist: Path, to: Path, period: int) -> int:
    """Write Yosys' netlist (JSON) for nextpnr; returns how many logic cells do nothing in it.

    ``period``: one row in so many is kept free, or fewer if that leaves too little room.
    """
    design = json.loads(netlist.read_text(encoding="utf-8"))
    cells = top_module(design)["cells"]
    rows = rows_to_keep(sum(LOGIC_CELLS.get(cell["type"], 0) for cell in cells.values()), period)
    if not rows:
        os.link(netlist, to)
        return 0
    places = [f"X{x}/Y{y}/{cell}" for y in rows for x in COLUMNS for cell in CELLS]
    for place in places:
        cells[f"row_kept_free/{place}"] = {
            "hide_name": 1, "type": "TRELLIS_COMB", "parameters": {"MODE": "LOGIC", "INITVAL": "0" * 16},
            "attributes": {"BEL": place}, "port_directions": {}, "connections": {},
        }  # fmt: skip
    to.write_text(json.dumps(design), encoding="utf-8")
    return len(places)


def rows_to_keep(logic: int, period: int) -> tuple[int, ...]:
    """The rows to keep free for a design of so many logic cells; none if it is small or too large for that."""
    for number in range(period, LAST_PERIOD + 1):
        kept = ROWS[::number]
        most = FULLEST * len(COLUMNS) * len(CELLS) * (len(ROWS) - len(kept))
        if LEAST_LOGIC <= logic <= most:
            return kept
    return ()
