"""Which of two passes over a row is issued."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.latencies import latencies


class PassOrder(wiring.Component):
    """Keeps the second pass over a row behind the sums of the first one, ``loop`` cycles from beat to beat.

    Members
    -------
    takes : ``In(1)``; twice : ``In(1)``
        A row is taken in this cycle, or none; whether it is one of two passes.
    ends : ``In(1)``; last_beat : ``In(range(register_beats))``
        The last beat of a pass is issued; its number.
    is_first : ``Out(1)``
        It is the first pass over the row that was taken.
    turns : ``Out(1)``
        That ends in this cycle.
    rests : ``Out(1)``
        The first beat of the second pass would find no sum yet.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "takes": In(1),
                "twice": In(1),
                "ends": In(1),
                "last_beat": In(range(config.register_beats)),
                "is_first": Out(1),
                "turns": Out(1),
                "rests": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        loop = latencies(self.config).loop
        rest = Signal(range(loop))
        m.d.comb += [self.turns.eq(self.ends & self.is_first), self.rests.eq(rest.any())]
        with m.If(self.takes):
            m.d.sync += self.is_first.eq(self.twice)
        with m.If(self.turns):
            # A pass of n beats took n cycles at least.
            left = Mux(self.last_beat < loop - 1, loop - 1 - self.last_beat, 0)
            m.d.sync += [self.is_first.eq(0), rest.eq(left)]
        with m.If(self.rests):
            m.d.sync += rest.eq(rest - 1)
        return m
