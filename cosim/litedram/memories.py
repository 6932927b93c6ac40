"""The DRAMs that can be behind the core, by the names that ``memory=`` takes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dram:
    """A DRAM of LiteDRAM's list of modules, on a bus of some width.

    Attributes
    ----------
    name
        What ``memory=`` calls it.
    module
        Class in ``litedram.modules``: geometry and timing of one chip. Chips side by side make up the width.
    data_bits
        Width of the DRAM's data bus.
    clock
        Clock of controller and core, Hz. The DRAM's own is four times that.
    """

    name: str
    module: str
    data_bits: int
    clock: int

    @property
    def word_bytes(self) -> int:
        """Bytes that move in one cycle of ``clock``: a DRAM burst of 8."""
        return self.data_bits


MEMORIES = {
    dram.name: dram
    for dram in (
        Dram("litedram-ddr3-x16", "MT41K64M16", 16, 100_000_000),
        Dram("litedram-ddr3-x64", "MT41K64M16", 64, 100_000_000),
        Dram("litedram-ddr4-x64", "MT40A512M16", 64, 200_000_000),
    )
}
"""Name -> DRAM."""
