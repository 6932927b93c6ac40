"""From lines to the narrower beats of the execute unit, or from its beats to narrower lines."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_stream, lane_beat_stream


class LineToBeats(wiring.Component):
    """Cuts each beat of a line into beats of ``lane_bytes``, element 0 first; one of these per cycle.

    Where a line is the narrower of the two, it cuts beats of ``lane_bytes`` into lines.

    It holds nothing but a place: a line stays at ``i`` until its last piece is taken, in the same cycle. So what is
    not popped is still in the queue in front.

    Members
    -------
    i : ``In(beat_stream(config))``, or ``In(lane_beat_stream(config))``
        Beats of at least one byte.
    o : ``Out(lane_beat_stream(config))``, or ``Out(beat_stream(config))``
        As many pieces as there are valid bytes for; the last one of a row has its ``last``.
    """

    def __init__(self, config: Config) -> None:
        line, beat = beat_stream(config), lane_beat_stream(config)
        wide, narrow = (line, beat) if config.lane_bytes <= config.bus_bytes else (beat, line)
        super().__init__({"i": In(wide), "o": Out(narrow)})
        self._size = min(config.bus_bytes, config.lane_bytes)
        self._pieces = max(config.bus_bytes, config.lane_bytes) // self._size

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        line, piece = self.i.payload, self.o.payload
        place, final, before = Signal(range(self._pieces)), Signal(), Signal.like(line.bytes)
        within = exact_log2(self._size)
        m.d.comb += [
            before.eq(line.bytes - 1),
            final.eq(place == before[within:]),
            piece.data.eq(line.data.word_select(place, 8 * self._size)),
            piece.bytes.eq(Mux(final, before[:within] + 1, self._size)),
            piece.last.eq(final & line.last),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += place.eq(Mux(final, 0, place + 1))
        return m
