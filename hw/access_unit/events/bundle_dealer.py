"""Deals bundles that come activation by activation to contexts, and takes them in turn."""

from typing import Any

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.utils import exact_log2

from daedal.hw.access_unit.events.bundle_queue import WaitingBundles
from daedal.hw.access_unit.interleaving.context_scheduler import first_of
from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM, DISTRIBUTED_RAM
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.ring_pointers import RingPointers

BLOCKS = 8
"""Blocks of the ring of bundles. The window has all but one of them."""


class BundleDealer(wiring.Component):
    """Keeps bundles in a ring, in the order in which they come, and hands them out in that order or, with ``deal``, in
    turn: a bundle of each context's activation that has one in the window.

    The bundles of an activation follow each other in the ring, so a context is the number of its next one. An
    activation takes the first context that has become free. A context without a bundle here is waited for, unless
    nothing more comes for it: the window is full, or the nest's last bundle is here. So the order depends on the
    activations' lengths only.

    The window starts with the block of the first bundle that has not been handed out. Its entries are used again
    when what was handed out by then has done its steps.

    A bundle per cycle, 3 cycles latency. A context has a turn every two cycles, and the next turn of one whose
    activation ends waits for the activation that takes it. To be reset between nests.

    Members: those of ``WaitingBundles``, and

    deal : ``In(1)``
        Bundles are dealt; constant while there are any.
    settled : ``In(1)``
        All steps of bundles that were taken are under way.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(WaitingBundles(config))
        self._config = config
        self._block_bits = exact_log2(config.dealt_block)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        number = self.take_entry.shape()
        self._arrived, self._handed, self._chosen = (Signal(number, name=n) for n in ("arrived", "handed", "chosen"))
        """The number of the next bundle to arrive; of the next one to go if they are not dealt, and of what can go."""
        self._go, self._over, self._poison = Signal(), Signal(), Signal()
        """``chosen`` goes; the nest's last bundle is here; it is poisoned, and waits for all others to go."""
        self._turn = Signal(range(self._config.context_count))
        self._first_block = Signal(range(BLOCKS))
        self._arrive(m)
        available, held, fetched = self._ring(m)
        filled, opens = self._window(m)
        waits, due = self._contexts(m, fetched, filled, opens)
        plain = self._handed != self._arrived
        m.d.comb += [
            available.eq(Mux(self.deal, due, plain)),
            self.empty.eq(~held & ~self.o.valid & ~Mux(self.deal, waits | self._poison, plain)),
        ]
        return m

    def _arrive(self, m: Module) -> None:
        """Count what comes. A poisoned bundle is the last; behind others that are dealt it is not counted, and goes
        when they are gone.

        A bundle in no activation of the level that deals is one of its own.
        """
        poisoned, inside, place = self.deal & self.valid & self.i.poisoned, Signal(), self.place
        self._begins, self._ends = Signal(), Signal()
        m.d.comb += [self._begins.eq(place.begins | ~inside), self._ends.eq(place.ends | (~inside & ~place.begins))]
        with m.If(self.valid):
            m.d.sync += inside.eq((inside | place.begins) & ~place.ends)
        with m.If(self.take):
            m.d.sync += self.take_entry.eq(self.take_entry + 1)
        with m.If(self.valid & ~poisoned):
            m.d.sync += self._arrived.eq(self._arrived + 1)
        with m.If(self.valid & (self.place.last | poisoned)):
            m.d.sync += self._over.eq(1)
        with m.If(poisoned):
            m.d.sync += self._poison.eq(1)

    def _ring(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """The bundles' memory and the two places behind it: its output, and a register. Returns what is to say that
        one can go, whether the memory's output is held, and whether one went in the cycle before.
        """
        depth = self._config.dealt_bundles
        m.submodules.ring = ring = memory.Memory(shape=self.i.shape().size + 1, depth=depth, init=[], attrs=BLOCK_RAM)
        write, read = ring.write_port(), ring.read_port()
        available, held, move = Signal(), Signal(), Signal()
        fetched = Signal()
        sides = [
            Signal(len(self._chosen) + len(self._turn) + len(self._first_block), name=f"side{n}") for n in range(2)
        ]
        side = Cat(self._chosen, self._turn, self._first_block)
        self._bundle_ends = Signal()
        m.d.comb += [
            write.en.eq(self.valid), write.addr.eq(self._arrived),
            write.data.eq(Cat(self.i, self._ends)),
            read.addr.eq(self._chosen), read.en.eq(~held | move),
            move.eq(~self.o.valid | self.o.ready),
            self._go.eq(available & read.en),
            self._bundle_ends.eq(read.data[-1]),
        ]  # fmt: skip
        m.d.sync += fetched.eq(self._go)
        payload = self.o.payload
        with m.If(read.en):
            m.d.sync += [held.eq(available), sides[0].eq(side)]
        with m.If(move):
            m.d.sync += [self.o.valid.eq(held), payload.judged.as_value().eq(read.data[:-1]), sides[1].eq(sides[0])]
            with m.If(self.deal):
                context = len(self._chosen)
                m.d.sync += payload.judged.context.eq(sides[0][context : context + len(self._turn)])
        m.d.comb += payload.entry.eq(sides[1])
        self._kept = Signal(range(BLOCKS))
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self._kept.eq(sides[1][-len(self._first_block) :])
        with m.Elif(self.settled & ~self.o.valid & ~held):
            m.d.sync += self._kept.eq(self._first_block)
        m.d.comb += self.ready.eq((self._block(self.take_entry) - self._kept)[: len(self._kept)] != BLOCKS - 1)
        return available, held, fetched

    def _block(self, number: Value) -> Value:
        return number[self._block_bits :]

    def _window(self, m: Module) -> tuple[Value, Value]:
        """Count the bundles of each block that are gone. Whether the window is full, and whether it moves if what is
        chosen goes.
        """
        gone = [Signal(self._block_bits + 1, name=f"gone{n}") for n in range(BLOCKS)]
        block, present = self._block(self._chosen), Signal(self._block_bits + 1)
        moves = Signal()
        m.d.comb += [
            present.eq(Array(gone)[block] + 1),
            moves.eq(Array([each[-1] for each in gone])[self._first_block]),
        ]
        for n, each in enumerate(gone):
            with m.If(self._go & (block == n)):
                m.d.sync += each.eq(present)
            with m.Elif(moves & (self._first_block == n)):
                m.d.sync += each.eq(0)
        with m.If(moves):
            m.d.sync += self._first_block.eq(self._first_block + 1)
        at_end = ~self._arrived[: self._block_bits].any()
        ahead = (self._block(self._arrived) - self._first_block)[: len(self._first_block)]
        return at_end & (ahead == BLOCKS - 1) & ~moves, present[-1] & (block == self._first_block)

    def _contexts(self, m: Module, fetched: Signal, filled: Value, opens: Value) -> tuple[Value, Value]:
        """Whether any bundle waits to be dealt, and whether the one of the context whose turn it is can go, or the
        poisoned one.
        """
        count = self._config.context_count
        busy = Signal(count)
        last_turn, following = Signal.like(self._turn), Signal.like(self._chosen)
        looks_up = fetched & self.deal
        with m.If(self._go):
            m.d.sync += [last_turn.eq(self._turn), following.eq(self._chosen + 1)]
        waiting, takes, place = self._give(m, busy, looks_up, last_turn)
        left = busy.any() | waiting.level.any()
        poison_goes = self._poison & ~left & ~fetched
        m.submodules.next = next_ = memory.Memory(shape=len(self._chosen), depth=count, init=[], attrs=DISTRIBUTED_RAM)
        write, of_turn = next_.write_port(), next_.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(takes | (looks_up & ~self._bundle_ends)),
            write.addr.eq(Mux(takes, place, last_turn)),
            write.data.eq(Mux(takes, waiting.o.payload, following)),
            of_turn.addr.eq(self._turn),
            self._chosen.eq(Mux(self.deal, Mux(poison_goes, self._arrived, of_turn.data), self._handed)),
        ]
        with m.If(self._go & ~self.deal):
            m.d.sync += self._handed.eq(self._handed + 1)
        present, known = busy.bit_select(self._turn, 1), Signal()
        m.d.comb += known.eq(~(looks_up & (last_turn == self._turn)))
        here = present & known & (of_turn.data != self._arrived)
        nothing_waits = ~waiting.level.any()
        closed = (self._over & nothing_waits) | (filled & (nothing_waits | busy.all()))
        skips = known & ~here & closed & busy.any()
        with m.If(skips & present & self._over):  # a poisoned bundle took the place of the rest
            m.d.sync += busy.bit_select(self._turn, 1).eq(0)
        self._go_round(m, busy, here, skips, closed & ~opens)
        with m.If(self._go & poison_goes):
            m.d.sync += self._poison.eq(0)
        return left, here | poison_goes

    def _give(self, m: Module, busy: Signal, looks_up: Value, last_turn: Signal) -> tuple[Fifo, Signal, Value]:
        """Give each activation the first context that became free, each of them once at first. Returns the first
        bundles of those that wait, whether one takes a context now, and which.
        """
        count = self._config.context_count
        m.submodules.waiting = waiting = Fifo(self._chosen.shape(), depth=self._config.dealt_bundles)
        m.submodules.free = pointers = RingPointers(count)
        m.submodules.free_memory = free = memory.Memory(
            shape=len(self._turn), depth=count, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = free.write_port(), free.read_port(domain="comb")
        fresh, takes, frees, place = Signal(range(count + 1)), Signal(), Signal(), Signal.like(self._turn)
        is_fresh = fresh != count
        m.d.comb += [
            waiting.i.valid.eq(self.valid & ~self.i.poisoned & self.deal & self._begins),
            waiting.i.payload.eq(self._arrived),
            waiting.o.ready.eq(takes),
            takes.eq(waiting.o.valid & (is_fresh | pointers.available) & ~(looks_up & ~self._bundle_ends)),
            frees.eq(looks_up & self._bundle_ends),
            pointers.write.eq(frees),
            pointers.fetch.eq(takes & ~is_fresh),
            write.en.eq(frees), write.addr.eq(pointers.write_address), write.data.eq(last_turn),
            read.addr.eq(pointers.read_address),
            place.eq(Mux(is_fresh, fresh, read.data)),
        ]  # fmt: skip
        with m.If(takes):
            m.d.sync += [busy.bit_select(place, 1).eq(1), fresh.eq(fresh + is_fresh)]
        with m.If(frees):
            m.d.sync += busy.bit_select(last_turn, 1).eq(0)
        return waiting, takes, place

    def _go_round(self, m: Module, busy: Signal, here: Value, skips: Value, closed: Value) -> None:
        """On to the next context, past those that can have no bundle."""
        after = busy & Cat(self._turn < number for number in range(len(busy)))
        later, lowest = first_of(m, after, "later"), first_of(m, busy, "lowest")
        with m.If(self.deal & ((self._go & here) | skips)):
            with m.If(~closed):
                m.d.sync += self._turn.eq(self._turn + 1)
            with m.Elif(after.any()):
                m.d.sync += self._turn.eq(later)
            with m.Else():
                m.d.sync += self._turn.eq(lowest)


def make_dealer(config: Config, clear: Value) -> Any:
    """A dealer that begins anew with ``clear``."""
    return ResetInserter(clear)(BundleDealer(config))
