"""From binary32 to 16-bit elements, rounded to nearest."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, Float32
from daedal.hw.isa.words import LengthField

_SMALLEST = EXPONENT_BIAS - 14
"""Exponent of the smallest number that is normal in binary16."""

_LEAST = _SMALLEST - 11
"""Exponent of numbers of which the greater ones round to the smallest subnormal; those with a lesser one to zero."""

_LARGEST = EXPONENT_BIAS + 15
"""Exponent of the largest numbers of binary16."""

_PLACES = 4
"""Bits of the places by which the significand of a subnormal is shifted."""


class FloatNarrow(wiring.Component):
    """One element, combinational; a NaN becomes the quiet one without payload, of its sign.

    Members
    -------
    i : ``In(32)``
        The binary32.
    kind : ``In(2)``; o : ``Out(16)``
        The type of the element, a ``LengthField`` but ELEMENTS, and the element.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(32), "kind": In(2), "o": Out(16)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        is_nan = Float32(self.i).is_nan()
        magnitude, nan = Signal(15), Const(0x7FC0, 15)
        if not self.config.binary16:
            m.d.comb += magnitude.eq(self._bfloat16())
        elif not self.config.bfloat16:
            m.d.comb += magnitude.eq(self._binary16(m))
            nan = Const(0x7E00, 15)
        else:
            is_binary16 = self.kind == LengthField.BINARY16.value
            m.d.comb += magnitude.eq(Mux(is_binary16, self._binary16(m), self._bfloat16()))
            nan = Mux(is_binary16, Const(0x7E00, 15), nan)
        m.d.comb += self.o.eq(Cat(Mux(is_nan, nan, magnitude), self.i[31]))
        return m

    def _bfloat16(self) -> Value:
        i, away = self.i, self.kind == LengthField.BFLOAT16_AWAY.value
        up = i[15] & (away | i[16] | i[:15].any())
        rounded: Value = (i[16:31] + up)[:15]
        return rounded

    def _binary16(self, m: Module) -> Value:
        exponent, fraction = self.i[23:31], self.i[:23]
        is_small, is_none, places = Signal(), Signal(), Signal(_PLACES)
        m.d.comb += [
            is_small.eq(exponent < _SMALLEST),
            is_none.eq(exponent < _LEAST),
            places.eq(Mux(is_small, _SMALLEST - exponent, 0)),
        ]
        # Hidden bit, ten bits of the fraction, the one behind them, and whether there are others.
        shifted: Value = Cat(fraction[:12].any(), fraction[12:], Const(1, 1))
        for step in range(_PLACES):
            by, stage = 1 << step, Signal(13, name=f"shifted{step}")
            m.d.comb += stage.eq(Mux(places[step], Cat(shifted[: by + 1].any(), shifted[by + 1 :]), shifted))
            shifted = stage
        rounded, up = Signal(16), shifted[1] & (shifted[0] | shifted[2])
        whole = Cat(shifted[2:12], Mux(is_small, 0, exponent - (_SMALLEST - 1))[:5])
        m.d.comb += rounded.eq(Mux(is_none, 0, whole + up))
        is_infinite = (exponent > _LARGEST) | (~is_small & rounded[10:15].all())
        result: Value = Mux(is_infinite, 0x7C00, rounded[:15])
        return result
