"""The vector queues: reorder buffers whose slots are reserved in order, filled in any order, drained in order."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.interfaces import Client, ReturnBus, beat_layout, beat_stream, row_granules, slot_bits
from daedal.hw.isa.words import FetchQueue
from daedal.hw.lib.below import below
from daedal.hw.lib.ram_style import BLOCK_RAM
from daedal.hw.queues.skid_buffer import Single, SkidBuffer

CLIENTS = (Client.VECTOR0, Client.VECTOR1, Client.STREAM)
"""Clients of the return bus that have a queue, in the order of ``FetchQueue``."""


def reserve_layout() -> data.StructLayout:
    """A wish for ``beats`` (1 to MAX_BURST) slots of a queue."""
    return data.StructLayout({"queue": FetchQueue, "beats": range(MAX_BURST + 1)})


def most_slots(config: Config) -> int:
    """Seven eighths of the slots that the rows of one vector queue can have."""
    return 7 * min(config.vector_beats, config.reorder_beats) // 8


class ReorderBuffers(wiring.Component):
    """Two vector queues and the store stream's queue, filled over one return bus.

    Takes a reservation and a beat per cycle, and delivers a beat per cycle from every queue. A beat can be read
    three cycles after it was on the return bus; one of a row that begins inside of a line, and goes on, when the next
    one was there, with which its end comes. A reservation waits until the queue has so many free slots and
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
    plenty : ``Out(1)``
        Rows for the execute unit fill most of the slots (``most_slots``) and wait for it, not for memory; registered.
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
                "plenty": Out(1),
                "swept": Out(1),
                **marks,
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        queues = [ReorderBuffer(self._config, client) for client in CLIENTS]
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
        m.d.sync += self.plenty.eq(self._are_many(m, queues[:2]) & (self.vector0.valid | self.vector1.valid))
        return m

    def _are_many(self, m: Module, queues: list["ReorderBuffer"]) -> Value:
        """Whether the queues hold ``most_slots`` beats that have come."""
        here, comes = Signal(range(self._config.reorder_beats + 1)), Signal()
        m.d.sync += [
            comes.eq(Cat(queue.comes for queue in queues).any()),
            here.eq(here + comes - sum((queue.drained for queue in queues), Const(0, 1))),
        ]
        return ~below(here, most_slots(self._config))


class ReorderBuffer(wiring.Component):
    """One of the queues.

    For each slot there is a bit in a memory beside the beats': a slot is full when its bit is the opposite of the round
    through the slots in which it is to be drained (0 or 1, alternating). So a bit is written once, with the returning
    beat, and never cleared. The beat's round follows from its slot: those before the next one to drain are a round
    ahead. Memories survive a reset, hence the sweep.

    Whether the next slot to drain is full is a register, as it is for the one behind: they are told of beats that
    return, and the bit of the slot behind these two is read from memory in every cycle, early enough to take part.
    Beside it there is a bit that says if the slot's beat ends with the next slot's: then both must be there.

    Each granule of the beats has a memory of its own, for what returns may belong to two slots.

    Members: with ``reserve``, ``beats`` slots from ``slot`` on are reserved; allowed only if ``fits``, and ``swept``.
    ``comes``: a beat returns for this queue. ``drained``: a slot has become free. The others as in ``ReorderBuffers``.
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
                "comes": Out(1),
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
        # That a beat is taken is known late in the execute unit, and would decide whether the next one is read.
        is_late = not self._config.is_serial and self._client != Client.STREAM
        m.submodules.out = out = (SkidBuffer if is_late else Single)(beat_layout(self._config).size + 1)
        drain, fetch, fetched = Signal(range(2 * slots)), Signal(), Signal()  # drain's top bit: the round
        """The next slot to drain; it is read in this cycle; a beat is at the block RAM's output."""
        moves = ~fetched | out.i.ready
        m.d.comb += [
            self.comes.eq(self.returns.valid & (self.returns.beat.client == self._client)),
            fetch.eq(self._is_ready(m, drain, fetch) & moves),
            out.i.payload.eq(self._beat(m, drain[:-1], moves)),
            out.i.valid.eq(fetched),
            self.o.valid.eq(out.o.valid),
            Cat(self.o.payload, self.side).eq(out.o.payload),
            out.o.ready.eq(self.o.ready),
        ]
        with m.If(moves):
            m.d.sync += fetched.eq(fetch)
        with m.If(fetch):
            m.d.sync += drain.eq(drain + 1)
        m.d.sync += self.drained.eq(fetch)  # a cycle late, from a register
        room = has_room(account.free, self.beats)
        m.d.comb += [
            account.reserve.eq(self.reserve),
            account.beats.eq(self.beats),
            account.drained.eq(self.drained),
            account.clear.eq(self.clear),
            self.fits.eq(room & self.swept if self._config.is_serial else room),
            self.slot.eq(account.slot),
            self.mark.eq(account.mark),
            self.empty.eq(account.empty & ~fetched & out.empty),
        ]
        return m

    def _beat(self, m: Module, place: Value, moves: Value) -> Value:
        """The beat of slot ``place``, in the cycle after ``moves`` and until there is one again."""
        beat, granules = self.returns.beat, row_granules(self._config)
        size, before = len(beat.data) // granules, Signal(range(self._config.vector_beats))
        end = (beat.bytes - 1)[exact_log2(size // 8) : exact_log2(self._config.bus_bytes)]  # the last granule
        m.d.comb += before.eq(beat.slot - 1)
        parts = []
        for n in range(granules):
            data, comes = beat.data.word_select(n, size), self.comes & (beat.own[n] | beat.follows)
            word = Cat(data, end, beat.last, beat.side) if n == 0 else data  # the first one is always the slot's own
            slot = beat.slot if n == 0 else Mux(beat.own[n], beat.slot, before)
            parts.append(self._part(m, f"part{n}", word, slot, comes, place, moves))
        found = parts[0][size:]
        count = Cat(Const(0, exact_log2(size // 8)), found[: len(end)] + 1)[: len(beat.bytes)]
        return Cat(parts[0][:size], *parts[1:], count, found[len(end) :])

    def _part(self, m: Module, name: str, word: Value, slot: Value, comes: Value, place: Value,
              moves: Value) -> Value:  # fmt: skip
        """What was stored of ``word`` for slot ``place``."""
        m.submodules[name] = store = memory.Memory(
            shape=len(word), depth=self._config.vector_beats, init=[], attrs=BLOCK_RAM
        )
        write, read = store.write_port(), store.read_port()
        m.d.comb += [
            write.en.eq(comes),
            write.addr.eq(slot),
            write.data.eq(word),
            read.addr.eq(place),
            read.en.eq(moves),
        ]
        return read.data

    def _is_ready(self, m: Module, drain: Signal, fetch: Signal) -> Value:
        """Whether all of slot ``drain`` is there. After ``fetch`` it is the next slot."""
        slots = self._config.vector_beats
        distance, before = Signal(range(slots)), Signal()
        """How far behind ``drain`` the returning beat's slot is; whether its number is smaller: a round later."""
        m.d.comb += Cat(distance, before).eq(self.returns.beat.slot - drain[:-1])
        coming = [self.comes & (distance == n) for n in range(4)]
        third = Signal(range(2 * slots), init=2)
        """The slot behind the two that are known, with its round."""
        clash, following, full = Signal(), Signal(), Signal()
        # Of the same slots: whether their ends come with the next one.
        clash_parted, following_parted, parted, new = Signal(), Signal(), Signal(), Signal()
        m.d.comb += new.eq(~self.returns.beat.own[-1] & ~self.returns.beat.last)
        bit, bit_parted = self._bits(m, (third + fetch)[: len(distance)], drain[-1] ^ before, new)
        is_third = (bit != third[-1]) | clash
        third_parted = Mux(clash, clash_parted, bit_parted)
        with m.If(fetch):
            m.d.sync += [third.eq(third + 1), full.eq(following | coming[1]), following.eq(is_third | coming[2])]
            m.d.sync += [
                parted.eq(Mux(coming[1], new, following_parted)),
                following_parted.eq(Mux(coming[2], new, third_parted)),
            ]
        with m.Else():
            m.d.sync += [full.eq(full | coming[0]), following.eq(following | coming[1])]
            m.d.sync += [
                parted.eq(Mux(coming[0], new, parted)),
                following_parted.eq(Mux(coming[1], new, following_parted)),
            ]
        # What is read while it is written is anything.
        m.d.sync += [clash.eq(Mux(fetch, coming[3], coming[2])), clash_parted.eq(new)]
        return full & (~parted | following)

    def _bits(self, m: Module, place: Value, round_: Value, parted: Value) -> tuple[Value, Value]:
        """The bit of slot ``place``, and if its beat is ``parted``, a cycle later; what comes drains in ``round_``."""
        slots = self._config.vector_beats
        m.submodules.bits = bits = memory.Memory(shape=2, depth=slots, init=[], attrs={"no_rw_check": 1})
        write, read, sweep = bits.write_port(), bits.read_port(), Signal(range(2 * slots))
        m.d.comb += [
            self.swept.eq(sweep[-1]),
            write.en.eq(self.comes | ~self.swept),
            write.addr.eq(Mux(self.swept, self.returns.beat.slot, sweep)),
            write.data.eq(Cat(self.swept & ~round_, parted)),
            read.addr.eq(place),
        ]
        m.d.sync += sweep.eq(sweep + ~self.swept)
        return read.data[0], read.data[1]


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
    """Whether ``beats``, at most MAX_BURST, are no more than ``free``; by digits of two bits, a LUT or two each."""
    low = exact_log2(MAX_BURST)
    less: Value = Const(0, 1)
    for first in range(0, low, 2):
        here, wanted = free[first : min(first + 2, low)], beats[first : min(first + 2, low)]
        less = (here < wanted) | ((here == wanted) & less)
    return free[low:].any() | ~(beats[low] | less)
