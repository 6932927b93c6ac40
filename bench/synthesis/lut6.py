"""LUTs of six inputs that a unit takes: what Yosys' ``synth_xilinx`` makes of the same Verilog.

It tells the size of the logic on a part of another kind. Nothing is placed, and no clock comes of it.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from bench.synthesis import tools
from daedal.base.files import write_whole

FAMILY = "xc7"
"""Parts whose cells have LUTs of six inputs, carries of four bits, and block RAMs of 36 Kbit."""

OF_RAM = {"RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "SRL16E": 1, "SRLC32E": 1}
"""Cells that are LUTs used as memory -> how many of these each takes."""


def script() -> str:
    """Verilog to cells of the family, without pads and clock buffers."""
    return "\n".join(
        (
            f"read_verilog {tools.UNIT}.v",
            f"synth_xilinx -family {FAMILY} -top {tools.UNIT} -flatten -noiopad -noclkbuf",
            f"tee -o lut6_cells.json stat -json -top {tools.UNIT}",
        )
    )


def luts(cells: Mapping[str, int]) -> int:
    """LUTs among these cells: LUT1 to LUT6 each take one, inverters are part of others, RAM as ``OF_RAM`` says."""
    logic = sum(count for cell, count in cells.items() if cell in {f"LUT{size}" for size in range(1, 7)})
    return logic + sum(OF_RAM.get(cell, 0) * count for cell, count in cells.items())


def measure(folder: Path, timeout: float) -> int:
    """The LUTs of the unit whose Verilog is in ``folder``; kept there. ToolFailed if Yosys fails or takes too long."""
    kept = folder / f"lut6-{hashlib.sha256(script().encode()).hexdigest()[:8]}.json"
    if not kept.exists():
        (folder / "lut6.ys").write_text(script(), encoding="utf-8")
        tools.run(tools.YOSYS, ["lut6.ys"], folder, "lut6.log", timeout=timeout)
        found = json.loads((folder / "lut6_cells.json").read_text())["modules"][f"\\{tools.UNIT}"]
        write_whole(kept, json.dumps({"lut6": luts(found["num_cells_by_type"])}).encode())
    number: int = json.loads(kept.read_text())["lut6"]
    return number
