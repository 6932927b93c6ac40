"""Energy of a call as a range: what published figures of memories and of chips leave open."""

from collections.abc import Mapping
from dataclasses import dataclass

from daedal.bench.suites.prediction import ADD_PJ, FPGA_FACTOR, ON_CHIP_PASSES, SRAM_PJ_PER_BYTE

BITS = 8


@dataclass(frozen=True)
class Bit:
    """Energy of a bit from or to a DRAM: the least and the most that is published, pJ, and where."""

    least: float
    most: float
    source: str


HOROWITZ = "M. Horowitz, Computing's energy problem, ISSCC 2014: 1.3 to 2.6 nJ for 64 bits of DRAM"
OCONNOR = "M. O'Connor et al., Fine-Grained DRAM, MICRO 2017: 3.92 pJ a bit for HBM2, 14 for GDDR5"
_DDR = Bit(20, 40, HOROWITZ)

DRAM: Mapping[str, Bit] = {
    "litedram-ddr3": Bit(20, 54, f"{HOROWITZ}; a module of DDR3-1333 takes 4.6 W at 10.7 GB/s (Intel, IDF 2011)"),
    "litedram-ddr4": _DDR,
    "ddr4": _DDR,
    "ddr5": Bit(20, 40, f"{HOROWITZ}; no figure of DDR5 itself"),
    "lpddr4x": Bit(3.9, 20, f"not less than HBM2, not more than DDR: {OCONNOR}; {HOROWITZ}"),
    "hbm2e": Bit(3.9, 14, f"HBM2 itself, and GDDR5 as the most that it can be: {OCONNOR}"),
}
"""How a memory's name begins -> energy of a bit. Memory ``ideal`` has none."""

CHIP = (
    "Arithmetic and memory of the core: M. Horowitz (45 nm, 0.9 V), one addition for each element of a looked-up row, "
    f"{ON_CHIP_PASSES} passes through memories of 8 KiB. The least is that of a chip; for the most, arithmetic is "
    f"that of an FPGA, {FPGA_FACTOR} times as much (I. Kuon, J. Rose, IEEE TCAD 26 (2), 2007)."
)


@dataclass(frozen=True)
class Range:
    """The least and the most energy, nJ; of it that of the DRAM; without clocks, leakage and the host."""

    least: float
    most: float
    dram_least: float
    dram_most: float


def bit_of(memory: str) -> Bit | None:
    """Energy of a bit of this memory; None if nothing is known."""
    return next((bit for name, bit in DRAM.items() if memory.startswith(name)), None)


def energy(memory: str, moved: int, elements: int) -> Range | None:
    """Of a call that moves so many bytes and adds so many elements; None for a memory of which nothing is known."""
    bit = bit_of(memory)
    if bit is None:
        return None
    dram = [moved * BITS * each / 1000 for each in (bit.least, bit.most)]
    on_chip = moved * SRAM_PJ_PER_BYTE * ON_CHIP_PASSES / 1000
    added = elements * ADD_PJ / 1000
    return Range(dram[0] + on_chip + added, dram[1] + on_chip + added * FPGA_FACTOR, dram[0], dram[1])
