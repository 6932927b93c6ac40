"""The elements of sequential loads, out of the words that they are in."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import assign
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.iteration_bus import TURN_FIELDS, IterationBus
from daedal.hw.access_unit.loads.element_shift import WORD_BYTES, ElementShift
from daedal.hw.config.core import Config

STAGES = 1
"""Registers from input to output."""


class ElementExtract(wiring.Component):
    """Cuts the elements of each iteration out; an iteration per cycle, latency 1 cycle.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    i, o : ``In(TurnBus(config, level))``, ``Out`` of the same
    found, offsets : ``In(64).array(slots)``, ``In(3).array(slots)``
        With ``i``: the word that each element is in, and its byte there.
    values : ``Out(64).array(slots)``
        With ``o``: the elements, extended to 64 bits.
    """

    def __init__(self, config: Config, level: int) -> None:
        slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(IterationBus(config, level)),
                "found": In(8 * WORD_BYTES).array(slots),
                "offsets": In(exact_log2(WORD_BYTES)).array(slots),
                "o": Out(IterationBus(config, level)),
                "values": Out(8 * WORD_BYTES).array(slots),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.sync += self.o.valid.eq(self.i.valid)
        with m.If(self.i.valid):
            m.d.sync += assign(self.o, self.i, TURN_FIELDS)
        for slot, value in enumerate(self.values):
            control = getattr(self.words, f"load{slot}")
            m.submodules[f"element{slot}"] = element = ElementShift()
            m.d.comb += [element.word.eq(self.found[slot]), element.offset.eq(self.offsets[slot])]
            # Held program words, a cycle late: so they need not reach all this from where they are kept.
            m.d.sync += [element.size.eq(control.size), element.is_signed.eq(control.is_signed)]
            m.d.sync += value.eq(element.value)
        return m
