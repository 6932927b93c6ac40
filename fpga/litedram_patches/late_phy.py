"""Registers between LiteDRAM and its PHY, for parts where one is far from the other.

Without it, on an LFE5UM5G of grade 8: from the choice of a command, near the ports, to the pins 14.1 ns (routed).
Upstream: nothing to file, it is a PHY that wraps a PHY.
"""

import copy
from typing import Any

from litedram.phy import dfi
from litex.gen import LiteXModule
from migen.genlib.record import DIR_M_TO_S


class LatePhy(LiteXModule):
    """What LiteDRAM says to ``phy``, a cycle later; what comes back is not delayed further.

    A PHY is at the memory's pins, LiteDRAM's controller between these and the core. Its commands come from registers,
    but these cannot be at both places.

    Members
    -------
    dfi
        LiteDRAM's end.
    settings
        Those of ``phy``, with the latency of reads that LiteDRAM sees.
    """

    def __init__(self, phy: Any) -> None:
        first = phy.dfi.phases[0]
        widths = (len(signal) for signal in (first.address, first.bank, first.cs_n, first.wrdata))
        self.dfi = late = dfi.Interface(*widths, nphases=len(phy.dfi.phases))
        self.settings = copy.copy(phy.settings)
        self.settings.read_latency += 1
        for ours, its in zip(late.phases, phy.dfi.phases, strict=True):
            for name, _, direction in ours.layout:
                there, here = getattr(its, name), getattr(ours, name)
                if direction == DIR_M_TO_S:
                    self.sync += there.eq(here)
                else:
                    self.comb += here.eq(there)
