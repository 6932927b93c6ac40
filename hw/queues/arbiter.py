"""Two request streams into one, the first one first."""

from amaranth import Module, Mux
from amaranth.hdl import Elaboratable, ShapeLike, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class RegisteredArbiter(wiring.Component):
    """Merges ``first`` and ``second`` into ``o``, ``first`` with priority; one per cycle, a cycle late.

    Members
    -------
    first, second : ``In(stream.Signature(shape))``
    o : ``Out(stream.Signature(shape))``
    """

    def __init__(self, shape: ShapeLike) -> None:
        signature = stream.Signature(shape)
        super().__init__({"first": In(signature), "second": In(signature), "o": Out(signature)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        with m.If(~self.o.valid | self.o.ready):
            m.d.comb += [self.first.ready.eq(1), self.second.ready.eq(~self.first.valid)]
            m.d.sync += self.o.valid.eq(self.first.valid | self.second.valid)
            with m.If(self.first.valid):
                m.d.sync += self.o.payload.eq(self.first.payload)
            with m.Else():
                m.d.sync += self.o.payload.eq(self.second.payload)
        return m


class CombinationalArbiter(wiring.Component):
    """Gives on what ``first`` offers or, if that is nothing, what ``second`` does; in the same cycle.

    So what ``o`` offers may change before it is taken.

    Members
    -------
    first, second : ``In(stream.Signature(shape))``
    o : ``Out(stream.Signature(shape))``
    """

    def __init__(self, shape: ShapeLike) -> None:
        signature = stream.Signature(shape)
        super().__init__({"first": In(signature), "second": In(signature), "o": Out(signature)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        first, second = Value.cast(self.first.payload), Value.cast(self.second.payload)
        m.d.comb += [
            self.o.valid.eq(self.first.valid | self.second.valid),
            Value.cast(self.o.payload).eq(Mux(self.first.valid, first, second)),
            self.first.ready.eq(self.o.ready),
            self.second.ready.eq(self.o.ready & ~self.first.valid),
        ]
        return m
