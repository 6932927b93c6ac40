"""From binary32 to the nearest number that a 16-bit element can be, as binary32."""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, EXPONENT_SPECIAL, Float32
from daedal.hw.isa.words import LengthField
from daedal.hw.lib.below import below

BELOW16, BELOW_BFLOAT = 13, 16
"""Bits of a fraction that a normal number of binary16 has not, and one of bfloat16."""

SMALLEST = EXPONENT_BIAS - 14
"""Exponent of the smallest number that is normal in binary16."""

LEAST = SMALLEST - 10
"""Exponent of its smallest subnormal; half of that, and what is less, becomes zero."""

_TOO_LARGE = EXPONENT_BIAS + 16
"""Exponent of the smallest power of two that is beyond binary16."""


class FloatShorten(wiring.Component):
    """One number, combinational; a NaN becomes the quiet one without payload, of its sign.

    The bits behind the last one that is kept are a mask, which grows as a number of binary16 gets smaller. They are set
    for the addition of what is rounded up, so that it carries through them, and are 0 in the result.

    Members
    -------
    i : ``In(32)``; kind : ``In(2)``
        The number, and the type of the element, a ``LengthField``; with ELEMENTS it stays as it is.
    o : ``Out(32)``
        The number rounded to nearest.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(32), "kind": In(2), "o": Out(32)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        number = Float32(self.i)
        upper, exponent = self.i[BELOW16:31], number.exponent
        is_short, is_nan, up, mask = Signal(), Signal(), Signal(), Signal(10)
        is_none, is_least, is_large = (Signal(name=name) for name in ("is_none", "is_least", "is_large"))
        total = Signal(18)
        m.d.comb += [
            is_short.eq(self.kind.any()),
            is_nan.eq(is_short & number.is_nan()),
            mask.eq(self._mask(m)),
            up.eq(self._up(m, mask)),
            total.eq((upper | mask) + up),
        ]
        if self.config.binary16:
            is_half = self.kind == LengthField.BINARY16.value
            is_low = is_half & below(exponent, LEAST)
            m.d.comb += [
                is_least.eq(is_low & (exponent == LEAST - 1) & number.fraction.any()),
                is_none.eq(is_low),
                is_large.eq(is_half & ~below(total[10:], _TOO_LARGE)),
            ]
        zero, special = is_none | is_nan | is_large, is_nan | is_large
        fraction = total[:10] & ~mask & ~zero.replicate(10)
        ends = (total[10:] & ~is_none.replicate(8)) | (special.replicate(8) & EXPONENT_SPECIAL)
        m.d.comb += self.o.eq(
            Cat(
                self.i[:BELOW16] & ~is_short.replicate(BELOW16),
                fraction[:9],
                fraction[9] | is_nan,
                ends | (is_least.replicate(8) & LEAST),
                self.i[31],
            )
        )
        return m

    def _mask(self, m: Module) -> Value:
        """Which of the upper ten bits of the fraction are not kept."""
        exponent = self.i[23:31]
        is_bfloat, is_half = self.kind[1], self.kind == LengthField.BINARY16.value
        cut = [is_bfloat & (n < BELOW_BFLOAT - BELOW16) for n in range(10)]
        if self.config.binary16:
            small = Signal()
            # Of numbers that are still less than LEAST nothing is kept, whatever the mask.
            m.d.comb += small.eq(is_half & (exponent[4:] == LEAST >> 4))
            cut = [each | (small & below(exponent[:4], min(16, 17 - n))) for n, each in enumerate(cut)]
            cut[0] |= is_half & (exponent == SMALLEST - 1)
        return Cat(*cut)

    def _up(self, m: Module, mask: Signal) -> Value:
        """Whether it is rounded away from zero: by the first bit that is cut, those behind it, the last that is not."""
        bits, away = self.i, self.kind == LengthField.BFLOAT16_AWAY.value
        # Of bit n: whether it is cut. The lowest are, with any type, and the hidden bit is kept.
        cut = [Const(1), *mask, Const(0)]
        last = [cut[n] & ~cut[n + 1] for n in range(11)]
        first_cut, last_kept, behind = Signal(), Signal(), Signal()
        low = BELOW16 - 1
        m.d.comb += [
            first_cut.eq(Cat(bits[low + n] & last[n] for n in range(11)).any()),
            last_kept.eq(Cat(bits[low + 1 + n] & last[n] for n in range(11)).any()),
            behind.eq(bits[:low].any() | Cat(bits[low + n] & cut[n + 1] for n in range(10)).any()),
        ]
        up: Value = self.kind.any() & first_cut & (behind | last_kept | away)
        return up
