"""From unsigned integers of up to 8 bits to binary32, exactly."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, FRACTION_BITS

_BITS = 8


class FloatUnsigned(wiring.Component):
    """One element, combinational.

    Members
    -------
    i : ``In(8)``
        The integer.
    o : ``Out(32)``
        The binary32.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(_BITS), "o": Out(32)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # The leading one goes to the top, in steps of 4, 2, 1 places.
        zeros, exponent = Signal(3), Signal(8)
        shifted: Value = self.i
        for step in (2, 1, 0):
            places, stage = 1 << step, Signal(_BITS, name=f"shifted{step}")
            m.d.comb += [
                zeros[step].eq(~shifted[_BITS - places :].any()),
                stage.eq(Mux(zeros[step], shifted << places, shifted)),
            ]
            shifted = stage
        m.d.comb += exponent.eq(Mux(self.i.any(), EXPONENT_BIAS + _BITS - 1 - zeros, 0))
        m.d.comb += self.o.eq(Cat(Const(0, FRACTION_BITS + 1 - _BITS), shifted[: _BITS - 1], exponent, Const(0, 1)))
        return m
