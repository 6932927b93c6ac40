"""Activations side by side: an iteration of each in turn."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.interleaving.context_prefetcher import ContextPrefetcher
from daedal.hw.access_unit.interleaving.context_scheduler import ContextScheduler
from daedal.hw.access_unit.levels.bundles import LoadReturns, assign, load_request_layout
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.activation import ActivationBus
from daedal.hw.access_unit.levels.pipelined.iteration_bus import TURN_FIELDS, IterationBus
from daedal.hw.access_unit.loads.element_shift import WORD_BYTES, word_of
from daedal.hw.config.core import Config
from daedal.hw.interfaces import context_entries
from daedal.hw.isa.launch import Cause
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM

STAGES = 2
"""Registers between an iteration's start and the output."""


class Interleaver(wiring.Component):
    """Runs ``config.contexts[level]`` activations in turn, an iteration per cycle, and their sequential loads.

    ``context_ahead`` times as many activations have an *entry*, so that the lines of those that come next are on their
    way before a context is free for them. The order of iterations depends on nothing but the activations' lengths: see
    ``ContextScheduler``. An activation follows itself by two cycles or more.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    running : ``In(1)``
        A nest runs.
    i, enter : ``In(ActivationBus(config, slots))``, ``In(1)``
        An activation enters; needs ``room``.
    room, entry : ``Out(1)``, ``Out``
        The next activation has an entry, and which.
    leaves : ``In(TurnBus(config, level))``
        Turns, a cycle before what is kept of their activation is used last.
    bounds, addresses : ``In(TurnBus(config, level))``, ``In(address_bits).array(slots)``
        A cycle later or more: the turn for an activation's lower bound, then that for its upper one, and the addresses
        of the elements there.
    free : ``In(1)``
        The stages that follow can take an iteration.
    take : ``Out(1)``
        An iteration enters these stages: its elements are there.
    o : ``Out(TurnBus(config, level))``
        Iterations.
    found, offsets : ``Out(64).array(slots)``, ``Out(3).array(slots)``
        The word that each element is in, and its byte there.
    requests : ``Out(stream of load_request_layout).array(slots)``
    returns : ``In(LoadReturns(config))``
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, level: int, first_unit: int) -> None:
        self._slots = slots = config.sequential_loads[level]
        turns = IterationBus(config, level)
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "running": In(1),
                "i": In(ActivationBus(config, slots)),
                "enter": In(1),
                "room": Out(1),
                "entry": Out(turns.members["entry"].shape),
                "leaves": In(turns),
                "bounds": In(turns),
                "addresses": In(config.address_bits).array(slots),
                "free": In(1),
                "take": Out(1),
                "o": Out(turns),
                "found": Out(8 * WORD_BYTES).array(slots),
                "offsets": Out(exact_log2(WORD_BYTES)).array(slots),
                "requests": Out(stream.Signature(load_request_layout(config))).array(slots),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._level, self._first_unit = config, level, first_unit
        self._dead = Signal(name="dead")

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.schedule = schedule = ContextScheduler(self._config)
        streams = [ContextPrefetcher(self._config, self._first_unit + slot) for slot in range(self._slots)]
        turn = IterationBus(self._config, self._level).create(path=("turn",))
        again = Signal()
        m.d.comb += [
            schedule.running.eq(self.running & Cat(stream.clean for stream in streams).all()),
            schedule.enter.eq(self.enter),
            schedule.enter_single.eq(~self.i.run | (self.i.left == 1)),
            schedule.enter_final.eq(self.i.flags.last | (self.i.flags.cause != Cause.NONE)),
            self.room.eq(schedule.room),
            self.entry.eq(schedule.enter_entry),
            schedule.leave.eq(self.leaves.valid & self.leaves.last),
            schedule.leave_entry.eq(self.leaves.entry),
        ]
        run = self._kept(m, "run", self.i.run, schedule.entry)
        bad = self._kept(m, "bad", self.i.order | (self.i.flags.cause != Cause.NONE), schedule.entry)
        left, lower = (
            self._counted(m, "left", self.i.left, -1, schedule.comes, schedule),
            self._counted(m, "lower", self.i.lower, 1, self.take, turn),
        )
        # Two iterations are left: the next one is the last.
        m.d.comb += schedule.next_last.eq(left == 2)
        hit = Cat(*(stream.hit for stream in streams)).all()
        self._look(m, schedule, turn, again, run, hit | (~run & ~again))
        self._start(m, turn, lower, bad, schedule.move)
        self._streams(m, schedule, streams, turn, again)
        return m

    def _kept(self, m: Module, name: str, value: Value, entry: Value) -> Signal:
        """``value`` of the activation in ``entry``, kept since that came."""
        ring = self._memory(m, name, len(value))
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [write.en.eq(self.enter), write.addr.eq(self.entry), write.data.eq(value), read.addr.eq(entry)]
        kept: Signal = read.data
        return kept

    def _counted(self, m: Module, name: str, value: Value, change: int, counts: Value, turn: Any) -> Signal:
        """The same of a counter, that of the activation whose ``turn`` it is, which ``counts``.

        Two writers: activations that enter, and turns; so two memories and a bit that tells.
        """
        later, present = self._memory(m, name, len(value)), Signal(len(value), name=f"present_{name}")
        write, read = later.write_port(), later.read_port(domain="comb")
        m.d.comb += [
            present.eq(Mux(turn.first, self._kept(m, f"first_{name}", value, turn.entry), read.data)),
            read.addr.eq(turn.entry),
            write.en.eq(counts), write.addr.eq(turn.entry), write.data.eq(present + change),
        ]  # fmt: skip
        return present

    def _memory(self, m: Module, name: str, width: int) -> memory.Memory:
        m.submodules[f"{name}_ring"] = ring = memory.Memory(
            shape=width, depth=context_entries(self._config), init=[], attrs=DISTRIBUTED_RAM
        )
        return ring

    def _look(self, m: Module, schedule: ContextScheduler, turn: Any, again: Signal, run: Value, hit: Value) -> None:
        """Look up whether the lines of the turn that comes are here, and ``again`` those of one that waits for them.

        So that is known when an iteration may start, and whose turn comes next is never known late. It is not looked
        up while the same activation's turn before it waits, which has yet to go on to its next element.
        """
        stopped, at_hand = Signal(), Signal()
        m.d.comb += [
            again.eq(turn.valid & ~at_hand),
            self.take.eq(at_hand & self.free & ~self._dead),
            schedule.move.eq(schedule.valid & (~turn.valid | (self.take & (turn.context != schedule.context)))),
        ]
        m.d.sync += stopped.eq(~self.running)
        with m.If(schedule.move):
            m.d.sync += [
                turn.valid.eq(1),
                at_hand.eq(hit),
                turn.work.eq(run),
                *assign(turn, schedule, ("entry", "first", "last", "final", "context")),
            ]
        with m.Elif(self.take):
            m.d.sync += [turn.valid.eq(0), at_hand.eq(0)]
        with m.Elif(again):
            m.d.sync += at_hand.eq(hit)
        with m.If(stopped):
            m.d.sync += [turn.valid.eq(0), at_hand.eq(0)]

    def _start(self, m: Module, turn: Any, lower: Value, bad: Value, move: Value) -> None:
        """The iteration whose turn it is starts; nothing comes after a poisoned one."""
        poisoned = Signal()
        with m.If(move):
            m.d.sync += poisoned.eq(bad)
        with m.If(self.take & poisoned):
            m.d.sync += [self._dead.eq(1)]
        started = IterationBus(self._config, self._level).create(path=("started",))
        m.d.sync += [started.valid.eq(self.take), self.o.valid.eq(started.valid)]
        with m.If(self.take):
            m.d.sync += [
                started.induction.eq(lower),
                *assign(started, turn, ("entry", "work", "first", "last", "final", "context")),
            ]
        with m.If(started.valid):
            m.d.sync += assign(self.o, started, TURN_FIELDS)

    def _streams(self, m: Module, schedule: ContextScheduler, streams: list[ContextPrefetcher], turn: Any,
                 again: Signal) -> None:  # fmt: skip
        """Where the elements of an activation are, and which line holds the one whose turn it is."""
        bounds = self.bounds
        for slot, lines in enumerate(streams):
            m.submodules[f"stream{slot}"] = lines
            control = getattr(self.words, f"load{slot}")
            address = self.addresses[slot]
            connect(m, lines.request, flipped(self.requests[slot]))
            connect(m, flipped(self.returns), lines.returns)
            m.d.comb += [
                lines.enable.eq(control.enable),
                lines.size.eq(control.size),
                lines.enter.eq(bounds.valid & bounds.work),
                lines.enter_last.eq(bounds.last),
                lines.enter_entry.eq(bounds.entry),
                lines.address.eq(Cat(*(address[n] & (control.size <= n) for n in range(3)), address[3:])),
                lines.placed.eq(schedule.placed),
                lines.look.eq(schedule.move | again),
                lines.entry.eq(Mux(again, turn.entry, schedule.entry)),
                lines.first.eq(Mux(again, turn.first, schedule.first)),
                lines.taken_entry.eq(turn.entry),
                lines.last.eq(turn.last),
                lines.take.eq(self.take & turn.work),
                self.found[slot].eq(word_of(lines.line, lines.offset)),
                self.offsets[slot].eq(lines.offset),
            ]
        m.d.comb += self.busy.eq(Cat(*(lines.busy for lines in streams)).any())
