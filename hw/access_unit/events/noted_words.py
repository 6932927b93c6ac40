"""What the event unit needs to know of levels: the checks of all, and whether one's activations are dealt."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, ConfigWord
from daedal.hw.isa.words import CheckControl, LevelControl, LevelField, Unit


def is_noted(word: ConfigWord, config: Config) -> Value:
    """Whether this is the CHECK word of a level, or the CONTROL word of the one that can deal."""
    fields = word.field == LevelField.CHECK.value
    if config.dealt_bundles:
        fields |= (word.field == LevelField.CONTROL.value) & (word.index == config.context_level)
    return (word.unit == Unit.LEVEL) & fields


class NotedWords(wiring.Component):
    """Holds the CHECK words of all levels, and whether bundles are dealt; cleared by ``clear``, with which every launch
    begins.

    No reset does it: that would be a long way, and the longest in a large core. Cores of serial levels are small.

    The levels have words of their own: these may be of a later nest than the bundles at the event unit.

    Members: ``config_bus``; ``checks``, an array of CheckControl; ``deal``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {"config_bus": In(ConfigBus()), "checks": Out(CheckControl).array(config.levels), "deal": Out(1)}
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        level_word = self.config_bus.valid & (word.unit == Unit.LEVEL)
        write = level_word & (word.field == LevelField.CHECK.value)
        for level, check in enumerate(self.checks):
            held: data.View[data.StructLayout] = check
            if not self._config.is_serial:
                held = Signal(CheckControl, name=f"check{level}", reset_less=True)
                m.d.comb += check.eq(held)
            with m.If(self.config_bus.clear):
                m.d.sync += held.eq(0)
            with m.Elif(write & (word.index == level)):
                m.d.sync += held.as_value().eq(word.value)
        if self._config.dealt_bundles:
            control = LevelControl(word.value[: data.Layout.cast(LevelControl).size])
            with m.If(self.config_bus.clear):
                m.d.sync += self.deal.eq(0)
            with m.Elif(
                level_word & (word.field == LevelField.CONTROL.value) & (word.index == self._config.context_level)
            ):
                m.d.sync += self.deal.eq(control.enable & control.deal)
        return m
