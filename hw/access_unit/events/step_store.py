"""The steps of a program."""

from amaranth.hdl import Elaboratable, Module, ShapeLike, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.events.event_select import STEP_BITS
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.words import (
    INDEX_BITS,
    PITCH_BITS,
    SIZE_BITS,
    StepControl,
    StepField,
    Unit,
)
from daedal.hw.lib.ram_style import BLOCK_RAM

TOKEN_BITS = 6


def fields(config: Config) -> dict[StepField, ShapeLike]:
    """The words of a step and the shape of what is kept of each."""
    return {
        StepField.CONTROL: StepControl,
        StepField.TOKEN: TOKEN_BITS,
        StepField.SCALAR: config.address_bits,
        StepField.STORE_BASE: config.address_bits,
        StepField.STORE_INDEX: INDEX_BITS,
        StepField.STORE_PITCH: PITCH_BITS,
        StepField.STORE_SIZE: SIZE_BITS,
        StepField.FETCH_BASE: config.address_bits,
        StepField.FETCH_INDEX: INDEX_BITS,
        StepField.FETCH_PITCH: PITCH_BITS,
        StepField.FETCH_SIZE: SIZE_BITS,
    }


class StepWords(wiring.Signature):
    """The words of one step, one member each, named as in ``StepField``."""

    def __init__(self, config: Config) -> None:
        super().__init__({field.name.lower(): Out(shape) for field, shape in fields(config).items()})


class StepStore(wiring.Component):
    """Memories with the words of all steps.

    Members: ``config_bus``; ``number`` of a step; ``words``: its words, a cycle later. No step is done in the cycle in
    which one of its words is written.
    """

    def __init__(self, config: Config) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "number": In(STEP_BITS), "words": Out(StepWords(config))})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        word = self.config_bus.word
        for field, shape in fields(self._config).items():
            name = field.name.lower()
            m.submodules[name] = steps = memory.Memory(shape=shape, depth=self._config.steps, init=[], attrs=BLOCK_RAM)
            write, read = steps.write_port(), steps.read_port(domain="sync")
            mine = (word.unit == Unit.STEP) & (word.field == field.value)
            m.d.comb += [
                write.en.eq(self.config_bus.valid & mine),
                write.addr.eq(word.index),
                Value.cast(write.data).eq(word.value),
                read.addr.eq(self.number),
                Value.cast(getattr(self.words, name)).eq(Value.cast(read.data)),
            ]
        return m
