"""From the narrow beats of the execute unit to lines."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_stream, lane_beat_stream


class BeatsToLine(wiring.Component):
    """Packs beats of ``lane_bytes`` into beats of a line, element 0 first; takes one per cycle.

    A line is given on when it is full or its row ends, in the cycle after its last piece was taken.

    Members
    -------
    i : ``In(lane_beat_stream(config))``
        Pieces; all but the last one of a row are full.
    o : ``Out(beat_stream(config))``
        Lines. What their bytes are that are not valid is undefined.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        super().__init__({"i": In(lane_beat_stream(config)), "o": Out(beat_stream(config)), "empty": Out(1)})
        self._pieces, self._size = config.bus_bytes // config.lane_bytes, config.lane_bytes

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        piece, line = self.i.payload, self.o.payload
        place, take = Signal(range(self._pieces)), Signal()
        complete = piece.last | (place == self._pieces - 1)
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            take.eq(self.i.valid & self.i.ready),
            self.empty.eq(~self.o.valid & (place == 0)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(take):
            m.d.sync += [
                self.o.valid.eq(complete),
                line.data.word_select(place, 8 * self._size).eq(piece.data),
                line.bytes.eq(place * self._size + piece.bytes),
                line.last.eq(piece.last),
                place.eq(Mux(complete, 0, place + 1)),
            ]
        return m
