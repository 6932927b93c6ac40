"""Notices that nothing moves any more."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import WATCHDOG_CYCLES


class Watchdog(wiring.Component):
    """Raises ``hang`` or ``silent`` after ``WATCHDOG_CYCLES`` cycles of a launch without progress.

    Members
    -------
    running : ``In(1)``
        A launch is in work.
    progress : ``In(1)``
        Something moved in this cycle.
    outstanding : ``In(1)``
        Memory owes an answer.
    hang, silent : ``Out(1)``
        Strobes: nothing moved and memory owed nothing; or memory owed an answer.
    """

    running: In(1)
    progress: In(1)
    outstanding: In(1)
    hang: Out(1)
    silent: Out(1)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        still = Signal(range(WATCHDOG_CYCLES + 1))
        expired = Signal()
        m.d.sync += still.eq(still + 1)
        with m.If(self.progress | ~self.running):
            m.d.sync += still.eq(0)
        m.d.comb += [
            expired.eq(still == WATCHDOG_CYCLES),
            self.hang.eq(expired & ~self.outstanding),
            self.silent.eq(expired & self.outstanding),
        ]
        return m
