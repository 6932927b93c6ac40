"""The count of a level's iterations whose predicate holds."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import RESULT_FIELDS, WorkBus, register
from daedal.hw.access_unit.levels.pipelined.operand import chosen, targets, write
from daedal.hw.config.core import Config
from daedal.hw.isa.words import CountControl, Predicate, Sense
from daedal.hw.lib.replicate import replicate

STAGES = 2
"""Registers from input to output."""


class PredicateCounter(wiring.Component):
    """Counts in an activation of level ``level`` and writes the count, one iteration per cycle, 2 cycles latency.

    Members: ``control``, the program word; ``i``, ``o``: ``WorkBus(config)``.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__({"control": In(CountControl), "i": In(WorkBus(config)), "o": Out(WorkBus(config))})
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        judged = WorkBus(self._config).create(path=("judged",))
        holds, total = Signal(), Signal(self._config.address_bits)
        count = self._counted(m, judged, total)
        predicate = chosen(m, "predicate", self.control.predicate, [one.any() for one in self.i.registers], first=1)
        register(m, judged, self.i, RESULT_FIELDS)
        with m.If(self.i.valid):
            m.d.sync += holds.eq(
                (self.control.predicate == Predicate.ALWAYS) | (predicate ^ (self.control.sense == Sense.ZERO))
            )
        m.d.comb += total.eq(count + holds)
        counts = self.control.enable & (judged.work | judged.empty)
        bits = targets(m, "count", self.control.destination, self._config.registers)
        value = total & replicate(judged.work, self._config.address_bits)
        write(m, self.o, judged, bits & replicate(counts, len(bits)), value)
        return m

    def _counted(self, m: Module, judged: WorkBus, total: Signal) -> Value:
        """The count so far in the activation; in a level with contexts, in the iteration's own.

        Without them it is 0 again behind an activation's last iteration, by the flip-flops' own reset.
        """
        contexts, counted = self._config.contexts[self._level], judged.valid & judged.work
        if not contexts:
            count = Signal(self._config.address_bits)
            with m.If(counted):
                m.d.sync += count.eq(total)
            with m.If(counted & judged.flags.end[self._level]):
                m.d.sync += count.eq(0)
            return count
        m.submodules.counts = counts = memory.Memory(shape=self._config.address_bits, depth=contexts, init=[])
        keep, read = counts.write_port(), counts.read_port(domain="comb")
        m.d.comb += [
            keep.en.eq(counted),
            keep.addr.eq(judged.flags.context),
            keep.data.eq(total),
            read.addr.eq(judged.flags.context),
        ]
        return Mux(judged.flags.begin[self._level], 0, read.data)
