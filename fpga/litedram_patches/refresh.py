"""LiteDRAM's refresher behind registers, so that the end of a refresh is not the slowest path of a system.

Without it, on an LFE5UM5G of grade 8: from the sequencer of refreshes, through the banks, to the PHY 14.3 ns (routed).
Upstream: a register behind ``RefreshSequencer`` in ``litedram/core/refresher.py``, enjoy-digital/litedram. LiteDRAM's
settings take another class of refresher, so nothing of it is rewritten.
"""

from typing import Any

from litedram.core.refresher import Refresher
from litex.gen import LiteXModule
from litex.soc.interconnect import stream


class LateRefresher(LiteXModule):
    """What LiteDRAM's ``Refresher`` asks for, a cycle later.

    In LiteDRAM the end of a refresh goes in one cycle from the sequencer's counters through all banks' requests to the
    commands at the PHY. The commands of a refresh and its end are all late by the same cycle, so the times between them
    stay; the controller is ready from the first to the last of them.

    Parameters are LiteDRAM's: this is a ``refresh_cls`` of its ``ControllerSettings``. ``soon``: it asks in the next
    cycle.
    """

    def __init__(self, settings: Any, clk_freq: float, zqcs_freq: float = 1.0, postponing: int = 1) -> None:
        self.inner = inner = Refresher(settings, clk_freq, zqcs_freq, postponing)
        self.cmd = cmd = stream.Endpoint(inner.cmd.description)
        self.soon = inner.cmd.valid
        early, late = inner.cmd.flatten(), cmd.flatten()
        pairs = zip(early, late, strict=True)
        self.sync += [b.eq(a) for a, b in pairs if a is not inner.cmd.ready]
        self.comb += inner.cmd.ready.eq(cmd.ready)
