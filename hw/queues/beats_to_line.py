"""From the narrow beats of the execute unit to lines, or from narrow lines to its beats."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_stream, lane_beat_layout, lane_beat_stream
from daedal.hw.queues.skid_buffer import SkidBuffer


class BeatsToLine(wiring.Component):
    """Packs beats of ``lane_bytes`` into beats of a line, element 0 first; takes one per cycle.

    Where a line is the narrower of the two, it packs lines into beats of ``lane_bytes``.

    A line is given on when it is full or its row ends, in the cycle after its last piece was taken.

    Members
    -------
    i : ``In(lane_beat_stream(config))``, or ``In(beat_stream(config))``
        Pieces; all but the last one of a row are full.
    o : ``Out(beat_stream(config))``, or ``Out(lane_beat_stream(config))``
        Lines. What their bytes are that are not valid is undefined.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        line, beat = beat_stream(config), lane_beat_stream(config)
        wide, narrow = (line, beat) if config.lane_bytes <= config.bus_bytes else (beat, line)
        super().__init__({"i": In(narrow), "o": Out(wide), "empty": Out(1)})
        self._size = min(config.bus_bytes, config.lane_bytes)
        self._pieces = max(config.bus_bytes, config.lane_bytes) // self._size

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


class LinesToBeats(wiring.Component):
    """``BeatsToLine`` for narrow lines, and two beats behind it: one is packed while others are taken in parts.

    So a line is taken in every cycle, also if a row's last beat has few of them, as long as what is taken of two beats
    takes no longer than their lines. Each beat is there a cycle later.

    Members: as in ``BeatsToLine``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__({"i": In(beat_stream(config)), "o": Out(lane_beat_stream(config)), "empty": Out(1)})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.pack = pack = BeatsToLine(self._config)
        m.submodules.ready = ready = SkidBuffer(lane_beat_layout(self._config))
        connect(m, flipped(self.i), pack.i)
        connect(m, pack.o, ready.i)
        connect(m, ready.o, flipped(self.o))
        m.d.comb += self.empty.eq(pack.empty & ready.empty)
        return m
