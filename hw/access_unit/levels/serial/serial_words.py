"""The program words of a serial level: packed ones in registers, constants in a memory."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.access_unit.levels.level_words import member_fields
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.program import FIELD_STRUCTS
from daedal.hw.isa.words import LevelField, Unit
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM


def constant_fields(config: Config, level: int) -> list[LevelField]:
    """The constants of a level that are read one at a time, in the order of their places in the memory."""
    fields = member_fields(config, level).values()
    return [field for field in fields if field not in FIELD_STRUCTS and field is not LevelField.STEP]


def place_bits(config: Config, level: int) -> int:
    """Bits of a constant's place."""
    return ceil_log2(len(constant_fields(config, level)))


class SerialWords(wiring.Signature):
    """The packed words of a level and its step, one member each, named as in ``LevelField``."""

    def __init__(self, config: Config, level: int) -> None:
        packed = {
            name: Out(FIELD_STRUCTS[field])
            for name, field in member_fields(config, level).items()
            if field in FIELD_STRUCTS
        }
        super().__init__({**packed, "step": Out(config.address_bits)})


class SerialWordStore(wiring.Component):
    """Keeps the words of level ``level``; packed ones become 0 and the step 1 by ``clear``.

    Words hold from the next cycle on. Words of loads and ALU operations that this level has not are ignored.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    words : ``Out(SerialWords(config, level))``
    place, constant : ``In``, ``Out(address_bits)``
        The constant at this place of ``constant_fields``; combinational.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "words": Out(SerialWords(config, level)),
                "place": In(place_bits(config, level)),
                "constant": Out(config.address_bits),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        mine = self.config_bus.valid & (word.unit == Unit.LEVEL) & (word.index == self._level)
        for name, field in member_fields(self._config, self._level).items():
            if field in FIELD_STRUCTS or field is LevelField.STEP:
                held = Value.cast(getattr(self.words, name))
                with m.If(mine & (word.field == field.value)):
                    m.d.sync += held.eq(word.value)
                with m.If(self.config_bus.clear):
                    m.d.sync += held.eq(field is LevelField.STEP)
        self._constants(m, mine)
        return m

    def _constants(self, m: Module, mine: Value) -> None:
        fields = constant_fields(self._config, self._level)
        m.submodules.constants = constants = memory.Memory(
            shape=self._config.address_bits, depth=1 << len(self.place), init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = constants.write_port(), constants.read_port(domain="comb")
        known, word = Signal(), self.config_bus.word
        with m.Switch(word.field):
            for place, field in enumerate(fields):
                with m.Case(field.value):
                    m.d.comb += [known.eq(1), write.addr.eq(place)]
        m.d.comb += [
            write.en.eq(mine & known),
            write.data.eq(word.value),
            read.addr.eq(self.place),
            self.constant.eq(read.data),
        ]
