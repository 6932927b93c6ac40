"""Activations side by side: an iteration of each in turn."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.activation import ActivationBus
from daedal.hw.access_unit.bundles import (
    LoadReturns,
    Outcome,
    WorkBus,
    activation_flags,
    delayed,
    load_request_layout,
    register,
)
from daedal.hw.access_unit.context_schedule import ContextSchedule
from daedal.hw.access_unit.context_stream import ContextStream
from daedal.hw.access_unit.element import Element, word_of
from daedal.hw.access_unit.level_words import LevelWords
from daedal.hw.access_unit.operand import targets
from daedal.hw.config import Config
from daedal.hw.interfaces import context_entries
from daedal.hw.isa.launch import Cause

STAGES = 4
"""Registers between an iteration's start and the output."""

STATIC = ("registers", "flags", "limit", "run", "empty", "order")
"""What an entry keeps of its activation unchanged; ``left`` and ``lower`` count."""


class Contexts(wiring.Component):
    """Runs ``config.contexts[level]`` activations in turn, an iteration per cycle, and their sequential loads.

    ``context_ahead`` times as many activations have an *entry*, so that the lines of those that come next are on their
    way before a context is free for them. The order of iterations depends on nothing but the activations' lengths: see
    ``ContextSchedule``. An activation follows itself by two cycles or more.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    running : ``In(1)``
        A nest runs.
    i, ready : ``In(ActivationBus(config, slots))``, ``Out(1)``
        Activations, taken by ``ready``.
    free : ``In(1)``
        The stages that follow can take an iteration.
    take : ``Out(1)``
        An iteration enters these stages: its elements are there.
    o, values : ``Out(WorkBus(config))``, ``Out(64).array(slots)``
        Iterations and their elements, extended to 64 bits.
    requests : ``Out(stream of load_request_layout).array(slots)``
    returns : ``In(LoadReturns(config))``
    fault_value : ``Out(64)``
        The upper bound of an activation whose bounds are in the wrong order.
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, level: int, first_unit: int) -> None:
        self._slots = slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "running": In(1),
                "i": In(ActivationBus(config, slots)),
                "ready": Out(1),
                "free": In(1),
                "take": Out(1),
                "o": Out(WorkBus(config)),
                "values": Out(64).array(slots),
                "requests": Out(stream.Signature(load_request_layout(config))).array(slots),
                "returns": In(LoadReturns(config)),
                "fault_value": Out(64),
                "busy": Out(1),
            }
        )
        self._config, self._level, self._first_unit = config, level, first_unit

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.schedule = schedule = ContextSchedule(self._config)
        streams = [ContextStream(self._config, self._first_unit + slot) for slot in range(self._slots)]
        enter, dead, room = Signal(), Signal(), Signal()
        m.d.comb += [
            schedule.running.eq(self.running),
            schedule.enter.eq(enter),
            schedule.enter_single.eq(~self.i.run | (self.i.left == 1)),
            schedule.enter_final.eq(self.i.flags.last | (self.i.flags.cause != Cause.NONE)),
            room.eq(schedule.room & self.running & Cat(stream.clean for stream in streams).all()),
            enter.eq(self.i.valid & room),
            self.ready.eq(room),
        ]
        kept = self._keep(m, schedule, enter)
        self._start(m, schedule, streams, kept, dead)
        self._streams(m, schedule, streams, enter, kept["run0"])
        return m

    def _keep(self, m: Module, schedule: ContextSchedule, enter: Signal) -> dict[str, Any]:
        """A memory for each member of the activation, by entry; those that count are written back."""
        kept: dict[str, Any] = {}
        members = [(name, getattr(self.i, name)) for name in STATIC]
        flat = [
            (f"{name}{n}", value)
            for name, member in members
            for n, value in enumerate(member if isinstance(member, list) else [member])
        ]
        for name, value in flat:
            ring = self._memory(m, name, len(Value.cast(value)))
            write, read = ring.write_port(), ring.read_port(domain="comb")
            m.d.comb += [
                write.en.eq(enter), write.addr.eq(schedule.enter_entry), write.data.eq(value),
                read.addr.eq(schedule.entry),
            ]  # fmt: skip
            kept[name] = read.data
        # An activation whose bounds are in the wrong order has no use for the lower one.
        lower = Mux(self.i.order, self.i.upper, self.i.lower)
        counted = {"lower": (lower, 1), "left": (self.i.left, -1)}
        for name, (value, change) in counted.items():
            # Two writers: activations that enter, and iterations that leave; so two memories and a bit that tells.
            first, later = self._memory(m, f"first_{name}", len(value)), self._memory(m, name, len(value))
            write, again = first.write_port(), later.write_port()
            read, read_again = first.read_port(domain="comb"), later.read_port(domain="comb")
            present = Signal(len(value), name=f"present_{name}")
            m.d.comb += [
                write.en.eq(enter), write.addr.eq(schedule.enter_entry), write.data.eq(value),
                read.addr.eq(schedule.entry), read_again.addr.eq(schedule.entry),
                present.eq(Mux(schedule.first, read.data, read_again.data)),
                again.en.eq(self.take), again.addr.eq(schedule.entry), again.data.eq(present + change),
            ]  # fmt: skip
            kept[name] = present
        return kept

    def _memory(self, m: Module, name: str, width: int) -> memory.Memory:
        m.submodules[f"{name}_ring"] = ring = memory.Memory(shape=width, depth=context_entries(self._config), init=[])
        return ring

    def _start(self, m: Module, schedule: ContextSchedule, streams: list[ContextStream], kept: dict[str, Any],
               dead: Signal) -> None:  # fmt: skip
        """The iteration whose turn it is: its registers, and whether its lines are there."""
        hit, flags = Signal(), self.i.flags.shape()(kept["flags0"])
        run, empty, order = (kept[f"{name}0"] for name in ("run", "empty", "order"))
        m.d.comb += [
            hit.eq(Cat(*(~run | stream.hit for stream in streams)).all()),
            self.take.eq(schedule.valid & hit & self.free & ~dead),
            schedule.take.eq(self.take),
            # Two iterations are left: the next one is the last.
            schedule.next_last.eq(kept["left"] == 2),
        ]
        bad = order | (flags.cause != Cause.NONE)
        with m.If(self.take & bad):
            m.d.sync += [dead.eq(1)]
        with m.If(self.take & order):
            m.d.sync += self.fault_value.eq(kept["lower"].as_signed())
        started = WorkBus(self._config).create(path=("started",))
        kind = Outcome(run, empty, order)
        first, last = schedule.first, schedule.last
        bits = targets(m, "induction", self.words.control.induction, self._config.registers)
        m.d.sync += started.valid.eq(self.take)
        with m.If(self.take):
            m.d.sync += [
                *(
                    to.eq(Mux(run & bit, kept["lower"], kept[f"registers{n}"]))
                    for n, (to, bit) in enumerate(zip(started.registers, bits, strict=True))
                ),
                started.work.eq(run),
                started.empty.eq(empty),
                started.induction.eq(kept["lower"]),
                started.limit.eq(kept["limit0"]),
                *activation_flags(started.flags, flags, self._level, kind, first, last),
                started.flags.last.eq(schedule.final),
                started.flags.context.eq(schedule.context),
            ]
        register(m, self.o, delayed(m, started, STAGES - 2))

    def _streams(self, m: Module, schedule: ContextSchedule, streams: list[ContextStream], enter: Signal,
                 run: Value) -> None:  # fmt: skip
        """Where the elements of an activation are, and which line holds the one whose turn it is."""
        for slot, lines in enumerate(streams):
            m.submodules[f"stream{slot}"] = lines
            control = getattr(self.words, f"load{slot}")
            start = Cat(*(self.i.starts[slot][n] & (control.size <= n) for n in range(3)), self.i.starts[slot][3:])
            connect(m, lines.request, flipped(self.requests[slot]))
            connect(m, flipped(self.returns), lines.returns)
            m.d.comb += [
                lines.enable.eq(control.enable),
                lines.size.eq(control.size),
                lines.enter.eq(enter & self.i.run),
                lines.enter_entry.eq(schedule.enter_entry),
                lines.enter_first.eq(start + (self.i.lower << control.size)),
                lines.enter_end.eq(start + (self.i.upper << control.size)),
                lines.placed.eq(schedule.placed),
                lines.entry.eq(schedule.entry),
                lines.first.eq(schedule.first),
                lines.last.eq(schedule.last),
                lines.take.eq(self.take & run),
            ]
            self._extract(m, slot, control, lines)
        m.d.comb += self.busy.eq(Cat(*(lines.busy for lines in streams)).any())

    def _extract(self, m: Module, slot: int, control: Any, lines: ContextStream) -> None:
        """First the word, in the next cycle the element."""
        m.submodules[f"element{slot}"] = element = Element()
        m.d.sync += [
            element.word.eq(word_of(lines.line, lines.offset)),
            element.offset.eq(lines.offset),
            self.values[slot].eq(element.value),
        ]
        m.d.comb += [element.size.eq(control.size), element.is_signed.eq(control.is_signed)]
