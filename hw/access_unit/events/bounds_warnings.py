"""Counts values outside their bounds that were replaced, and picks the value that a record is to name."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.lib.ladder import climb, rungs


class BoundsWarnings(wiring.Component):
    """The replaced values of the bundles that pass, two cycles later, and one way out for the values of all checks.

    A level keeps the first value that it replaced in a nest, so what a level has when a launch's first warning is
    seen is that warning's value.

    Members
    -------
    bundle, replaced : ``In(1)``, ``In(levels)``
        A bundle passes; the levels whose check replaced a value in it.
    warns : ``In(levels)``
        Levels whose check is to warn.
    values : ``In(64).array(levels)``
        What each level's check found.
    level : ``In(3)``
        The level whose value is wanted while there is no warning.
    count : ``Out(range(levels + 1))``
        Values replaced.
    warning : ``Out(1)``
        Strobe: ``value`` is that of a warning, of the outermost level if several warn of one bundle.
    value : ``Out(64)``
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "bundle": In(1),
                "replaced": In(config.levels),
                "warns": In(config.levels),
                "values": In(64).array(config.levels),
                "level": In(3),
                "count": Out(range(config.levels + 1)),
                "warning": Out(1),
                "value": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        marks, warned = Signal(len(self.values)), Signal(len(self.values))
        first = [bit & ~warned[:number].any() for number, bit in enumerate(warned)]
        chosen = [Mux(warned.any(), bit, self.level == number) for number, bit in enumerate(first)]
        steps = Signal.like(rungs(chosen))
        m.d.comb += [warned.eq(marks & self.warns), steps.eq(rungs(chosen))]
        m.d.sync += [
            marks.eq(Mux(self.bundle, self.replaced, 0)),
            self.count.eq(sum((marks[n] for n in range(1, len(marks))), marks[0])),
            self.warning.eq(warned.any()),
            self.value.eq(climb(list(self.values), steps)),
        ]
        return m
