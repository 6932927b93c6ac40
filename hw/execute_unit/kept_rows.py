"""Rows that the execute unit keeps for a second reading."""

from amaranth import Module, ResetInserter, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config import Config
from daedal.hw.interfaces import lane_beat_stream
from daedal.hw.queues.queue import Queue
from daedal.hw.queues.up_down import up_down


class KeptRows(wiring.Component):
    """First in, first out: beats of rows that were popped, in ``config.kept_beats`` places.

    Members
    -------
    clear : ``In(1)``
        Keep nothing; not in a cycle in which a beat comes or goes.
    keep : ``In(1)``
        A beat to keep is issued in this cycle.
    i : ``In(lane_beat_stream(config))``
        That beat, a cycle later.
    last_beat : ``In(range(register_beats))``; fits : ``Out(1)``
        Whether a row with this last beat finds room; only before its first beat is issued.
    o : ``Out(lane_beat_stream(config))``
        The beats kept, in their order.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "clear": In(1),
                "keep": In(1),
                "i": In(lane_beat_stream(config)),
                "last_beat": In(range(config.register_beats)),
                "fits": Out(1),
                "o": Out(lane_beat_stream(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        queue = Queue(self.i.payload.shape(), depth=self.config.kept_beats)
        m.submodules.queue = ResetInserter(self.clear)(queue)
        held = Signal(range(self.config.kept_beats + 1))
        connect(m, flipped(self.i), queue.i)
        connect(m, queue.o, flipped(self.o))
        m.d.comb += self.fits.eq(held + self.last_beat < self.config.kept_beats)
        up_down(m, held, up=self.keep, down=self.o.valid & self.o.ready)
        with m.If(self.clear):
            m.d.sync += held.eq(0)
        return m


class KeptCount(wiring.Component):
    """How many rows are kept, by the instructions that were dispatched.

    Members
    -------
    launch : ``In(1)``
        None are.
    keep, drop : ``In(1)``
        One more, one less; not both.
    beyond : ``In(3)``; enough : ``Out(1)``
        More than this are.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"launch": In(1), "keep": In(1), "drop": In(1), "beyond": In(3), "enough": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        rows = Signal(range(self.config.kept_beats + 1))
        m.d.comb += self.enough.eq(rows > self.beyond)
        up_down(m, rows, up=self.keep, down=self.drop)
        with m.If(self.launch):
            m.d.sync += rows.eq(0)
        return m
