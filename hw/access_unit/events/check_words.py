"""The checks of all levels, as the event unit needs to know them."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, ConfigWord
from daedal.hw.isa.words import CheckControl, LevelField, Unit


def is_check(word: ConfigWord) -> Value:
    """Whether this is the CHECK word of a level."""
    return (word.unit == Unit.LEVEL) & (word.field == LevelField.CHECK.value)


class CheckWords(wiring.Component):
    """Holds the CHECK words of all levels; cleared by ``clear``, with which every launch begins.

    No reset does it: that would be a long way, and the longest in a large core. Cores of serial levels are small.

    The levels have words of their own: these may be of a later nest than the bundles at the event unit.

    Members: ``config_bus`` and ``checks``, an array of CheckControl.
    """

    def __init__(self, config: Config) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "checks": Out(CheckControl).array(config.levels)})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        write = self.config_bus.valid & is_check(word)
        for level, check in enumerate(self.checks):
            held: data.View[data.StructLayout] = check
            if not self._config.is_serial:
                held = Signal(CheckControl, name=f"check{level}", reset_less=True)
                m.d.comb += check.eq(held)
            with m.If(self.config_bus.clear):
                m.d.sync += held.eq(0)
            with m.Elif(write & (word.index == level)):
                m.d.sync += held.as_value().eq(word.value)
        return m
