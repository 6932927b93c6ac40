"""Rows that the execute unit keeps for a second reading."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.interfaces import lane_beat_stream
from daedal.hw.lib.replicate import replicate
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.skid_buffer import optional_skid
from daedal.hw.queues.up_down_counter import up_down


class RowStore(wiring.Component):
    """First in, first out: beats of rows that were popped, in ``config.kept_beats`` places.

    Members
    -------
    clear : ``In(1)``
        Keep nothing; not in a cycle in which a beat comes or goes.
    free : ``In(1)``; comes, keeps, drops : ``In(1)``; last_beat : ``In(range(register_beats))``
        A row may be taken that is to be issued next; if ``comes``, there is one, with this last beat, which is kept, or
        is one that was; not both.
    taken : ``In(1)``
        It was taken when the lanes were ``free`` last: that is known late.
    fits : ``Out(1)``
        The row that was taken last finds room when all before it are issued, or needs none.
    i : ``In(lane_beat_stream(config))``
        The beats to keep.
    o : ``Out(lane_beat_stream(config))``
        The beats kept, in their order.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "clear": In(1),
                "free": In(1),
                "comes": In(1),
                "keeps": In(1),
                "drops": In(1),
                "taken": In(1),
                "last_beat": In(range(config.register_beats)),
                "i": In(lane_beat_stream(config)),
                "fits": Out(1),
                "o": Out(lane_beat_stream(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        queue = Fifo(self.i.payload.shape(), depth=self.config.kept_beats)
        # Whether a beat is wanted is known late, and would reach all block RAMs of the queue.
        out = optional_skid(self.config, self.o.payload.shape())
        m.submodules.queue, m.submodules.out = ResetInserter(self.clear)(queue), ResetInserter(self.clear)(out)
        # As if all rows that were taken were issued: with the one that was last seen, and without it.
        held, without = Signal(range(self.config.kept_beats + 1)), Signal(range(self.config.kept_beats + 1))
        before = Mux(self.taken, held, without)
        connect(m, flipped(self.i), queue.i)
        connect(m, queue.o, out.i)
        connect(m, out.o, flipped(self.o))
        # One adder: ~x is -x - 1.
        beats = Cat(self.last_beat ^ replicate(self.drops, len(self.last_beat)), self.drops).as_signed()
        counts = self.comes & (self.keeps | self.drops)
        with m.If(self.free):
            m.d.sync += [
                self.fits.eq(~self.keeps | (before + self.last_beat < self.config.kept_beats)),
                without.eq(before),
                held.eq(Mux(counts, before + beats + ~self.drops, before)),
            ]
        with m.If(self.clear):
            m.d.sync += [held.eq(0), without.eq(0)]
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
