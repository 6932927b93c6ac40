"""Turns the activations of a level into iterations."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.activation import ActivationBus
from daedal.hw.access_unit.bundles import assign
from daedal.hw.access_unit.level_words import LevelWords
from daedal.hw.access_unit.turns import TURN_FIELDS, TurnBus
from daedal.hw.config import Config


class Iterator(wiring.Component):
    """Counts from the lower to the upper bound, and computes the addresses of sequential loads.

    One iteration per cycle, also across activations. Latency from activation to iteration: 2 cycles.

    Of activations that run ``in_turn`` it makes no iterations, but two turns for the addresses of their first element
    and of the one after the last: for the lower and for the upper bound; one turn for those without iterations.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    in_turn : ``In(1)``
    i, entry, open : ``In(ActivationBus(config, sequential loads))``, ``In``, ``Out(1)``
        Activations, taken by ``open``, and where they are kept.
    o : ``Out(TurnBus(config, level))``
        Iterations; bundles that only pass have ``work`` 0.
    addresses : ``Out(address_bits).array(sequential loads)``
        Byte address of each sequential load, valid with ``o``.
    ready : ``In(1)``
        ``o`` is taken.
    fault_value : ``Out(64)``
        The upper bound of the first activation whose bounds are in the wrong order.
    """

    def __init__(self, config: Config, level: int) -> None:
        turns = TurnBus(config, level)
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "in_turn": In(1),
                "i": In(ActivationBus(config, config.sequential_loads[level])),
                "entry": In(turns.members["entry"].shape),
                "open": Out(1),
                "o": Out(turns),
                "addresses": Out(config.address_bits).array(config.sequential_loads[level]),
                "ready": In(1),
                "fault_value": Out(64),
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
            counter.entry.eq(self.entry),
            self.open.eq(counter.open),
            counter.ready.eq(~self.o.valid | self.ready),
            self.fault_value.eq(counter.fault_value),
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
        turns = TurnBus(config, level)
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "in_turn": In(1),
                "i": In(ActivationBus(config, slots)),
                "entry": In(turns.members["entry"].shape),
                "open": Out(1),
                "o": Out(turns),
                "starts": Out(config.address_bits).array(slots),
                "ready": In(1),
                "fault_value": Out(64),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        o = self.o
        left = Signal(self._config.address_bits + 1)
        upper = Signal(self._config.address_bits)
        ends, last, dead, stops, load = Signal(), Signal(), Signal(), Signal(), Signal()
        turns = self.in_turn if self._config.contexts[self._level] else 0
        m.d.comb += [
            # Activations in turn end in another order than they came in: which one is the last, they find out.
            stops.eq(dead & ~turns),
            load.eq(~o.valid | (self.ready & last)),
            self.open.eq(load & ~stops),
            o.last.eq(last),
            o.final.eq(ends & last),
        ]
        with m.If(load):
            m.d.sync += [
                o.valid.eq(self.i.valid & ~stops),
                o.entry.eq(self.entry),
                o.work.eq(self.i.run),
                o.first.eq(1),
                o.context.eq(self.i.flags.context),
                o.induction.eq(self.i.lower),
                ends.eq(self.i.flags.last),
                *(to.eq(of) for to, of in zip(self.starts, self.i.starts, strict=True)),
                upper.eq(self.i.upper),
                left.eq(self.i.left),
                last.eq(~self.i.run | ((self.i.left <= self.words.step) & ~turns)),
            ]
            with m.If(self.i.valid & self.i.order & ~dead):
                m.d.sync += [dead.eq(1), self.fault_value.eq(self.i.upper.as_signed())]
        with m.Elif(self.ready):
            m.d.sync += [
                o.induction.eq(Mux(turns, upper, o.induction + self.words.step)),
                left.eq(left - self.words.step),
                o.first.eq(0),
                last.eq((left <= self.words.two_steps) | turns),
            ]
        return m
