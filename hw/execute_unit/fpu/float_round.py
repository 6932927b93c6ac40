"""The last stage of a lane: rounding to nearest even, overflow, and results that are not computed."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import (
    EXPONENT_SPECIAL,
    FRACTION_BITS,
    INFINITY,
    SIGNIFICAND_BITS,
    register,
)
from daedal.hw.execute_unit.fpu.float_normalize import UnroundedSignature
from daedal.hw.lib.below import below
from daedal.hw.lib.replicate import replicate


class FloatRound(wiring.Component):
    """Rounds to binary32, ties to even; one per cycle, one cycle.

    Exponent and fraction lie in one word, so that the hidden bit and a carry out of the fraction both add
    one to the exponent.

    Members
    -------
    i : ``In(UnroundedSignature)``
        The number.
    special : ``In(32)``
        What to answer instead, if ``is_special``.
    is_special : ``In(1)``
        Ignore ``i``.
    o : ``Out(32)``
        The result, binary32.
    """

    i: In(UnroundedSignature)
    special: In(32)
    is_special: In(1)
    o: Out(32)

    latency = 1

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bits, again, inverted = self.i.bits, self.i.again, self.i.inverted
        kept, sticky, up, rounded = Signal(SIGNIFICAND_BITS + 1), Signal(), Signal(), Signal(32)
        guard, odd = kept[0], kept[1]
        m.d.comb += [
            kept.eq(Mux(again, bits[:-1], bits[1:]) ^ replicate(inverted, len(kept))),
            sticky.eq(self.i.sticky | (bits[0] & ~again)),
            # Ones without end below an inverted number count as one more in the place above.
            up.eq(Mux(sticky, guard, Mux(inverted, guard | odd, guard & odd))),
            rounded.eq((self.i.exponent << FRACTION_BITS) + kept[1:] + up),
        ]
        # A number whose exponent is not 0 has its top bit set, which adds 1. From 253 it takes a carry too, which makes
        # the sum odd. So only one bit of it is waited for.
        exponent = self.i.exponent
        at_limit = (exponent == EXPONENT_SPECIAL - 2) & rounded[FRACTION_BITS]
        overflows = ~below(exponent, EXPONENT_SPECIAL - 1) | at_limit
        magnitude = Mux(overflows, INFINITY, rounded[:31])
        m.d.comb += self.o.eq(
            register(m, Mux(self.is_special, self.special, Cat(magnitude[:31], self.i.sign)), "result")
        )
        return m
