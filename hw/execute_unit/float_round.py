"""The last stage of a lane: rounding to nearest even, overflow, and results that are not computed."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.float_format import EXPONENT_SPECIAL, FRACTION_BITS, INFINITY, register
from daedal.hw.execute_unit.float_normalize import UnroundedSignature


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
        up, rounded = Signal(), Signal(32)
        m.d.comb += [
            up.eq(self.i.guard & (self.i.sticky | self.i.significand[0])),
            rounded.eq((self.i.exponent << FRACTION_BITS) + self.i.significand + up),
        ]
        magnitude = Mux(rounded[FRACTION_BITS:] >= EXPONENT_SPECIAL, INFINITY, rounded[:31])
        m.d.comb += self.o.eq(
            register(m, Mux(self.is_special, self.special, Cat(magnitude[:31], self.i.sign)), "result")
        )
        return m
