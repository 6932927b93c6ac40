"""Notices that nothing moves any more."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config


class Watchdog(wiring.Component):
    """Raises ``hang`` or ``silent`` after ``config.watchdog`` cycles of a launch without progress.

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

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._limit = config.watchdog

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        still = Signal(range(self._limit + 1))
        expired = Signal()
        m.d.sync += still.eq(still + 1)
        with m.If(self.progress | ~self.running):
            m.d.sync += still.eq(0)
        m.d.comb += [
            expired.eq(still == self._limit),
            self.hang.eq(expired & ~self.outstanding),
            self.silent.eq(expired & self.outstanding),
        ]
        return m
