"""Counts checked indices."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.isa.words import CheckControl, CheckKind

BACKLOG_BITS = 32


class LookupCounter(wiring.Component):
    """A strobe for each INDEX check of the bundles that pass.

    A bundle may stand for checks of several levels; they are strobed one per cycle, later.

    Members
    -------
    checks : ``In(CheckControl).array(levels)``
    bundle, iteration : ``In(1)``, ``In(levels)``
        A bundle passes; the levels that made an iteration for it.
    lookup : ``Out(1)``
    empty : ``Out(1)``
        All have been strobed.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "checks": In(CheckControl).array(config.levels),
                "bundle": In(1),
                "iteration": In(config.levels),
                "lookup": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        backlog, new = Signal(BACKLOG_BITS), Signal(range(len(self.checks) + 1))
        counted = [
            self.bundle & made & check.enable & (check.kind == CheckKind.INDEX)
            for made, check in zip(self.iteration, self.checks, strict=True)
        ]
        m.d.sync += new.eq(sum(counted[1:], counted[0]))
        m.d.comb += [self.lookup.eq(backlog != 0), self.empty.eq((backlog == 0) & (new == 0))]
        m.d.sync += backlog.eq(backlog + new - self.lookup)
        return m
