"""A register between two streams that cuts the ways of ``valid``, payload and ``ready``."""

from amaranth.hdl import Elaboratable, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class Skid(wiring.Component):
    """Passes one payload per cycle, a cycle later; all outputs are registered.

    That the reader does not take one is known a cycle late in front, so there is a place for one more.

    Members
    -------
    i, o : ``stream.Signature(shape)``
        Payloads, and the same in the same order.
    empty : ``Out(1)``
        None is held.
    """

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "empty": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        i, o = Value.cast(self.i.payload), Value.cast(self.o.payload)
        second, moves = Signal(), Signal()
        kept = Signal(len(i), reset_less=True)
        m.d.comb += [
            self.i.ready.eq(~second),
            self.empty.eq(~self.o.valid),
            moves.eq(~self.o.valid | self.o.ready),
        ]
        with m.If(moves):
            m.d.sync += [self.o.valid.eq(self.i.valid | second), o.eq(Mux(second, kept, i)), second.eq(0)]
        with m.Else():
            m.d.sync += second.eq(second | self.i.valid)
        with m.If(~second):
            m.d.sync += kept.eq(i)
        return m
