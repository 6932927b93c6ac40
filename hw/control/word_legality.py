"""Judges the values of program words: what the machine cannot do is refused when it is loaded."""

from collections.abc import Iterable
from enum import Enum

from amaranth import Module, Signal, Value
from amaranth.hdl import Cat, Const, Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import MAX_REGISTERS, Config
from daedal.hw.interfaces import ConfigWord
from daedal.hw.isa.words import (
    ALU_FIELDS,
    LOAD_FIELDS,
    SHIFTS,
    VALUE_BITS,
    AluControl,
    AluOp,
    CheckControl,
    CheckKind,
    CheckMode,
    CountControl,
    EventControl,
    FetchQueue,
    LevelControl,
    LevelField,
    LoadControl,
    LoadIndex,
    StepControl,
    StepField,
    Unit,
)

STEP_OPERANDS = (
    "scalar", "token", "store_base", "store_index", "store_pitch", "store_size", "fetch_base", "fetch_index",
    "fetch_pitch", "fetch_size",
)  # fmt: skip


class WordLegality(wiring.Component):
    """Whether the value of a word (its argument added) names only what the machine has.

    Of a word whose unit, index and field exist: registers, interleaving, ALU operations and shifts, indices of
    sequential loads, load slots, kinds and modes of checks, steps, queues, and a loop's step, which is not 0. Events
    and checks that are not enabled may say anything.

    Members
    -------
    early : ``In(ConfigWord)``
        The word a cycle before its value is there; that is ignored.
    value : ``In(VALUE_BITS)``
    legal : ``Out(1)``
        Combinational from ``value``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__({"early": In(ConfigWord), "value": In(VALUE_BITS), "legal": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word, level = self.early, self.early.unit == Unit.LEVEL
        self._held: list[tuple[Signal, Value]] = []
        rules = (
            (level & (word.field == LevelField.CONTROL), self._control()),
            (level & (word.field == LevelField.STEP), self.value[: self._config.address_bits].any()),
            (level & (word.field == LevelField.CHECK), self._check()),
            (level & (word.field == LevelField.COUNT), self._count()),
            (level & _slots(word.field, LevelField.LOAD0, LOAD_FIELDS), self._load()),
            (level & _slots(word.field, LevelField.ALU0, ALU_FIELDS), self._alu()),
            (word.unit == Unit.EVENT, self._event()),
            ((word.unit == Unit.STEP) & (word.field == StepField.CONTROL), self._step()),
        )
        m.d.comb += self.legal.eq(~Cat(self._hold(concerned) & ~allowed for concerned, allowed in rules).any())
        m.d.sync += [kept.eq(value) for kept, value in self._held]
        return m

    def _hold(self, value: Value) -> Value:
        """A bit that is known from the word alone, in the cycle of its value."""
        kept = Signal()
        self._held.append((kept, value))
        return kept

    def _as(self, struct: type[data.Struct]) -> data.View:
        """The value as this structure."""
        return struct(self.value[: data.Layout.cast(struct).size])

    def _registers(self, *sources: Value) -> Value:
        """Whether all of these are constants or registers of this machine."""
        if self._config.registers == MAX_REGISTERS:
            return Const(1)
        return Cat(Value.cast(source) <= self._config.registers for source in sources).all()

    def _in_level(self, levels: Iterable[int]) -> Value:
        """Whether the word's index is one of these."""
        return Cat(self.early.index == level for level in levels).any()

    def _control(self) -> Value:
        control = self._as(LevelControl)
        able = self._hold(self._in_level(level for level, contexts in enumerate(self._config.contexts) if contexts))
        able &= ~(control.deal & (control.interleave if self._config.dealt_bundles else 1))
        return (~(control.interleave | control.deal) | able) & self._registers(
            control.induction, control.lower, control.upper
        )

    def _check(self) -> Value:
        check, config = self._as(CheckControl), self._config
        loads = [sum(slots) for slots in zip(config.sequential_loads, config.random_loads, strict=True)]
        there = Cat(
            self._hold(self.early.index == level) & (Value.cast(check.load) < count)
            for level, count in enumerate(loads)
        )
        known = _known(check.kind, CheckKind) & _known(check.mode, CheckMode)
        return ~check.enable | (there.any() & known & self._registers(check.limit))

    def _count(self) -> Value:
        count = self._as(CountControl)
        return self._registers(count.predicate, count.destination)

    def _load(self) -> Value:
        load = self._as(LoadControl)
        walks = Value.cast(load.index) == LoadIndex.INDUCTION
        sequential = Cat(
            (self.early.index == level) & (self.early.field == LevelField.LOAD0.value + LOAD_FIELDS * slot)
            for level, slots in enumerate(self._config.sequential_loads)
            for slot in range(slots)
        ).any()
        return (walks | ~self._hold(sequential)) & self._registers(load.index, load.base, load.destination)

    def _alu(self) -> Value:
        alu = self._as(AluControl)
        shifts = Value.cast(alu.op).matches(*SHIFTS)
        able = self._hold(self._in_level(level for level, shifter in enumerate(self._config.shifters) if shifter))
        return _known(alu.op, AluOp) & (~shifts | able) & self._registers(alu.a, alu.b, alu.destination)

    def _event(self) -> Value:
        event = self._as(EventControl)
        inside = event.first + event.count <= self._config.steps
        return (event.count == 0) | (inside & self._registers(event.predicate))

    def _step(self) -> Value:
        step = self._as(StepControl)
        return _known(step.queue, FetchQueue) & self._registers(*(step[name] for name in STEP_OPERANDS))


def _known(value: Value, kind: type[Enum]) -> Value:
    """Whether this is a value of the enumeration."""
    return Value.cast(value).matches(*kind)


def _slots(field: Value, first: LevelField, distance: int) -> Value:
    """Whether this is the control word of one of four slots, which are ``distance`` fields apart."""
    return Cat(field == first.value + distance * slot for slot in range(4)).any()
