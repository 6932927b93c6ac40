"""From binary32 to 16-bit elements, rounded to nearest."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, Float32
from daedal.hw.isa.words import LengthField
from daedal.hw.lib.below import below

SMALLEST = EXPONENT_BIAS - 14
"""Exponent of the smallest number that is normal in binary16."""

_LEAST = SMALLEST - 11
"""Exponent of numbers of which the greater ones round to the smallest subnormal; those with a lesser one to zero."""

_BEYOND = EXPONENT_BIAS + 16
"""Exponent of the least numbers that are greater than all of binary16."""

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
        config, is_nan, is_binary16 = self.config, Float32(self.i).is_nan(), self.kind == LengthField.BINARY16.value
        whole, up = self._bfloat16()
        nan: Value = Const(0x7FC0, 15)
        if config.binary16:
            half, half_up, is_none, is_infinite = self._binary16(m)
            if config.bfloat16:
                whole, up = Mux(is_binary16, half, whole), Mux(is_binary16, half_up, up)
                nan = Mux(is_binary16, 0x7E00, nan)
            else:
                whole, up, nan, is_binary16 = half, half_up, Const(0x7E00, 15), Const(1)
        rounded = Signal(16)
        m.d.comb += rounded.eq(whole + up)
        magnitude: Value = rounded[:15]
        if config.binary16:
            is_infinite |= rounded[10:15].all()
            magnitude = Mux(is_binary16 & is_none, 0, Mux(is_binary16 & is_infinite, 0x7C00, magnitude))
        m.d.comb += self.o.eq(Cat(Mux(is_nan, nan, magnitude), self.i[31]))
        return m

    def _bfloat16(self) -> tuple[Value, Value]:
        """The element that is not greater, and whether it is the one behind that."""
        i, away = self.i, self.kind == LengthField.BFLOAT16_AWAY.value
        return i[16:31], i[15] & (away | i[16] | i[:15].any())

    def _is_small(self) -> Value:
        return below(self.i[23:31], SMALLEST)

    def _binary16(self, m: Module) -> tuple[Value, Value, Value, Value]:
        """The same; whether it is zero, and whether it is more than there is."""
        exponent, fraction, places = self.i[23:31], self.i[:23], Signal(_PLACES)
        m.d.comb += places.eq(Mux(self._is_small(), (SMALLEST - exponent[:_PLACES])[:_PLACES], 0))
        # Hidden bit, ten bits of the fraction, the one behind them, and whether there are others.
        shifted: Value = Cat(fraction[:12].any(), fraction[12:], Const(1, 1))
        for step in range(_PLACES):
            by, stage = 1 << step, Signal(13, name=f"shifted{step}")
            m.d.comb += stage.eq(Mux(places[step], Cat(shifted[: by + 1].any(), shifted[by + 1 :]), shifted))
            shifted = stage
        # SMALLEST - 1 is 16 more than a multiple of 32.
        biased = Cat(exponent[:4], ~exponent[4]) & ~self._is_small().replicate(5)
        return (
            Cat(shifted[2:12], biased),
            shifted[1] & (shifted[0] | shifted[2]),
            below(exponent, _LEAST),
            ~below(exponent, _BEYOND),
        )
