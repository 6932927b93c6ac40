"""Stores: rows from the registers to the store data queue, beside the lanes."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import (
    is_long,
    register_beat,
    register_number,
    register_place,
    store_beat_layout,
    store_layout,
)
from daedal.hw.interfaces import context_bits
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.words import LengthField
from daedal.hw.queues.fifo import Fifo

SCALARS_AHEAD = 8
"""Scalars that can wait to be stored while others are computed."""


class StorePort(wiring.Component):
    """Takes rows to store, reads them one beat per cycle and queues the beats.

    A row starts when the queue has room for all of it and when all rows issued before it have been issued to
    the end; a scalar register when the reduction for it has ended, too. Scalars that wait for theirs are kept in a
    queue of ``SCALARS_AHEAD``. From then on it goes as if it went through the lanes: a beat is read in the cycle in
    which a result issued with it would be written. So it finds all results of rows before it, and what is issued
    after its start cannot overtake it.

    Members
    -------
    i : ``In(stream.Signature(store_layout(config)))``
        Rows, one at a time.
    issuing : ``In(1)``; apart : ``In(1)``
        A row is issued that is not at its end in this cycle; it came after the one that is offered.
    halt : ``In(1)``
        Start no more.
    reduced : ``In(scalars)``
        These scalar registers wait for a reduction.
    held : ``Out(1)``; register, context
        A row waits that does not start in this cycle, if nothing is ``issuing``: its register must not be written by
        rows issued next.
    stored : ``Out(scalars)``
        Scalar registers of which the same is true, or was in the cycle before.
    pending, reading : ``Out(1)``
        A row from vector register ``register`` waits, if only in this cycle; one is being read from ``read_register``.
    long : ``Out(1)``
        The row that waits, or starts in this cycle, has more beats than a context owns.
    read_long : ``Out(1)``; read_register
        Such a row is being read, from this register. Its beats further on belong to other contexts as well, and must
        not be written until they are read.
    full : ``Out(1)``
        It waits for room in the queue.
    read_address : ``Out``; read_data : ``In(8 * lane_bytes)``
        Port of the registers, a ``register_place``; the data come one cycle after the address.
    o : ``Out(stream.Signature(store_beat_layout(config)))``
        The queue's output.
    idle : ``Out(1)``
        Nothing waits, is being read, or is in the queue.
    mark : ``Out(range(store_beats + 1))``; clear : ``In(1)``
        The queue's high-water mark; ``clear`` sets it to the present level.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(store_layout(config))),
                "issuing": In(1),
                "apart": In(1),
                "halt": In(1),
                "reduced": In(config.scalars),
                "held": Out(1),
                "register": Out(register_number(config)),
                "stored": Out(config.scalars),
                "pending": Out(1),
                "reading": Out(1),
                "context": Out(context_bits(config)),
                "long": Out(1),
                "read_long": Out(1),
                "read_register": Out(register_number(config)),
                "full": Out(1),
                "read_address": Out(register_place(config)),
                "read_data": In(8 * config.lane_bytes),
                "o": Out(stream.Signature(store_beat_layout(config))),
                "idle": Out(1),
                "mark": Out(range(config.store_beats + 1)),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        waiting, follows, start, row_ends = Signal(), Signal(), Signal(), Signal()
        may_start = Signal()
        row = Signal(store_layout(self.config))
        self._empty, self._follows = Signal(init=1), Signal(init=1)
        i = self._ahead(m)
        m.d.comb += [
            may_start.eq(waiting & row_ends & ~self.full & ~self.halt & ~self._reduces(m, i, row)),
            start.eq(may_start & ~(follows & self.issuing)),
            # A row is taken only in cycles without ``issuing``, which is known late.
            self.held.eq(waiting & ~may_start & ~row.scalar),
            self.long.eq(waiting & is_long(self.config, row.row)),
            self.register.eq(row.register),
            self.context.eq(row.context),
            # Nor does a row come when the one before it starts with the end of what is issued.
            i.ready.eq(~waiting | (may_start & ~follows)),
        ]
        m.d.sync += follows.eq(follows & self.issuing)
        with m.If(start):
            m.d.sync += waiting.eq(0)
        with m.If(i.ready):
            m.d.sync += [waiting.eq(i.valid), row.eq(i.payload), follows.eq(self.issuing & self._follows & ~self.apart)]
        if self.config.scalars:
            began, place = Signal(), register(m, row.register, "began_register")
            m.d.sync += began.eq(start & row.scalar)
            with m.If(began):
                m.d.sync += self.stored.bit_select(place, 1).eq(0)
            with m.If(self.i.valid & self.i.ready & self.i.payload.scalar):
                m.d.sync += self.stored.bit_select(self.i.payload.register, 1).eq(1)
        self._reserve(m, start, waiting, row, i)
        self._deliver(m, *self._beats(m, start, waiting, row, row_ends))
        return m

    def _reduces(self, m: Module, i: stream.Interface, row: data.View) -> Value:
        """Whether the row that waits is a scalar register for which there was a reduction in the cycle before."""
        if not self.config.scalars:
            return Const(0)
        new, old = (one.scalar & self.reduced.bit_select(one.register, 1) for one in (i.payload, row))
        reduces: Value = register(m, Mux(i.ready, new, old), "reduces")
        return reduces

    def _ahead(self, m: Module) -> stream.Interface:
        """The rows, after scalars wait in a queue of their own; what comes behind these waits until it is empty.

        ``_follows``: what comes was sent behind the row that is issued now, if there is one. Of the queue that is true
        of the last ``behind`` entries: a row that began later must not be waited for, since its operands may wait for
        the store.
        """
        if not self.config.scalars:
            return self.i
        i = stream.Signature(store_layout(self.config)).create(path=("next",))
        one = data.StructLayout({"register": range(self.config.scalars), "zero": 1})
        m.submodules.ahead = ahead = Fifo(one, depth=SCALARS_AHEAD)
        new, scalar = self.i.payload, Signal()
        none = ahead.level == 0
        behind = Signal.like(ahead.level, name="behind")
        first_is_behind = ahead.level == behind
        enters, leaves = ahead.i.valid & ahead.i.ready, ahead.o.valid & ahead.o.ready & first_is_behind
        m.d.sync += behind.eq(Mux(self.issuing, behind + enters - leaves, 0))
        m.d.comb += [
            scalar.eq(new.scalar),
            ahead.i.payload.register.eq(new.register),
            ahead.i.payload.zero.eq(new.zero),
            # A register is there once at most, so that one bit says that it is.
            ahead.i.valid.eq(self.i.valid & scalar & ~self.stored.bit_select(new.register, 1)),
            self.i.ready.eq(Mux(scalar, ahead.i.ready & ~self.stored.bit_select(new.register, 1), none & i.ready)),
            i.payload.eq(new),
            i.valid.eq(Mux(none, self.i.valid & ~scalar, ahead.o.valid)),
            ahead.o.ready.eq(i.ready),
            self._empty.eq(none), self._follows.eq(none | first_is_behind),
        ]  # fmt: skip
        with m.If(~none):
            m.d.comb += [
                i.payload.register.eq(ahead.o.payload.register), i.payload.zero.eq(ahead.o.payload.zero),
                i.payload.scalar.eq(1),
                i.payload.row.last_beat.eq(0), i.payload.row.tail_bytes.eq(LANE.bytes),
            ]  # fmt: skip
            if self.config.length_fields[1:]:
                m.d.comb += i.payload.row.kind.eq(LengthField.ELEMENTS.value)
        return i

    def _reserve(self, m: Module, start: Signal, waiting: Signal, row: data.View, i: stream.Interface) -> None:
        """Count the free entries of the queue; a row that starts takes its own at once.

        Whether there is room for the row that waits is found out a cycle before; a row that comes while another one
        waits takes its place, since that one starts.
        """
        free, room = Signal(range(self.config.store_beats + 1), init=self.config.store_beats), Signal()
        popped, left, new = Signal(), Signal.like(free), i.payload.row.last_beat
        # One adder: ~x is -x - 1.
        m.d.comb += left.eq(free + (~Cat(row.row.last_beat, Const(0, 1))).as_signed())
        m.d.sync += [
            popped.eq(self.o.valid & self.o.ready),
            free.eq(Mux(start, left + popped, free + popped)),
            room.eq(Mux(i.ready, Mux(waiting, left > new, free > new), free > row.row.last_beat)),
        ]
        m.d.comb += [
            self.full.eq(waiting & ~room),
            self.idle.eq(~waiting & self._empty & (free == self.config.store_beats)),
        ]

    def _beats(
        self, m: Module, start: Signal, waiting: Signal, row: data.View, row_ends: Signal
    ) -> tuple[Signal, Signal]:
        """One beat per cycle from the cycle after ``start`` on: whether there is one, and what."""
        active, beat, present = Signal(), Signal(range(self.config.register_beats)), Signal(row.shape())
        last, order = Signal(), Signal(self._order_layout())
        m.d.comb += [
            row_ends.eq(~active | last),
            self.pending.eq(waiting & ~row.scalar),
            self.reading.eq(active & ~last),
            self.read_long.eq(active & ~last & is_long(self.config, present.row)),
            self.read_register.eq(present.register),
            order.address.eq(self._place(present, beat)),
            order.zero.eq(present.zero),
            order.last.eq(last),
            order.bytes.eq(Mux(last, present.row.tail_bytes, self.config.lane_bytes)),
            *([order.kind.eq(present.row.kind)] if "kind" in order.shape().members else []),
        ]
        m.d.sync += [beat.eq(beat + 1), last.eq(beat + 1 == present.row.last_beat)]
        with m.If(row_ends):
            m.d.sync += [active.eq(start), present.eq(row), beat.eq(0), last.eq(row.row.last_beat == 0)]
        return active, order

    def _place(self, row: data.View, beat: Signal) -> Value:
        vector = Value.cast(register_beat(self.config, row.register, row.context, beat))
        if not self.config.scalars:
            return vector
        return Cat(Mux(row.scalar, row.register, vector)[: len(self.read_address) - 1], row.scalar)

    def _order_layout(self) -> data.StructLayout:
        beat = store_beat_layout(self.config).members
        return data.StructLayout(
            {"address": self.read_address.shape(), "zero": 1, **{name: beat[name] for name in beat if name != "data"}}
        )

    def _deliver(self, m: Module, active: Signal, order: Signal) -> None:
        """Read each beat in its turn, and queue it a cycle later."""
        m.submodules.queue = queue = Fifo(store_beat_layout(self.config), depth=self.config.store_beats)
        result = latencies(self.config).result
        due = Signal(result)
        m.d.sync += due.eq(Cat(active, due))
        order = register(m, order, "order", cycles=result - 1, shape=self._order_layout())
        m.d.comb += self.read_address.eq(order.address)
        arriving = register(m, order, "arriving", shape=self._order_layout())
        m.d.comb += [
            queue.i.valid.eq(due[-1]),
            queue.i.payload.data.eq(Mux(arriving.zero, 0, self.read_data)),
            queue.i.payload.bytes.eq(arriving.bytes),
            queue.i.payload.last.eq(arriving.last),
            *([queue.i.payload.kind.eq(arriving.kind)] if "kind" in arriving.shape().members else []),
            queue.clear.eq(self.clear),
            self.mark.eq(queue.mark),
        ]
        connect(m, queue.o, flipped(self.o))
