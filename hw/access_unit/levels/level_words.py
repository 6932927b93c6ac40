"""The program words of one level, held in registers."""

from enum import Enum

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.program import FIELD_STRUCTS
from daedal.hw.isa.words import ALU_FIELDS, LOAD_FIELDS, LevelField, Unit


def loads_of(config: Config, level: int) -> int:
    """Load slots of a level."""
    return config.sequential_loads[level] + config.random_loads[level]


def member_fields(config: Config, level: int) -> dict[str, LevelField]:
    """The words a level has, by the name of the member that holds each."""
    absent_load = LevelField.LOAD0.value + LOAD_FIELDS * loads_of(config, level)
    absent_alu = LevelField.ALU0.value + ALU_FIELDS * config.alus[level]
    return {
        field.name.lower(): field
        for field in LevelField
        if not absent_load <= field.value < LevelField.ALU0.value and field.value < absent_alu
    }


def _shape(field: Enum, config: Config) -> object:
    return FIELD_STRUCTS.get(field, config.address_bits)


class LevelWords(wiring.Signature):
    """The words of a level, one member each, named as in ``LevelField``; ``two_steps`` is twice the step."""

    def __init__(self, config: Config, level: int) -> None:
        members = {name: Out(_shape(field, config)) for name, field in member_fields(config, level).items()}
        super().__init__({**members, "two_steps": Out(config.address_bits + 1)})


class LevelWordStore(wiring.Component):
    """Keeps the words of level ``level``; packed ones become 0 and the step 1 by ``clear``.

    Words hold from the next cycle on.
    Words of loads and ALU operations that this level has not are ignored.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    words : ``Out(LevelWords(config, level))``
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "words": Out(LevelWords(config, level))})
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        mine = self.config_bus.valid & (word.unit == Unit.LEVEL) & (word.index == self._level)
        for name, field in member_fields(self._config, self._level).items():
            held = Value.cast(getattr(self.words, name))
            with m.If(mine & (word.field == field.value)):
                m.d.sync += held.eq(word.value)
            if field in FIELD_STRUCTS or field is LevelField.STEP:
                with m.If(self.config_bus.clear):
                    m.d.sync += held.eq(field is LevelField.STEP)
        m.d.sync += self.words.two_steps.eq(self.words.step << 1)
        return m
