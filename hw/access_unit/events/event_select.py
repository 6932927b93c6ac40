"""Which events of a bundle have steps to do, and which of them is next."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, context_bits, flags_layout
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.words import EventControl, EventField, EventKind, Predicate, Sense, Unit, event_index

STEP_BITS = 5
COUNT_BITS = 4


@dataclass(frozen=True)
class Event:
    """An event of a level; ``index`` is its word's."""

    level: int
    kind: EventKind

    @property
    def index(self) -> int:
        """The index of the event's word."""
        return event_index(self.level, self.kind)

    def flag(self, flags: data.View) -> Value:
        """Whether a bundle with ``flags`` carries this event."""
        sets = {EventKind.BEGIN: flags.begin, EventKind.ITER: flags.iteration, EventKind.END: flags.end}
        return sets[self.kind][self.level]


def events_in_order(levels: int) -> list[Event]:
    """All events in the order in which those of one bundle happen."""
    inward = [Event(level, kind) for level in range(levels) for kind in (EventKind.BEGIN, EventKind.ITER)]
    return inward + [Event(level, EventKind.END) for level in reversed(range(levels))]


def run_layout(config: Config) -> data.StructLayout:
    """The steps of one event: ``count`` of them from ``first`` on; ``rest`` marks the events after it."""
    return data.StructLayout({"first": STEP_BITS, "count": COUNT_BITS, "level": 3, "rest": 3 * config.levels})


def judged_layout(config: Config) -> data.StructLayout:
    """Of a bundle without its registers: ``marks`` of its events with steps, and whether it has ``some`` or is
    ``poisoned``.
    """
    flags = {"cause": Cause, "fault_level": 3, "context": context_bits(config)}
    return data.StructLayout(flags | {"marks": 3 * config.levels, "some": 1, "poisoned": 1})


def place_layout() -> data.StructLayout:
    """Where a bundle is in an activation of the level with contexts, and whether it is the nest's last."""
    return data.StructLayout({"begins": 1, "ends": 1, "last": 1})


class EventWords(wiring.Component):
    """Holds the words of all events, in the order of ``events_in_order``; cleared by ``clear``.

    Members: ``config_bus`` and ``words``, an array of EventControl.
    """

    def __init__(self, config: Config) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "words": Out(EventControl).array(3 * config.levels)})
        self._events = events_in_order(config.levels)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        write = self.config_bus.valid & (word.unit == Unit.EVENT) & (word.field == EventField.CONTROL.value)
        for event, held in zip(self._events, self.words, strict=True):
            with m.If(self.config_bus.clear):
                m.d.sync += held.eq(0)
            with m.Elif(write & (word.index == event.index)):
                m.d.sync += held.as_value().eq(word.value)
        return m


class RunSelect(wiring.Component):
    """The first of the marked events; combinational.

    Members: ``words`` of all events; ``marked``, a bit for each; ``run``: its steps, and the other marks.
    """

    def __init__(self, config: Config) -> None:
        count = 3 * config.levels
        super().__init__({"words": In(EventControl).array(count), "marked": In(count), "run": Out(run_layout(config))})
        self._events = events_in_order(config.levels)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        first = Signal(len(self.marked))
        m.d.comb += [
            first.eq(self.marked & (~self.marked + 1)[: len(self.marked)]),
            self.run.rest.eq(self.marked & ~first),
        ]

        def picked(values: list[Value]) -> Value:
            result: Value = Value.cast(0)
            for bit, value in zip(first, values, strict=True):
                result = result | Mux(bit, value, 0)
            return result

        m.d.comb += [
            self.run.first.eq(picked([word.first for word in self.words])),
            self.run.count.eq(picked([word.count for word in self.words])),
            self.run.level.eq(picked([Value.cast(event.level) for event in self._events])),
        ]
        return m


class EventSelect(wiring.Component):
    """Judges each bundle: which of its events have steps and hold.

    One bundle per cycle, 3 cycles latency; nothing in it waits.

    Members
    -------
    words : ``In(EventControl).array(3 * levels)``
    valid, i : ``In(1)``, ``In(bundle_layout(config))``
    o_valid, o : ``Out(1)``, ``Out(judged_layout(config))``
    place : ``Out(place_layout())``
        With ``o``; 0 in a machine without contexts.
    empty : ``Out(1)``
        No bundle inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "words": In(EventControl).array(3 * config.levels),
                "valid": In(1),
                "i": In(bundle_layout(config)),
                "o_valid": Out(1),
                "o": Out(judged_layout(config)),
                "place": Out(place_layout()),
                "empty": Out(1),
            }
        )
        self._config = config
        self._events = events_in_order(config.levels)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        valid = Signal(2)
        seen, judged = (Signal(flags_layout(self._config), name=name) for name in ("seen", "judged"))
        nonzero, marked = Signal(self._config.registers), Signal(len(self._events))
        m.d.comb += self.empty.eq(~valid.any() & ~self.o_valid)
        m.d.sync += [
            Cat(valid, self.o_valid).eq(Cat(self.valid, valid)),
            seen.eq(self.i.flags),
            nonzero.eq(Cat(self.i.registers[n].any() for n in range(self._config.registers))),
            judged.eq(seen),
            marked.eq(self._marks(seen, nonzero)),
            *(self.o[name].eq(judged[name]) for name in ("cause", "fault_level", "context")),
            self.o.marks.eq(marked),
            self.o.some.eq(marked.any()),
            self.o.poisoned.eq(judged.cause != Cause.NONE),
        ]
        level = self._config.context_level
        if level is not None:
            place = self.place
            m.d.sync += [
                place.begins.eq(judged.begin[level]), place.ends.eq(judged.end[level]), place.last.eq(judged.last)
            ]  # fmt: skip
        return m

    def _marks(self, seen: data.View, nonzero: Signal) -> Value:
        marks = []
        for event, word in zip(self._events, self.words, strict=True):
            named = Array([nonzero[0], *nonzero])[Value.cast(word.predicate)]
            holds = (word.predicate == Predicate.ALWAYS) | (named ^ (word.sense == Sense.ZERO))
            clean = seen.cause == Cause.NONE
            marks.append(event.flag(seen) & (word.count != 0) & holds & clean)
        return Cat(marks)
