"""Writes loaded elements into registers and checks them."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import WorkBus, assign, register
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.operand import chosen, ladder, targets
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.words import CheckKind, CheckMode, Destination


class LoadWriteback(wiring.Component):
    """Writes the elements of load slots ``slots`` into their registers, in slot order, and checks one of them.

    With ``induction`` it writes the induction variable before.
    One iteration per cycle, latency 2 cycles. An element outside its bounds poisons the bundle, and nothing comes
    after that one; in the modes WARN and IGNORE its register becomes 0 instead, and the bundle says so.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    i, values : ``In(WorkBus(config))``, ``In(64).array(len(slots))``
    o : ``Out(WorkBus(config))``
    fault_value : ``Out(64)``
        The first element in this nest that failed the check.
    """

    def __init__(self, config: Config, level: int, slots: range, *, induction: bool) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(WorkBus(config)),
                "values": In(64).array(len(slots)),
                "o": Out(WorkBus(config)),
                "fault_value": Out(64),
            }
        )
        self._config, self._level, self._slots, self._induction = config, level, slots, induction

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        written = WorkBus(self._config).create(path=("written",))
        bad, found, fatal, checked = Signal(), Signal(), Signal(), Signal(64)
        failed, dead, replaced = Signal(), Signal(), Signal()
        m.d.comb += [
            failed.eq(written.valid & bad),
            dead.eq(found & fatal),
            replaced.eq(bad & ~fatal),
        ]
        m.d.sync += fatal.eq(self.words.check.mode == CheckMode.FATAL)
        register(m, written, self.i)
        outside, ours = self._outside(m, checked)
        with m.If(self.i.valid):
            m.d.sync += bad.eq(self.i.work & ours & outside)
        m.d.sync += self.o.valid.eq(written.valid & ~dead)
        poisons = bad & fatal
        registers = self._registers(m, written, outside)
        kind = Value.cast(self.words.check.kind)
        with m.If(written.valid):
            m.d.sync += [
                *assign(self.o, written, ("limit", "induction", "empty")),
                *registers,
                self.o.work.eq(written.work & ~poisons),
                self.o.flags.eq(written.flags),
                self.o.flags.live.eq(written.flags.live & ~poisons),
                self.o.flags.replaced[self._level].eq(written.flags.replaced[self._level] | replaced),
                self.o.flags.cause.eq(
                    Mux(poisons, Mux(kind == CheckKind.INDEX, Cause.INDEX, Cause.OFFSET), written.flags.cause)
                ),
                self.o.flags.fault_level.eq(Mux(poisons, self._level, written.flags.fault_level)),
            ]
        with m.If(self.i.valid & ~found & ~failed):
            m.d.sync += self.fault_value.eq(checked)
        with m.If(failed):
            m.d.sync += found.eq(1)
        with m.Elif(~self.words.check.enable):  # between nests
            m.d.sync += found.eq(0)
        return m

    def _registers(self, m: Module, written: WorkBus, outside: Value) -> list[object]:
        """Each register is what it was or the last of what is written to it; 0 if that one is ``outside`` its bounds
        and the check replaces it.

        Which one is known a cycle before.
        """
        values = [Signal(self._config.address_bits, name=f"written_value{slot}") for slot in self._slots]
        for value, loaded in zip(values, self.values, strict=True):
            with m.If(self.i.valid):
                m.d.sync += value.eq(loaded)
        writes = [self._writes(m, slot) for slot in self._slots]
        check, replaces = self.words.check, Signal(len(self._slots))
        m.d.sync += replaces.eq(
            Cat(check.enable & (check.mode != CheckMode.FATAL) & (check.load == slot) for slot in self._slots)
        )
        checked: list[Value] = [outside & bit for bit in replaces]
        if self._induction:
            values, checked = [written.induction, *values], [Const(0), *checked]
            induction = self.words.control.induction
            writes = [targets(m, "induction", induction, self._config.registers), *writes]
        statements = []
        for number, (to, of) in enumerate(zip(self.o.registers, written.registers, strict=True)):
            marks: list[Value] = [~(self.i.work & Cat(bits[number] for bits in writes).any())]
            for place in range(len(values)):
                later = Cat(bits[number] for bits in writes[place + 1 :]).any()
                marks.append(self.i.work & writes[place][number] & ~later & ~checked[place])
            statements.append(to.eq(ladder(m, f"register{number}", [of, *values], marks, self.i.valid)))
        return statements

    def _writes(self, m: Module, slot: int) -> Signal:
        """A bit for each register: whether ``slot`` writes it."""
        control: Any = getattr(self.words, f"load{slot}")
        destination = Mux(control.enable, Value.cast(control.destination), Destination.NONE)
        return targets(m, f"slot{slot}", destination, self._config.registers)

    def _outside(self, m: Module, checked: Signal) -> tuple[Value, Signal]:
        """Whether the checked value is none of 0 … limit - 1, as an unsigned number it may have all 64 bits; and
        whether one is checked. What program words say about that is decoded a cycle before.
        """
        check, limit, ours = self.words.check, self.i.limit, Signal()
        first = self._slots.start
        m.d.comb += checked.eq(chosen(m, "checked", check.load, self.values, first=first))
        m.d.sync += ours.eq(check.enable & (check.load >= first) & (check.load < self._slots.stop))
        below = (checked[len(limit) :] == 0) & (checked[: len(limit)] < limit) & ~limit[-1]
        return ~below, ours
