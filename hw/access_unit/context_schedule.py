"""Which activation has the next iteration, when several run in turn."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.interfaces import context_entries
from daedal.hw.spread import spread


def first_of(m: Module, wanted: Value, name: str) -> Signal:
    """The number of the lowest bit of ``wanted`` that is set; 0 if none is."""
    number = Signal(range(len(wanted)), name=name)
    for bit in reversed(range(len(wanted))):
        with m.If(wanted[bit]):
            m.d.comb += number.eq(bit)
    return number


class ContextSchedule(wiring.Component):
    """Gives each activation an entry and, in their order, a context; goes round the contexts that have one.

    A context whose activation ends takes the next one. No iteration starts while a context is free for which an
    activation is still to come, so the order depends on the activations' lengths only, not on when they come.

    Members
    -------
    running : ``In(1)``
        Without, all is forgotten.
    enter, enter_single, enter_final : ``In(1)``
        An activation comes, into entry ``enter_entry``: it has one bundle only; it is the nest's last. Needs ``room``.
    valid, entry, context, first, last, final : outputs, registered
        Whose turn it is; its bundle is the activation's first, its last, the nest's last.
    placed : ``Out``
        A bit for each entry: its activation has, or had, a context.
    take, next_last : ``In(1)``
        The bundle leaves; the activation's next bundle is its last.
    leave, leave_entry : ``In(1)``, ``In``
        The activation in that entry has made its last bundle, and what is kept of it may be overwritten from the next
        cycle but one on.
    """

    def __init__(self, config: Config) -> None:
        entry, context = range(context_entries(config)), range(config.context_count)
        super().__init__(
            {
                "running": In(1),
                **{name: In(1) for name in ("enter", "enter_single", "enter_final", "take", "next_last")},
                "leave": In(1),
                "leave_entry": In(entry),
                "room": Out(1),
                "enter_entry": Out(entry),
                "placed": Out(context_entries(config)),
                **{name: Out(1) for name in ("valid", "first", "last", "final")},
                "entry": Out(entry),
                "context": Out(context),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        entries, contexts = context_entries(self._config), self._config.context_count
        used, single = (Signal(entries, name=name) for name in ("used", "single"))
        busy, all_in = Signal(contexts), Signal()
        self._turn = Signal(contexts, init=1 << contexts - 1)
        """A bit for the context whose turn it is."""
        places = [Signal(range(entries), name=f"place{n}") for n in range(contexts)]
        head, waits, pop = self._waiting(m)
        # Whether a context's next iteration is its activation's first, its last.
        first, last = Signal(contexts, name="first_bits"), Signal(contexts, name="last_bits")
        pick, ends, chosen = self._choose(m, busy, last, all_in & ~waits)
        m.d.comb += [
            self.room.eq(~used.all()),
            self.enter_entry.eq(first_of(m, ~used, "free_entry")),
            pop.eq(waits & ((pick & ends) | ~busy.all())),
        ]
        fills = self._fill(m, busy, places, chosen, pick & ends, waits, head)
        for number in range(contexts):
            with m.If(fills[number]):
                m.d.sync += [first[number].eq(1), last[number].eq(single.bit_select(head, 1))]
            # After the last iteration, what is in the context is the next activation.
            with m.Elif(self.take & ~self.last & (self.context == number)):
                m.d.sync += [first[number].eq(0), last[number].eq(self.next_last)]
        with m.If(self.take):
            m.d.sync += self.valid.eq(0)
        with m.If(self.leave):
            m.d.sync += used.bit_select(self.leave_entry, 1).eq(0)
        with m.If(pop):
            m.d.sync += self.placed.bit_select(head, 1).eq(1)
        with m.If(self.enter):
            m.d.sync += [
                self.placed.bit_select(self.enter_entry, 1).eq(0),
                used.bit_select(self.enter_entry, 1).eq(1),
                single.bit_select(self.enter_entry, 1).eq(self.enter_single),
                all_in.eq(self.enter_final),
            ]
        with m.If(pick):
            m.d.sync += [
                self.valid.eq(1),
                self.entry.eq(_any_of(chosen, places)),
                self.context.eq(_any_of(chosen, [Const(number) for number in range(contexts)])),
                self._turn.eq(chosen),
                self.first.eq((chosen & first).any()),
                self.last.eq(ends),
                self.final.eq(ends & all_in & ~waits & ~(busy & ~chosen).any()),
            ]
        with m.If(~self.running):
            m.d.sync += [used.eq(0), busy.eq(0), all_in.eq(0), self.valid.eq(0), self.context.eq(~0)]
            m.d.sync += self._turn.eq(1 << contexts - 1)
        return m

    def _waiting(self, m: Module) -> tuple[Value, Signal, Signal]:
        """Entries that have no context yet, in order: the first one, whether there is one, and its removal."""
        entries = context_entries(self._config)
        m.submodules.order = order = memory.Memory(shape=range(entries), depth=entries, init=[])
        write, read = order.write_port(), order.read_port(domain="comb")
        start, count, pop = Signal(range(entries)), Signal(range(entries + 1)), Signal()
        waits = Signal()
        m.d.comb += [
            write.en.eq(self.enter),
            write.addr.eq(start + count),
            write.data.eq(self.enter_entry),
            read.addr.eq(start),
            waits.eq(count != 0),
        ]
        m.d.sync += [start.eq(start + pop), count.eq(count + self.enter - pop)]
        with m.If(~self.running):
            m.d.sync += count.eq(0)
        return read.data, waits, pop

    def _choose(self, m: Module, busy: Signal, last: Signal, exhausted: Value) -> tuple[Signal, Signal, Signal]:
        """The next context after the one whose turn it is, but not that one: whether, whether it ends, and its bit."""
        pick, ends, chosen = Signal(), Signal(), Signal.like(busy, name="chosen")
        candidates, after = Signal.like(busy), Signal.like(busy)
        m.d.comb += [
            candidates.eq(busy & Mux(self.valid, ~self._turn, ~0)),
            after.eq(candidates & Cat(self._turn[:number].any() for number in range(len(busy)))),
        ]
        with m.If(after.any()):
            m.d.comb += chosen.eq(_lowest(after))
        with m.Else():
            m.d.comb += chosen.eq(_lowest(candidates))
        m.d.comb += [
            pick.eq(candidates.any() & (busy.all() | exhausted) & (~self.valid | self.take)),
            ends.eq((chosen & last).any()),
        ]
        return pick, ends, chosen

    def _fill(
        self, m: Module, busy: Signal, places: list[Signal], chosen: Signal, ending: Value, waits: Signal, head: Value
    ) -> Signal:
        """A context that ends, or one that is free, takes the next activation."""
        fills = Signal.like(busy, name="fills")
        m.d.comb += fills.eq(Mux(ending, chosen, 0) | _lowest(~busy))
        for number, place in enumerate(places):
            with m.If(fills[number]):
                m.d.sync += [place.eq(head), busy[number].eq(waits)]
        return fills


def _lowest(bits: Value) -> Value:
    """The lowest bit that is set, alone."""
    return Cat(bit & ~bits[:number].any() for number, bit in enumerate(bits))


def _any_of(chosen: Value, choices: Sequence[Value]) -> Value:
    """The one of ``choices`` whose bit in ``chosen`` is set."""
    result: Value = Value.cast(0)
    for bit, choice in zip(chosen, choices, strict=True):
        result = result | (choice & spread(bit, len(choice)))
    return result
