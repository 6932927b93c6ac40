"""Turns the activations of a level into iterations."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.levels.bundles import assign
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.iteration_bus import TURN_FIELDS, IterationBus, bounds_layout
from daedal.hw.config.core import Config


class Iterator(wiring.Component):
    """Counts from the lower to the upper bound, and computes the addresses of sequential loads.

    One iteration per cycle, also across activations. Latency from activation to iteration: 2 cycles.

    Of activations that run ``in_turn`` it makes no iterations, but two turns for the addresses of their first element
    and of the one after the last: for the lower and for the upper bound; one turn for those without iterations.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    in_turn : ``In(1)``
    i : ``In(stream.Signature(bounds_layout(config, level)))``
        Activations.
    o : ``Out(TurnBus(config, level))``
        Iterations; bundles that only pass, and hints, have ``work`` 0.
    addresses : ``Out(address_bits).array(sequential loads)``
        Byte address of each sequential load, valid with ``o``.
    ready : ``In(1)``
        ``o`` is taken.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "in_turn": In(1),
                "i": In(stream.Signature(bounds_layout(config, level))),
                "o": Out(IterationBus(config, level)),
                "addresses": Out(config.address_bits).array(config.sequential_loads[level]),
                "ready": In(1),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.counter = counter = _Counter(self._config, self._level)
        connect(m, flipped(self.words), counter.words)
        connect(m, flipped(self.i), counter.i)
        m.d.comb += [
            counter.in_turn.eq(self.in_turn),
            counter.ready.eq(~self.o.valid | self.ready),
        ]
        with m.If(counter.ready):
            m.d.sync += self.o.valid.eq(counter.o.valid)
            with m.If(counter.o.valid):
                m.d.sync += [*assign(self.o, counter.o, TURN_FIELDS), *self._addresses(counter)]
        return m

    def _addresses(self, counter: "_Counter") -> list[object]:
        statements = []
        for slot, address in enumerate(self.addresses):
            size = getattr(self.words, f"load{slot}").size
            statements.append(address.eq(counter.starts[slot] + (counter.o.induction << size)))
        return statements


class _Counter(wiring.Component):
    """Holds one activation and steps through it; loads the next one in the cycle in which the last step leaves."""

    def __init__(self, config: Config, level: int) -> None:
        slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "in_turn": In(1),
                "i": In(stream.Signature(bounds_layout(config, level))),
                "o": Out(IterationBus(config, level)),
                "starts": Out(config.address_bits).array(slots),
                "ready": In(1),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        o, new = self.o, self.i.payload
        left = Signal(self._config.address_bits + 1)
        ends, last, load = Signal(), Signal(), Signal()
        turns = self.in_turn if self._config.contexts[self._level] else 0
        m.d.comb += [
            load.eq(~o.valid | (self.ready & last)),
            self.i.ready.eq(load),
            o.last.eq(last),
            o.final.eq(ends & last),
        ]
        with m.If(load):
            m.d.sync += [
                o.valid.eq(self.i.valid),
                o.entry.eq(new.entry),
                o.work.eq(new.work),
                o.first.eq(1),
                o.context.eq(new.context),
                o.hint.eq(new.hint),
                o.induction.eq(new.lower),
                ends.eq(new.ends),
                *(to.eq(new.starts[n]) for n, to in enumerate(self.starts)),
                left.eq(new.left),
                last.eq(new.single),
            ]
        with m.Elif(self.ready):
            m.d.sync += [
                # Activations in turn: on to the upper bound.
                o.induction.eq(o.induction + Mux(turns, left, self.words.step)),
                left.eq(left - self.words.step),
                o.first.eq(0),
                last.eq((left <= self.words.two_steps) | turns),
            ]
        return m
