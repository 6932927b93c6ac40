"""Registers between units: a register with a second one behind it, so that its ``ready`` is a register; or less."""

from amaranth.hdl import Elaboratable, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config


class SkidBuffer(wiring.Component):
    """A queue of two in flip-flops: nothing of ``o`` reaches ``i`` in the same cycle, nor the other way round.

    One payload per cycle, a cycle late. When ``o`` is not taken what comes then is kept, and ``i`` is not ready until
    that has gone on. ``Fifo`` of depth 2 is one that counts.

    Members
    -------
    i, o : streams of ``shape``
        While ``o`` is not valid its payload is what was at ``i`` in the cycle before.
    empty : ``Out(1)``
        None is held.
    """

    def __init__(self, shape: ShapeLike) -> None:
        signature = stream.Signature(shape)
        super().__init__({"i": In(signature), "o": Out(signature), "empty": Out(1)})
        self._width = Shape.cast(shape).width

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        kept, full, move = Signal(self._width), Signal(), Signal()
        m.d.comb += [move.eq(~self.o.valid | self.o.ready), self.i.ready.eq(~full), self.empty.eq(~self.o.valid)]
        m.d.sync += full.eq((full | self.i.valid) & ~move)
        with m.If(~full):  # whether it is needed or not: that comes late in a cycle
            m.d.sync += kept.eq(Value.cast(self.i.payload))
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(full | self.i.valid),
                Value.cast(self.o.payload).eq(Mux(full, kept, Value.cast(self.i.payload))),
            ]
        return m


class Single(wiring.Component):
    """One register: ``i`` is ready if what it holds is taken in the same cycle.

    Members: as in ``SkidBuffer``.
    """

    def __init__(self, shape: ShapeLike) -> None:
        signature = stream.Signature(shape)
        super().__init__({"i": In(signature), "o": Out(signature), "empty": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += [self.i.ready.eq(~self.o.valid | self.o.ready), self.empty.eq(~self.o.valid)]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), Value.cast(self.o.payload).eq(Value.cast(self.i.payload))]
        return m


class Direct(wiring.Component):
    """Nothing at all.

    Members: as in ``SkidBuffer``.
    """

    def __init__(self, shape: ShapeLike) -> None:
        signature = stream.Signature(shape)
        super().__init__({"i": In(signature), "o": Out(signature), "empty": Out(1, init=1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        return m


def optional_skid(config: Config, shape: ShapeLike) -> SkidBuffer | Direct:
    """What cuts a way between two units whose ``ready`` is late, on machines that need it for their clock."""
    return Direct(shape) if config.is_serial else SkidBuffer(shape)
