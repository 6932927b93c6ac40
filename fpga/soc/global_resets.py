"""Resets with very many flip-flops on ECP5's network for clocks, which leaves the wires between cells to all else.

nextpnr puts clocks there by itself, and whatever a ``DCCA`` drives. So this puts such a cell into the netlist.
"""

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

from daedal.base.files import write_whole
from daedal.fpga.flow.netlist import top_module
from daedal.fpga.flow.row_constraints import LOGIC_CELLS

LEAST_FLIP_FLOPS = 1000
"""Flip-flops from which on a reset is worth it."""

MOST_NETS = 8
"""Resets that go there at most; the part has 16 such nets for everything."""

MOST_LOADS = 6
"""Cells of logic on one copy of a flip-flop: where those are that have names next to each other, it can be too."""

FLIP_FLOP, PIN = "TRELLIS_FF", "LSR"


def promote_resets(netlist: Path) -> dict[str, int]:
    """Change Yosys' netlist (JSON) for ECP5; returns the new cells' names with their numbers of flip-flops.

    Only a flip-flop's reset pin is reached from that network. Logic that uses such a reset as well gets it from copies
    of the flip-flop that it comes from, if it does: cells at the pins of the part keep the first one near them.
    """
    design = json.loads(netlist.read_text(encoding="utf-8"))
    module = top_module(design)
    cells: dict[str, Any] = module["cells"]
    pins = [cell["connections"] for cell in cells.values() if cell["type"] == FLIP_FLOP]
    pins = [each for each in pins if isinstance(each.get(PIN, ["0"])[0], int)]  # others have a constant
    counts = Counter(each[PIN][0] for each in pins).most_common(MOST_NETS)
    loads = {net: count for net, count in counts if count >= LEAST_FLIP_FLOPS}
    free = first_free_bit(module)
    fresh = {net: free + number for number, net in enumerate(loads)}
    for each in pins:
        each[PIN] = [fresh.get(each[PIN][0], each[PIN][0])]
    made = {f"global_reset{number}": net for number, net in enumerate(loads)}
    for name, net in made.items():
        cells[name] = {
            "hide_name": 0, "type": "DCCA", "parameters": {}, "attributes": {},
            "port_directions": {"CLKI": "input", "CE": "input", "CLKO": "output"},
            "connections": {"CLKI": [net], "CE": ["1"], "CLKO": [fresh[net]]},
        }  # fmt: skip
        module["netnames"][name] = {"hide_name": 0, "bits": [fresh[net]], "attributes": {}}
    for net in loads:
        copy_for_logic(module, net)
    write_whole(netlist, json.dumps(design).encode())
    return {name: loads[net] for name, net in made.items()}


def copy_for_logic(module: dict[str, Any], net: int) -> None:
    """Give the logic on ``net`` flip-flops of its own, with the inputs of the one that drives ``net``, if one does."""
    cells: dict[str, Any] = module["cells"]
    drivers = [name for name, cell in cells.items() if cell["type"] == FLIP_FLOP and cell["connections"]["Q"] == [net]]
    logic = [
        (cells[name]["connections"], pin)
        for name in sorted(cells)
        if cells[name]["type"] in LOGIC_CELLS
        for pin, bits in cells[name]["connections"].items()
        if bits == [net] and cells[name]["port_directions"][pin] == "input"
    ]
    if not drivers:
        return
    free = first_free_bit(module)
    for number, first in enumerate(range(0, len(logic), MOST_LOADS)):
        bit, name = free + number, f"{drivers[0]}_for_logic{number}"
        cells[name] = deepcopy(cells[drivers[0]])
        cells[name]["connections"]["Q"] = [bit]
        module["netnames"][name] = {"hide_name": 0, "bits": [bit], "attributes": {}}
        for connections, pin in logic[first : first + MOST_LOADS]:
            connections[pin] = [bit]


def first_free_bit(module: dict[str, Any]) -> int:
    """A number that no net of the module has, nor any above."""
    return 1 + max(bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int))
