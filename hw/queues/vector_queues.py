"""The vector queues: reorder buffers whose slots are reserved in order, filled in any order, drained in order."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config import MAX_BURST, Config
from daedal.hw.interfaces import Client, ReturnBus, beat_layout, beat_stream, slot_bits
from daedal.hw.isa.program_words import FetchQueue
from daedal.hw.memory_style import BLOCK_RAM
from daedal.hw.queues.skid import Single, Skid

CLIENTS = (Client.VECTOR0, Client.VECTOR1, Client.STREAM)
"""Clients of the return bus that have a queue, in the order of ``FetchQueue``."""


def reserve_layout() -> data.StructLayout:
    """A wish for ``beats`` (1 to MAX_BURST) slots of a queue."""
    return data.StructLayout({"queue": FetchQueue, "beats": range(MAX_BURST + 1)})


class VectorQueues(wiring.Component):
    """Two vector queues and the store stream's queue, filled over one return bus.

    Takes a reservation and a beat per cycle, and delivers a beat per cycle from every queue. A beat can be read
    three cycles after it was on the return bus. A reservation waits until the queue has so many free slots and
    the budget of ``config.reorder_beats`` over all queues allows it. A beat is stored in any case: whoever reads
    must have reserved. No reservation is taken in the first ``config.vector_beats`` cycles after a reset, while
    the marks of slots are swept.

    Members
    -------
    reserve : ``In(stream.Signature(reserve_layout()))``
        Slots wanted, in the order in which rows drain. ``ready`` depends on the payload.
    slot : ``Out(slot_bits(config))``
        First slot reserved, valid with the handshake; slots count up modulo ``vector_beats``.
    returns : ``In(ReturnBus(config))``
        Beats, of which those for VECTOR0, VECTOR1 and STREAM are stored.
    vector0, vector1, stream : ``Out(beat_stream(config))``
        Beats in the order of their slots.
    sides : ``Out(3)``
        The side of the launch that the beat at the head of each queue is for.
    empty : ``Out(1)``
        Nothing is reserved or held.
    occupied : ``Out(3)``
        Which of the queues have slots reserved or held.
    mark0, mark1, mark2 : ``Out(range(vector_beats + 1))``
        The most slots of each queue that were reserved and not yet drained, since reset or ``clear``.
    clear : ``In(1)``
        Sets the marks to what is reserved now.
    swept : ``Out(1)``
        The slots' marks have been swept since the reset.
    """

    def __init__(self, config: Config) -> None:
        marks = {f"mark{n}": Out(range(config.vector_beats + 1)) for n in range(len(CLIENTS))}
        super().__init__(
            {
                "reserve": In(stream.Signature(reserve_layout())),
                "slot": Out(slot_bits(config)),
                "returns": In(ReturnBus(config)),
                "vector0": Out(beat_stream(config)),
                "vector1": Out(beat_stream(config)),
                "stream": Out(beat_stream(config)),
                "sides": Out(len(CLIENTS)),
                "empty": Out(1),
                "occupied": Out(len(CLIENTS)),
                "clear": In(1),
                "swept": Out(1),
                **marks,
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        queues = [ReorderQueue(self._config, client) for client in CLIENTS]
        wish = self.reserve.payload
        free = Signal(range(self._config.reorder_beats + 1), init=self._config.reorder_beats)
        accept, fits = Signal(), Signal()
        for number, (queue, output) in enumerate(zip(queues, (self.vector0, self.vector1, self.stream), strict=True)):
            m.submodules[f"queue{number}"] = queue
            chosen = wish.queue == FetchQueue(number)
            connect(m, queue.o, flipped(output))
            m.d.comb += [
                queue.beats.eq(wish.beats),
                queue.reserve.eq(accept & chosen),
                queue.returns.valid.eq(self.returns.valid),
                queue.returns.beat.eq(self.returns.beat),
                queue.clear.eq(self.clear),
                getattr(self, f"mark{number}").eq(queue.mark),
                self.sides[number].eq(queue.side),
            ]
            with m.If(chosen):
                m.d.comb += [fits.eq(queue.fits), self.slot.eq(queue.slot)]
        ready = fits & has_room(free, wish.beats)
        if not self._config.is_serial:
            swept = Signal()  # a register that can lie where it is needed
            m.d.sync += swept.eq(self.swept)
            ready &= swept
        m.d.comb += [
            self.reserve.ready.eq(ready),
            accept.eq(self.reserve.valid & self.reserve.ready),
            self.occupied.eq(~Cat(queue.empty for queue in queues)),
            self.empty.eq(self.occupied == 0),
            self.swept.eq(queues[0].swept),  # all of them are as deep
        ]
        given_back = sum((queue.drained for queue in queues), Const(0, 1))
        m.d.sync += free.eq(Mux(accept, free - wish.beats + given_back, free + given_back))
        return m


class ReorderQueue(wiring.Component):
    """One of the queues.

    Beside each beat in memory is a bit: a slot is full when its bit is the opposite of the round through the slots in
    which it is to be drained (0 or 1, alternating). So a bit is written once, with the returning beat, and never
    cleared. The beat's round follows from its slot: those before the next one to drain are a round ahead. The next slot
    to drain is read in every cycle, until its bit says that it is full. Memories survive a reset, hence the sweep.

    Members: with ``reserve``, ``beats`` slots from ``slot`` on are reserved; allowed only if ``fits``, and ``swept``.
    ``drained``: a slot has become free. The others as in ``VectorQueues``.
    """

    def __init__(self, config: Config, client: Client) -> None:
        super().__init__(
            {
                "reserve": In(1),
                "beats": In(range(MAX_BURST + 1)),
                "fits": Out(1),
                "slot": Out(slot_bits(config)),
                "returns": In(ReturnBus(config)),
                "o": Out(beat_stream(config)),
                "side": Out(1),
                "drained": Out(1),
                "empty": Out(1),
                "mark": Out(range(config.vector_beats + 1)),
                "clear": In(1),
                "swept": Out(1),
            }
        )
        self._config, self._client = config, client

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        slots = self._config.vector_beats
        m.submodules.account = account = _Account(slots)
        drain, following = Signal(range(2 * slots)), Signal(range(2 * slots), init=1)  # top bit: the round
        full, deliver = Signal(), Signal()
        # That a beat is taken is known late, and would decide which one is read next.
        m.submodules.out = out = (Single if self._config.is_serial else Skid)(beat_layout(self._config).size + 1)
        beat, is_full = self._memory(m, drain, following, deliver)
        room = has_room(account.free, self.beats)
        m.d.comb += [
            full.eq(is_full & self.swept),
            out.i.valid.eq(full),
            out.i.payload.eq(beat),
            deliver.eq(full & out.i.ready),
            self.o.valid.eq(out.o.valid),
            Cat(self.o.payload, self.side).eq(out.o.payload),
            out.o.ready.eq(self.o.ready),
            account.reserve.eq(self.reserve),
            account.beats.eq(self.beats),
            account.drained.eq(self.drained),
            account.clear.eq(self.clear),
            self.fits.eq(room & self.swept if self._config.is_serial else room),
            self.slot.eq(account.slot),
            self.mark.eq(account.mark),
            self.empty.eq(account.empty & out.empty),
        ]
        m.d.sync += self.drained.eq(deliver)  # a cycle late: it comes out of the block RAM
        with m.If(deliver):
            m.d.sync += [drain.eq(following), following.eq(following + 1)]
        return m

    def _memory(self, m: Module, drain: Signal, following: Signal, deliver: Signal) -> tuple[Value, Value]:
        """The beat of slot ``drain``, and whether it is there. After ``deliver`` it is that of ``following``."""
        slots, beat = self._config.vector_beats, self.returns.beat
        m.submodules.store = store = memory.Memory(
            shape=beat_layout(self._config).size + 2, depth=slots, init=[], attrs=BLOCK_RAM
        )
        write, read = store.write_port(), store.read_port()
        sweep, clash, place, round_ = Signal(range(2 * slots)), Signal(), drain[:-1], drain[-1]
        m.d.comb += [
            self.swept.eq(sweep[-1]),
            write.en.eq((self.returns.valid & (beat.client == self._client)) | ~self.swept),
            write.addr.eq(Mux(self.swept, beat.slot, sweep)),
            # Slots before the next one to drain have been drained in this round: they are filled for the next.
            write.data.eq(
                Cat(beat.data, beat.bytes, beat.last, beat.side, self.swept & ~(round_ ^ (write.addr < place)))
            ),
            read.addr.eq(Mux(deliver, following, drain)),
            read.en.eq(1),
        ]
        # What is read while it is written is anything. ``deliver`` comes late: both comparisons are there before.
        same = Mux(deliver, write.addr == following[:-1], write.addr == place)
        m.d.sync += [sweep.eq(sweep + ~self.swept), clash.eq(write.en & same)]
        return read.data[:-1], (read.data[-1] != round_) & ~clash


class _Account(wiring.Component):
    """How many slots are free, how many never were, and which is the next to reserve."""

    def __init__(self, slots: int) -> None:
        super().__init__(
            {
                "reserve": In(1),
                "beats": In(range(MAX_BURST + 1)),
                "drained": In(1),
                "slot": Out(range(slots)),
                "free": Out(range(slots + 1), init=slots),
                "empty": Out(1),
                "mark": Out(range(slots + 1)),
                "clear": In(1),
            }
        )
        self._slots = slots

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        least = Signal(range(self._slots + 1), init=self._slots)  # that were free
        m.d.comb += [self.empty.eq(self.free == self._slots), self.mark.eq(self._slots - least)]
        # That they are reserved comes late, after both sums.
        with m.If(self.reserve):
            m.d.sync += self.slot.eq(self.slot + self.beats)
        m.d.sync += self.free.eq(Mux(self.reserve, self.free - self.beats + self.drained, self.free + self.drained))
        with m.If(self.clear | (self.free < least)):
            m.d.sync += least.eq(self.free)
        return m


def has_room(free: Value, beats: Value) -> Value:
    """Whether ``beats``, at most MAX_BURST, are no more than ``free``; that there are many is known early."""
    low = exact_log2(MAX_BURST)
    return free[low:].any() | (beats <= free[:low])
