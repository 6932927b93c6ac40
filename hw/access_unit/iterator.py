"""Turns the activations of a level into iterations."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.activation import ActivationBus
from daedal.hw.access_unit.bundles import WorkBus, activation_flags, assign
from daedal.hw.access_unit.level_words import LevelWords
from daedal.hw.access_unit.operand import targets
from daedal.hw.config import Config


class Iterator(wiring.Component):
    """Counts from the lower to the upper bound, and computes the addresses of sequential loads.

    One iteration per cycle, also across activations. Latency from activation to iteration: 2 cycles.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    i, open : ``In(ActivationBus(config, sequential loads))``, ``Out(1)``
        Activations, taken by ``open``.
    o : ``Out(WorkBus(config))``
        Iterations, with the induction register written; bundles that only pass have ``work`` 0.
    addresses : ``Out(address_bits).array(sequential loads)``
        Byte address of each sequential load, valid with ``o``.
    ready : ``In(1)``
        ``o`` is taken.
    fault_value : ``Out(64)``
        The upper bound of the activation that was poisoned with BOUNDS_ORDER.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(ActivationBus(config, config.sequential_loads[level])),
                "open": Out(1),
                "o": Out(WorkBus(config)),
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
            self.open.eq(counter.open),
            counter.ready.eq(~self.o.valid | self.ready),
            self.fault_value.eq(counter.fault_value),
        ]
        with m.If(counter.ready):
            m.d.sync += self.o.valid.eq(counter.o.valid)
            with m.If(counter.o.valid):
                m.d.sync += [*assign(self.o, counter.o), *self._addresses(counter)]
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
                "i": In(ActivationBus(config, slots)),
                "open": Out(1),
                "o": Out(WorkBus(config)),
                "starts": Out(config.address_bits).array(slots),
                "ready": In(1),
                "fault_value": Out(64),
            }
        )
        self.fields = tuple(name for name in ActivationBus(config, slots).members if name != "valid")
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        held = ActivationBus(self._config, len(self.starts)).create(path=("held",))
        left = Signal(self._config.address_bits + 1)
        first, last, dead = Signal(), Signal(), Signal()
        load = Signal()
        m.d.comb += [
            load.eq(~held.valid | (self.ready & last)),
            self.open.eq(load & ~dead),
        ]
        with m.If(load):
            m.d.sync += [
                held.valid.eq(self.i.valid & ~dead),
                *assign(held, self.i, self.fields),
                left.eq(self.i.left),
                first.eq(1),
                last.eq(~self.i.run | (self.i.left <= self.words.step)),
            ]
            with m.If(self.i.valid & self.i.order & ~dead):
                m.d.sync += [dead.eq(1), self.fault_value.eq(self.i.upper.as_signed())]
        with m.Elif(self.ready):
            m.d.sync += [
                held.lower.eq(held.lower + self.words.step),
                left.eq(left - self.words.step),
                first.eq(0),
                last.eq(left <= self.words.two_steps),
            ]
        m.d.comb += self._output(m, held, first, last)
        return m

    def _output(self, m: Module, held: "ActivationBus", first: Signal, last: Signal) -> list[object]:
        flags = held.flags
        bits = targets(m, "induction", self.words.control.induction, self._config.registers)
        registers = [
            to.eq(Mux(held.run & bit, held.lower, of))
            for to, of, bit in zip(self.o.registers, held.registers, bits, strict=True)
        ]
        return [
            *registers,
            *(to.eq(of) for to, of in zip(self.starts, held.starts, strict=True)),
            self.o.valid.eq(held.valid),
            self.o.work.eq(held.run),
            self.o.empty.eq(held.empty),
            self.o.induction.eq(held.lower),
            self.o.limit.eq(held.limit),
            *activation_flags(self.o.flags, flags, self._level, held, first, last),
            self.o.flags.last.eq(flags.last & last),
            self.o.flags.context.eq(flags.context),
        ]
