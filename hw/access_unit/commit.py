"""Writes loaded elements into registers and checks them."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.bundles import WorkBus, assign, names, register
from daedal.hw.access_unit.level_words import LevelWords
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program_words import CheckKind, CheckMode


class Commit(wiring.Component):
    """Writes the elements of load slots ``slots`` into their registers, in slot order, and checks one of them.

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

    def __init__(self, config: Config, level: int, slots: range) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(WorkBus(config)),
                "values": In(64).array(len(slots)),
                "o": Out(WorkBus(config)),
                "fault_value": Out(64),
            }
        )
        self._config, self._level, self._slots = config, level, slots

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        written = WorkBus(self._config).create(path=("written",))
        bad, found, fatal, checked = Signal(), Signal(), Signal(), Signal(64)
        failed, dead = Signal(), Signal()
        m.d.comb += [
            fatal.eq(self.words.check.mode == CheckMode.FATAL),
            failed.eq(written.valid & bad),
            dead.eq(found & fatal),
        ]
        register(m, written, self.i)
        with m.If(self.i.valid):
            m.d.sync += [*self._registers(written), bad.eq(self._outside(m, checked))]
        m.d.sync += self.o.valid.eq(written.valid & ~dead)
        with m.If(written.valid):
            m.d.sync += assign(self.o, written)
        with m.If(self.i.valid & ~found & ~failed):
            m.d.sync += self.fault_value.eq(checked)
        with m.If(failed):
            m.d.sync += found.eq(1)
        with m.Elif(~self.words.check.enable):  # between nests
            m.d.sync += found.eq(0)
        with m.If(failed & ~fatal):
            m.d.sync += self.o.flags.replaced[self._level].eq(1)
        for register_, checked_one in zip(self.o.registers, self._checked_registers(m), strict=True):
            with m.If(failed & ~fatal & checked_one):
                m.d.sync += register_.eq(0)
        with m.If(failed & fatal & ~dead):
            kind = Value.cast(self.words.check.kind)
            m.d.sync += [
                self.o.work.eq(0),
                self.o.flags.live.eq(0),
                self.o.flags.cause.eq(Mux(kind == CheckKind.INDEX, Cause.INDEX, Cause.OFFSET)),
                self.o.flags.fault_level.eq(self._level),
            ]
        return m

    def _registers(self, written: WorkBus) -> list[object]:
        statements = []
        for number, (to, of) in enumerate(zip(written.registers, self.i.registers, strict=True)):
            value: Value = of
            for slot, loaded in zip(self._slots, self.values, strict=True):
                control = getattr(self.words, f"load{slot}")
                mine = control.enable & (Value.cast(control.destination) == number + 1)
                value = Mux(self.i.work & mine, loaded[:ADDRESS_BITS], value)
            statements.append(to.eq(value))
        return statements

    def _checked_registers(self, m: Module) -> Signal:
        """Which register holds the checked element: that of its slot, unless a later slot writes it too."""
        mask = Signal(len(self.o.registers))
        words: Any = self.words
        controls = [(slot, getattr(words, f"load{slot}")) for slot in self._slots]
        for number in range(len(mask)):
            writes = [control.enable & names(control.destination, number) for _, control in controls]
            last = [
                one & ~Cat(writes[place + 1 :]).any() & (words.check.load == slot)
                for place, (one, (slot, _)) in enumerate(zip(writes, controls, strict=True))
            ]
            m.d.sync += mask[number].eq(Cat(last).any())
        return mask

    def _outside(self, m: Module, checked: Signal) -> Value:
        """Whether the checked value is none of 0 … limit - 1; as an unsigned number it may have all 64 bits."""
        check, limit = self.words.check, self.i.limit
        first = self._slots.start
        for slot, value in zip(self._slots, self.values, strict=True):
            with m.If(check.load == slot):
                m.d.comb += checked.eq(value)
        ours = (check.load >= first) & (check.load < self._slots.stop)
        below = (checked[ADDRESS_BITS:] == 0) & (checked[:ADDRESS_BITS] < limit) & ~limit[-1]
        return self.i.work & check.enable & ours & ~below
