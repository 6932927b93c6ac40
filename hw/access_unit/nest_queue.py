"""Program words of the nests to come, for one unit."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.interfaces import ConfigBus, ConfigWord
from daedal.hw.lib.below import below
from daedal.hw.queues.fifo import Fifo

DEPTH = 64
"""Words and marks that can wait."""

MARGIN = 8
"""Words and marks that may still come after ``room`` has fallen: the loader's stages hold fewer."""

AHEAD = 2
"""Nests at work at a time: a level can be one ahead of the event unit."""

NEST_BITS = 8
"""Nests are counted in so many bits."""


class Kind(enum.Enum, shape=2):
    """What waits."""

    WORD = 0
    CLEAR = 1
    RUN = 2


def entry_layout() -> data.StructLayout:
    """A word; or a mark: ``clear``, or that the nest runs whose number is the word's value. ``side`` of the launch."""
    return data.StructLayout({"word": ConfigWord, "kind": Kind, "side": 1})


class NestQueue(wiring.Component):
    """Lets a unit have the words of its next nest once it is through with the one before.

    So the loader need not wait for units, and each unit goes on to the next nest, also the next launch's, by itself.
    A word passes per cycle; it is there 4 cycles after it came at the earliest, 5 if ``held`` is ``registered``: for
    memories that lie far apart.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    mine : ``In(1)``
        The word is for this unit.
    start, nest : ``In(1)``, ``In(8)``
        The nest whose words have come is complete; it has this number. Never with a word or ``clear``.
    room : ``Out(1)``
        MARGIN more can come.
    held : ``Out(ConfigBus())``
        The words, for the unit.
    go : ``Out(1)``
        Strobe: run the nest; its words have been there for two cycles, or one if ``registered``.
    busy, side, number : ``Out(1)``, ``Out(1)``, ``Out(8)``
        A nest is at work; which launch's, and its number.
    done : ``In(1)``
        Strobe: the unit is through with it.
    begun, over : ``Out(2)``, ``In(2)``
        Nests that this unit has begun, and that the last unit is through with, modulo 4.
    """

    def __init__(self, *, registered: bool = False) -> None:
        self._registered = registered
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "mine": In(1),
                "start": In(1),
                "nest": In(NEST_BITS),
                "room": Out(1),
                "held": Out(ConfigBus()),
                "go": Out(1),
                "busy": Out(1),
                "side": Out(1),
                "number": Out(NEST_BITS),
                "done": In(1),
                "begun": Out(2),
                "over": In(2),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.entries = entries = Fifo(entry_layout(), depth=DEPTH)
        bus, new = self.config_bus, entries.i.payload
        m.d.comb += [
            entries.i.valid.eq((bus.valid & self.mine) | bus.clear | self.start),
            new.kind.eq(Mux(self.start, Kind.RUN, Mux(bus.clear, Kind.CLEAR, Kind.WORD))),
            new.word.eq(bus.word),
            new.side.eq(bus.side),
        ]
        with m.If(self.start):
            m.d.comb += new.word.value.eq(self.nest)
        m.d.sync += self.room.eq(below(entries.level, DEPTH - MARGIN))
        self._hand_out(m, entries)
        return m

    def _hand_out(self, m: Module, entries: Fifo) -> None:
        next_, take, runs, ahead = entries.o.payload, Signal(), Signal(), Signal(2)
        runs_soon = Signal()
        m.d.comb += [
            ahead.eq(self.begun - self.over),
            runs.eq(next_.kind == Kind.RUN),
            entries.o.ready.eq(~self.busy & ~(runs & (ahead == AHEAD))),
            take.eq(entries.o.valid & entries.o.ready),
        ]
        m.d["sync" if self._registered else "comb"] += [
            self.held.valid.eq(take & (next_.kind == Kind.WORD)),
            self.held.clear.eq(take & (next_.kind == Kind.CLEAR)),
            self.held.word.eq(next_.word),
            self.held.side.eq(next_.side),
        ]
        m.d.sync += [runs_soon.eq(take & runs), self.go.eq(runs_soon)]
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        with m.If(take & runs):
            m.d.sync += [
                self.busy.eq(1),
                self.side.eq(next_.side),
                self.number.eq(next_.word.value),
                self.begun.eq(self.begun + 1),
            ]
