"""What the tools' reports say, as plain figures."""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.synthesis.tools import UNIT
from bench.synthesis.units import BLOCK_RAM, DISTRIBUTED_RAM, DSP

SMALL_MEMORY = 256
"""Memories of fewer bits may end in flip-flops without being marked."""

CARRY_LUTS, DISTRIBUTED_LUTS = 2, 4
"""LUTs that a pair of carries (CCU2C) and a distributed RAM (TRELLIS_DPR16X4) take."""

_MEMORY = re.compile(r"parameter \\MEMID \"(.*?)\"\s+parameter \\WIDTH (\d+).*?parameter \\SIZE (\d+)", re.DOTALL)


@dataclass(frozen=True)
class Memory:
    """A memory of the unit: ``depth`` words of ``width`` bits."""

    name: str
    depth: int
    width: int

    @property
    def bits(self) -> int:
        """Its size."""
        return self.depth * self.width

    def __str__(self) -> str:
        return f"{self.name} {self.depth} × {self.width}"


@dataclass
class Area:
    """What a unit takes.

    Attributes
    ----------
    lut
        LUTs: LUT4 and those that carries and distributed RAM take.
    lut4, carry, distributed
        Cells LUT4, CCU2C and TRELLIS_DPR16X4.
    ff, bram, dsp
        Flip-flops, block RAMs of 18 Kbit (DP16KD), multipliers (MULT18X18D).
    multipliers
        Products in the source; each takes at least one DSP unless it is of constants.
    memories, in_flip_flops
        Memories in the source, and those of them that became flip-flops.
    """

    lut: int
    lut4: int
    carry: int
    distributed: int
    ff: int
    bram: int
    dsp: int
    multipliers: int
    memories: list[str] = field(default_factory=list)
    in_flip_flops: list[str] = field(default_factory=list)

    def kinds(self) -> frozenset[str]:
        """The hard resources that it uses."""
        used = {BLOCK_RAM: self.bram, DISTRIBUTED_RAM: self.distributed, DSP: self.dsp}
        return frozenset(kind for kind, count in used.items() if count)

    def marks(self, wanted: frozenset[str]) -> list[str]:
        """What did not map as it should, in words."""
        marks = [f"no {kind}" for kind in sorted(wanted - self.kinds())]
        if self.multipliers and not self.dsp:
            marks.append(f"{self.multipliers} multipliers in LUTs")
        return marks + [f"in flip-flops: {memory}" for memory in self.in_flip_flops]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def read_memories(dump: str) -> list[Memory]:
    """The memories in Yosys' dump of ``$mem_v2`` cells."""
    return [Memory(name.replace("\\", ""), int(depth), int(width)) for name, width, depth in _MEMORY.findall(dump)]


def read_area(folder: Path) -> Area:
    """The unit's area from what the synthesis script left in ``folder``."""
    counts = json.loads((folder / "cells.json").read_text())["modules"][f"\\{UNIT}"]["num_cells_by_type"]
    lut4, carry, distributed = (counts.get(cell, 0) for cell in ("LUT4", "CCU2C", "TRELLIS_DPR16X4"))
    soft = read_memories((folder / "flip_flop_memories.txt").read_text())
    return Area(
        lut=lut4 + CARRY_LUTS * carry + DISTRIBUTED_LUTS * distributed,
        lut4=lut4,
        carry=carry,
        distributed=distributed,
        ff=counts.get("TRELLIS_FF", 0),
        bram=counts.get("DP16KD", 0),
        dsp=counts.get("MULT18X18D", 0),
        multipliers=len((folder / "multipliers.txt").read_text().split()),
        memories=[str(memory) for memory in read_memories((folder / "memories.txt").read_text())],
        in_flip_flops=[str(memory) for memory in soft if memory.bits >= SMALL_MEMORY],
    )


SLOW_START = 4.0
"""ns; clock-to-output of a block RAM without its output register is longer, that of all else shorter."""


def read_clock(report: Path) -> tuple[float, str]:
    """Highest clock, MHz, and from where to where the path leads that limits it."""
    found = json.loads(report.read_text())
    clock = min((entry["achieved"] for entry in found["fmax"].values()), default=0.0)
    for path in found["critical_paths"]:
        if "async" not in path["from"] + path["to"] and path["path"]:
            logic = sum(step["delay"] for step in path["path"] if step["type"] != "routing")
            routing = sum(step["delay"] for step in path["path"] if step["type"] == "routing")
            first, last = path["path"][0]["from"]["cell"], path["path"][-1]["to"]["cell"]
            ends = f"{_plain(first)} → {_plain(last)}"
            if path["path"][0]["delay"] > SLOW_START:
                ends = f"unregistered block RAM {ends}"
            return clock, f"{ends} (logic {logic:.1f} ns, routing {routing:.1f} ns)"
    return clock, ""


def estimated_clock(log: str) -> float:
    """The clock, MHz, that nextpnr estimates before routing, from its log; 0 if it says none."""
    found = re.findall(r"Max frequency for clock\s+'[^']*': ([0-9.]+) MHz", log)
    return float(found[-1]) if found else 0.0


def _plain(cell: str) -> str:
    """A cell's name as the source has it."""
    return re.sub(r"_(TRELLIS_FF|LUT4|CCU2C|DP16KD|MULT18X18D).*", "", cell).removeprefix("unit.")
