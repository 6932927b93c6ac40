"""From 16-bit elements to binary32, exactly."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, EXPONENT_SPECIAL
from daedal.hw.isa.words import LengthField

_BIAS = EXPONENT_BIAS - 15
"""What is added to an exponent of binary16."""


class FloatWiden(wiring.Component):
    """One element, combinational; a NaN keeps its sign and payload.

    Members
    -------
    i : ``In(16)``; kind : ``In(2)``
        The element and its type, a ``LengthField`` but ELEMENTS.
    o : ``Out(32)``
        The binary32.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(16), "kind": In(2), "o": Out(32)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        from_bfloat16 = Cat(Const(0, 16), self.i)
        if not self.config.binary16:
            m.d.comb += self.o.eq(from_bfloat16)
        elif not self.config.bfloat16:
            m.d.comb += self.o.eq(self._from_binary16(m))
        else:
            is_binary16 = self.kind == LengthField.BINARY16.value
            m.d.comb += self.o.eq(Mux(is_binary16, self._from_binary16(m), from_bfloat16))
        return m

    def _from_binary16(self, m: Module) -> Value:
        fraction, exponent, sign = self.i[:10], self.i[10:15], self.i[15]
        # A subnormal's leading one goes to the top, in steps of 8, 4, 2, 1 places.
        zeros, shifted = Signal(4), fraction
        for step in (3, 2, 1, 0):
            places, stage = 1 << step, Signal(10, name=f"shifted{step}")
            m.d.comb += [
                zeros[step].eq(~shifted[10 - places :].any()),
                stage.eq(Mux(zeros[step], shifted << places, shifted)),
            ]
            shifted = stage
        is_small = ~exponent.any()
        wide = Signal(8)
        m.d.comb += wide.eq(
            Mux(
                is_small,
                Mux(shifted[9], _BIAS - zeros, 0),
                Mux(exponent.all(), EXPONENT_SPECIAL, exponent + _BIAS),
            )
        )
        return Cat(Const(0, 13), Mux(is_small, shifted << 1, fraction)[:10], wide, sign)
