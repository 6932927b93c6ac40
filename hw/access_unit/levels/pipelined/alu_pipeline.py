"""The ALU operations of a level."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import RESULT_FIELDS, WorkBus, assign
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined import alu
from daedal.hw.config.core import Config
from daedal.hw.isa.words import AluOp


class AluPipeline(wiring.Component):
    """One ALU for all operations of a level: an iteration goes round it, once for each.

    With up to one operation that the program enables, an iteration per cycle; with two, one every 2 cycles; with more,
    one every 4. The ALU takes 3 cycles, which has no divisor in common with these: so what goes round never meets what
    comes. Latency: 3 cycles for each round. An operation that is not enabled in front of one that is takes a round too.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    start, start_nearer : ``Out(1)``
        What starts in this cycle, and comes ``ahead`` cycles later, or one sooner, finds the ALU free; registered.
    i, o : ``In(WorkBus(config))``, ``Out(WorkBus(config))``
    """

    def __init__(self, config: Config, level: int, ahead: int) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "start": Out(1),
                "start_nearer": Out(1),
                "i": In(WorkBus(config)),
                "o": Out(WorkBus(config)),
            }
        )
        self._config, self._level, self._ahead = config, level, ahead

    @property
    def stages(self) -> int:
        """Registers from input to output, at most."""
        count = self._config.alus[self._level]
        return alu.STAGES * (4 if count > 2 else count)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.alu = unit = alu.Alu(self._config, shifter=bool(self._config.shifters[self._level]))
        controls = [getattr(self.words, f"alu{number}") for number in range(self._config.alus[self._level])]
        fresh, following = Signal(), Signal(2)
        if len(controls) > 1:
            m.d.comb += following.eq(self._following(m, controls))
            m.d.sync += fresh.eq(following == 0)
        else:
            m.d.comb += [fresh.eq(1), self.start.eq(1), self.start_nearer.eq(1)]
        with m.Switch(following):
            for number, control in enumerate(controls):
                with m.Case(number):
                    m.d.comb += [
                        unit.control.eq(control),
                        unit.constant_a.eq(getattr(self.words, f"alu{number}_a")),
                        unit.constant_b.eq(getattr(self.words, f"alu{number}_b")),
                    ]
        members = (_members(bus) for bus in (unit.i, self.i, unit.o))
        m.d.comb += [to.eq(Mux(fresh, new, old)) for to, new, old in zip(*members, strict=True)]
        m.d.comb += [*assign(self.o, unit.o, RESULT_FIELDS), self.o.valid.eq(unit.o.valid & fresh)]
        return m

    def _following(self, m: Module, controls: list[Any]) -> Signal:
        """The operation of what comes in the next cycle: it counts down from the last one to 0."""
        turn, following, last = Signal(2), Signal(2), Signal(2)
        used = [control.op != AluOp.NONE for control in controls]
        for number, bit in enumerate(used):
            with m.If(bit):
                m.d.comb += last.eq(3 if number > 1 else number)
        spacing = Signal(2)
        m.d.sync += [spacing.eq(last), turn.eq(following)]
        for start, ahead in ((self.start, self._ahead), (self.start_nearer, self._ahead - 1)):
            m.d.sync += start.eq(((following - ahead) & spacing) == 0)
        m.d.comb += following.eq(Mux(turn == 0, spacing, turn - 1))
        return following


def _members(bus: Any) -> list[Value]:
    """What goes round."""
    return [bus.valid, *bus.registers, bus.flags.as_value(), bus.work, bus.empty]
