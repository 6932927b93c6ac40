"""Rows of 16-bit elements on their way into and out of the execute unit, whose beats are of binary32."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_narrow import FloatNarrow
from daedal.hw.execute_unit.fpu.float_widen import FloatWiden
from daedal.hw.execute_unit.stage_layouts import store_beat_layout
from daedal.hw.interfaces import lane_beat_stream
from daedal.hw.isa.elements import BINARY16, LANE


class WidenRows(wiring.Component):
    """Makes two beats of each beat of 16-bit elements, one per cycle; a beat of binary32 passes as it is.

    Rows have whole granules, so an even number of elements comes out: behind an odd row there is one that is not its.

    It holds nothing but which half comes next: a beat stays at ``i`` until its last half is taken, in the same cycle.

    Members
    -------
    i : ``In(lane_beat_stream(config))``
        Beats as they lie in memory.
    kind : ``In(2)``
        The type of the row of which a beat is taken, a ``LengthField``.
    o : ``Out(lane_beat_stream(config))``
        Beats of binary32; the last one of a row has its ``last``.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(lane_beat_stream(config)), "kind": In(2), "o": Out(lane_beat_stream(config))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, beat, whole = self.config, self.i.payload, self.config.lane_bytes
        upper, final, is_narrow = Signal(), Signal(), Signal()
        halves = [beat.data[: 4 * whole], beat.data[4 * whole :]]
        half = Mux(upper, halves[1], halves[0])
        wide = []
        for n in range(config.lanes):
            m.submodules[f"widen{n}"] = unit = FloatWiden(config)
            m.d.comb += [unit.i.eq(half.word_select(n, BINARY16.bits)), unit.kind.eq(self.kind)]
            wide.append(unit.o)
        within = exact_log2(whole)
        twice = Signal(within)
        m.d.comb += [
            is_narrow.eq(self.kind.any()),
            final.eq(~is_narrow | upper | (beat.bytes <= whole // 2)),
            twice.eq((beat.bytes << 1) - 1),
            self.o.payload.data.eq(Mux(is_narrow, Cat(*wide), beat.data)),
            self.o.payload.bytes.eq(Mux(is_narrow, Mux(final, twice + 1, whole), beat.bytes)),
            self.o.payload.last.eq(beat.last & final),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += upper.eq(~final)
        return m


class NarrowRows(wiring.Component):
    """Makes one beat of two whose elements are to have 16 bits, rounded; a beat of binary32 passes as it is.

    Members
    -------
    i : ``In(stream.Signature(store_beat_layout(config)))``
        Beats of binary32, each with the type of its row.
    o : ``Out(lane_beat_stream(config))``
        Beats as they are to lie in memory.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(stream.Signature(store_beat_layout(config))), "o": Out(lane_beat_stream(config))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, beat, bits = self.config, self.i.payload, 4 * self.config.lane_bytes
        held, lower, waits = Signal(), Signal(bits, reset_less=True), Signal()
        elements: list[Value] = []
        for n in range(config.lanes):
            m.submodules[f"narrow{n}"] = unit = FloatNarrow(config)
            m.d.comb += [unit.i.eq(beat.data.word_select(n, LANE.bits)), unit.kind.eq(beat.kind[:2])]
            elements.append(unit.o)
        rounded, is_narrow = Signal(bits), Signal()
        m.d.comb += [
            rounded.eq(Cat(*elements)),
            is_narrow.eq(beat.kind.any()),
            waits.eq(is_narrow & ~held & ~beat.last),
            self.o.payload.data.eq(
                Mux(is_narrow, Cat(Mux(held, lower, rounded), Mux(held, rounded, Const(0, bits))), beat.data)
            ),
            self.o.payload.bytes.eq(
                Mux(is_narrow, (beat.bytes >> 1) + Mux(held, config.lane_bytes // 2, 0), beat.bytes)
            ),
            self.o.payload.last.eq(beat.last),
            self.o.valid.eq(self.i.valid & ~waits),
            self.i.ready.eq(self.o.ready | waits),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(waits), lower.eq(rounded)]
        return m
