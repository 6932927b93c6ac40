"""Which registers differ between bundles of one activation of the parent level."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import names
from daedal.hw.access_unit.levels.level_words import member_fields
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.program import FIELD_STRUCTS
from daedal.hw.isa.words import AluControl, CountControl, LevelControl, LoadControl, Unit


def has_held_operands(level: int) -> bool:
    """Whether there is a level before the parent of ``level``, from which operands can come."""
    return level > 1


class ParentWrites(wiring.Component):
    """Watches the words of the level before ``level`` for the registers to which they write.

    What has a value from further out is the same in all bundles of one of its activations, from the one that carries
    its begin on. That holds if the parent is enabled, and runs one activation after the other.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    changes : ``Out(registers)``
        A bit for each register: it may differ from bundle to bundle. Holds from two cycles after the last word on.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "changes": Out(config.registers)})
        self._config, self._parent = config, level - 1

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word, written, steady = self.config_bus.word, Signal(self._config.registers), Signal()
        mine = self.config_bus.valid & (word.unit == Unit.LEVEL) & (word.index == self._parent)
        destination: Value = Value.cast(0)
        for field in member_fields(self._config, self._parent).values():
            struct: Any = FIELD_STRUCTS.get(field)
            if struct in (LevelControl, LoadControl, AluControl, CountControl):
                held = struct(word.value[: Value.cast(Signal(struct)).shape().width])
                named = held.induction if struct is LevelControl else held.destination
                destination = destination | Mux(word.field == field.value, Value.cast(named), 0)
                if struct is LevelControl:
                    with m.If(mine & (word.field == field.value)):
                        m.d.sync += steady.eq(held.enable & ~held.interleave)
        with m.If(self.config_bus.clear):
            m.d.sync += [written.eq(0), steady.eq(0)]
        with m.Elif(mine):
            m.d.sync += written.eq(written | Cat(names(destination, n) for n in range(self._config.registers)))
        m.d.sync += self.changes.eq(Mux(steady, written, ~0))
        return m
