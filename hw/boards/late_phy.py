"""A register stage between LiteDRAM and its PHY, where the memory's pins are far from the controller."""

import copy
from typing import Any

from litedram.phy.dfi import Interface
from litex.gen import LiteXModule
from migen.genlib.record import DIR_M_TO_S


class LatePhy(LiteXModule):
    """LiteDRAM's PHY ``phy`` behind registers: commands and written data reach it a cycle later.

    LiteDRAM's choice of a command and the way to the pins are one path otherwise: the registers that follow the choice
    are between both. Everything is late by the same cycle, so nothing changes but the latency of reads.

    Members
    -------
    dfi, settings
        As a PHY has them.
    """

    def __init__(self, phy: Any) -> None:
        phases = phy.dfi.phases
        first = phases[0]
        self.settings = copy.copy(phy.settings)
        self.settings.read_latency += 1
        self.dfi = Interface(
            len(first.address), len(first.bank), len(first.cs_n), len(first.rddata), nphases=len(phases)
        )
        for outer, inner in zip(self.dfi.phases, phases, strict=True):
            for name, _, direction in outer.layout:
                ours, its = getattr(outer, name), getattr(inner, name)
                if direction == DIR_M_TO_S:
                    self.sync += its.eq(ours)
                else:
                    self.comb += ours.eq(its)
