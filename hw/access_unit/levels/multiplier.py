"""Products of an index and a pitch, pipelined for the DSP blocks of small FPGAs."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.isa.words import INDEX_BITS, PITCH_BITS

HALF = 16
"""Bits of the partial factors; an 18 by 18 multiplier takes each product."""

SUMMANDS = 3


class Multiplier(wiring.Component):
    """``a * b`` modulo ``1 << bits``, both unsigned, as three summands one cycle later.

    The summands are given separately since they are added together with something else.
    """

    def __init__(self, bits: int) -> None:
        super().__init__({"a": In(INDEX_BITS), "b": In(PITCH_BITS), "summands": Out(bits).array(SUMMANDS)})
        self._bits = bits

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        low_a, high_a = self.a[:HALF], self.a[HALF:]
        low_b, high_b = self.b[:HALF], self.b[HALF:]
        low, cross0, cross1 = Signal(2 * HALF), Signal(2 * HALF), Signal(2 * HALF)
        high = Signal(self._bits - 2 * HALF)
        m.d.sync += [
            low.eq(low_a * low_b),
            cross0.eq(high_a * low_b),
            cross1.eq(low_a * high_b),
            high.eq(high_a[: len(high)] * high_b),
        ]
        m.d.comb += [
            self.summands[0].eq(low | (high << 2 * HALF)),
            self.summands[1].eq(cross0 << HALF),
            self.summands[2].eq(cross1 << HALF),
        ]
        return m
