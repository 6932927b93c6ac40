"""Which activation has the next iteration, when several run in turn."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Elaboratable, Module, ResetInserter, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import context_entries
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM
from daedal.hw.lib.replicate import replicate
from daedal.hw.queues.free_list import FreeList
from daedal.hw.queues.ring_pointers import RingPointers


class ContextScheduler(wiring.Component):
    """Gives each activation an entry and, in their order, a context; goes round the contexts that have one.

    A context whose activation ends takes the next one. No iteration starts while a context is free for which an
    activation is still to come, so the order depends on the activations' lengths only, not on when they come.

    Three steps, a cycle each: choose the context; look up whose turn it is, and give the context to the next activation
    if this one ends; then the turn is at the outputs, and that activation's next turn is its last one or not. A context
    is not chosen twice in a row, so each step finds what an earlier turn of the same activation has changed.

    Members
    -------
    running : ``In(1)``
        Without, all is forgotten, a cycle later.
    enter, enter_single, enter_final : ``In(1)``
        An activation comes, into entry ``enter_entry``: it has one bundle only; it is the nest's last. Needs ``room``.
    room, enter_entry : ``Out(1)``, ``Out``, registered
        There is an entry for the next activation, and which.
    valid, entry, context, first, last, final : outputs, registered
        Whose turn it is; its bundle is the activation's first, its last, the nest's last.
    comes : ``Out(1)``, registered
        This is the first cycle in which it is that turn.
    placed : ``Out``
        A bit for each entry: its activation has, or had, a context.
    move : ``In(1)``
        The turn is taken.
    next_last : ``In(1)``
        With ``comes``: the activation's next bundle is its last.
    leave, leave_entry : ``In(1)``, ``In``
        The activation in that entry has made its last bundle, and what is kept of it may be overwritten from the next
        cycle but one on.
    """

    def __init__(self, config: Config) -> None:
        entry, context = range(context_entries(config)), range(config.context_count)
        super().__init__(
            {
                "running": In(1),
                **{name: In(1) for name in ("enter", "enter_single", "enter_final", "move", "next_last")},
                "leave": In(1),
                "leave_entry": In(entry),
                "room": Out(1),
                "enter_entry": Out(entry),
                "placed": Out(context_entries(config)),
                **{name: Out(1) for name in ("valid", "comes", "first", "last", "final")},
                "entry": Out(entry),
                "context": Out(context),
            }
        )
        self._entries, self._contexts = context_entries(config), config.context_count

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        stopped, all_in = Signal(init=1), Signal()
        self._busy, self._turn, self._turning = Signal(self._contexts), Signal(self._contexts), Signal()
        """Bits for the contexts that have an activation, and for the chosen one; whether one is chosen."""
        m.d.sync += stopped.eq(~self.running)
        self._free_entries(m, stopped)
        head, single, waits, pop = self._waiting(m, stopped)
        with m.If(self.enter):
            m.d.sync += all_in.eq(self.enter_final)
        exhausted, ends, leaves = all_in & ~waits, Signal(), Signal()
        m.d.comb += leaves.eq(self._turning & (~self.valid | self.move))
        self._choose(m, exhausted, ~ends | waits | exhausted, leaves)
        self._look_up(m, leaves, ends, exhausted, head, single, waits)
        m.d.comb += pop.eq(waits & ((leaves & ends) | ~self._busy.all()))
        with m.If(pop):
            m.d.sync += self.placed.bit_select(head, 1).eq(1)
        with m.If(self.enter):
            m.d.sync += self.placed.bit_select(self.enter_entry, 1).eq(0)
        with m.If(stopped):
            m.d.sync += [bits.eq(0) for bits in (self._busy, self._turning, all_in, self.valid, self.comes)]
        return m

    def _free_entries(self, m: Module, stopped: Signal) -> None:
        m.submodules.free = free = FreeList(self._entries)
        m.d.comb += [
            free.clear.eq(~self.running | stopped),
            self.room.eq(free.valid),
            self.enter_entry.eq(free.entry),
            free.take.eq(self.enter),
            free.give.eq(self.leave),
            free.given.eq(self.leave_entry),
        ]

    def _waiting(self, m: Module, stopped: Signal) -> tuple[Value, Value, Value, Signal]:
        """Entries that have no context yet, in order: the first one, whether its activation has one bundle only,
        whether there is one, and its removal.
        """
        width, pop = len(self.entry), Signal()
        m.submodules.order = order = memory.Memory(shape=width + 1, depth=self._entries, init=[], attrs=DISTRIBUTED_RAM)
        pointers = RingPointers(self._entries)
        m.submodules.pointers = ResetInserter(stopped)(pointers)
        write, read = order.write_port(), order.read_port(domain="comb")
        m.d.comb += [
            pointers.write.eq(self.enter),
            pointers.fetch.eq(pop),
            write.en.eq(self.enter),
            write.addr.eq(pointers.write_address),
            write.data.eq(Cat(self.enter_entry, self.enter_single)),
            read.addr.eq(pointers.read_address),
        ]
        return read.data[:width], read.data[width], pointers.available, pop

    def _choose(self, m: Module, exhausted: Value, allowed: Value, leaves: Signal) -> None:
        """The next context after the one whose turn it is, but not that one while it is chosen.

        ``allowed``: by what becomes of the chosen one. ``later``: a bit for each context after the latest turn's.
        """
        busy, turn, later = self._busy, self._turn, Signal(self._contexts)
        after, pick = Signal(self._contexts), Signal()
        m.d.comb += [
            turn.eq(Cat(bit & ~before for bit, before in zip(Cat(later[1:], 1), later, strict=True))),
            after.eq(busy & later),
            pick.eq(
                (busy & ~(turn & replicate(self._turning, self._contexts))).any()
                & (busy.all() | exhausted)
                & (~self._turning | (leaves & allowed))
            ),
        ]
        with m.If(leaves):
            m.d.sync += self._turning.eq(0)
        with m.If(pick):
            m.d.sync += self._turning.eq(1)
            with m.If(after.any()):
                m.d.sync += later.eq(_above(after))
            with m.Else():
                m.d.sync += later.eq(_above(busy))
        with m.If(~self.running):
            m.d.sync += later.eq(0)

    def _look_up(self, m: Module, leaves: Signal, ends: Signal, exhausted: Value, head: Value, single: Value,
                 waits: Value) -> None:  # fmt: skip
        """Whose turn the chosen context is; if it ``ends``, or is free, it takes the first activation that waits."""
        busy, turn = self._busy, self._turn
        places = [Signal(range(self._entries), name=f"place{n}") for n in range(self._contexts)]
        # Whether a context's next iteration is its activation's first, its last.
        first, last = Signal(self._contexts, name="first_bits"), Signal(self._contexts, name="last_bits")
        fills = Signal(self._contexts)
        m.d.comb += [
            ends.eq((turn & last).any()),
            fills.eq((turn & replicate(leaves & ends, self._contexts)) | (~busy & ~_above(~busy))),
        ]
        for number, place in enumerate(places):
            with m.If(fills[number]):
                m.d.sync += [place.eq(head), busy[number].eq(waits), first[number].eq(1), last[number].eq(single)]
            with m.Elif(leaves & turn[number]):
                m.d.sync += first[number].eq(0)
            # After its last iteration, what is in the context is the next activation.
            with m.Elif(self.comes & ~self.last & (self.context == number)):
                m.d.sync += last[number].eq(self.next_last)
        m.d.sync += self.comes.eq(leaves)
        with m.If(self.move):
            m.d.sync += self.valid.eq(0)
        with m.If(leaves):
            m.d.sync += [
                self.valid.eq(1),
                self.entry.eq(_any_of(turn, places)),
                self.context.eq(_any_of(turn, [Const(number) for number in range(self._contexts)])),
                self.first.eq((turn & first).any()),
                self.last.eq(ends),
                self.final.eq(ends & exhausted & ~(busy & ~turn).any()),
            ]


def first_of(m: Module, wanted: Value, name: str) -> Signal:
    """The number of the lowest bit of ``wanted`` that is set; 0 if none is."""
    number, lowest = Signal(range(len(wanted)), name=name), wanted & ~_above(wanted)
    m.d.comb += number.eq(_any_of(lowest, [Const(bit) for bit in range(len(wanted))]))
    return number


def _above(bits: Value) -> Value:
    """A bit for each place above the lowest bit that is set."""
    return Cat(bits[:number].any() for number in range(len(bits)))


def _any_of(chosen: Value, choices: Sequence[Value]) -> Value:
    """The one of ``choices`` whose bit in ``chosen`` is set."""
    result: Value = Value.cast(0)
    for bit, choice in zip(chosen, choices, strict=True):
        result = result | (choice & replicate(bit, len(choice)))
    return result
