"""Normalisation of a sum: count its leading zeros, then shift them out."""

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_align import FRAME_BITS, WINDOW_BITS, SumSignature
from daedal.hw.execute_unit.fpu.float_format import SIGNIFICAND_BITS, register
from daedal.hw.execute_unit.fpu.float_shift import DIGIT, zeros_above, zeros_of_four
from daedal.hw.lib.fanout import DIFFERENT, fanout
from daedal.hw.lib.replicate import replicate

ROUNDED_BITS = SIGNIFICAND_BITS + 1

UnroundedSignature = wiring.Signature(
    {
        "sign": Out(1),
        "exponent": Out(9),
        "bits": Out(ROUNDED_BITS + 1),
        "again": Out(1),
        "sticky": Out(1),
        "inverted": Out(1),
    }
)
"""A number before its rounding: the exponent field is ``exponent`` plus the significand's top bit.

Significand and guard bit are the upper 25 of the ``bits``, or the lower 25 if they are to be shifted once ``again``.
``sticky`` says that something below ``bits`` is set. ``inverted``: all bits are the opposite of what they should be,
also those below, which are all ones without end if nothing there is set.
"""


class FloatNormalize(wiring.Component):
    """Brings a sum's leading one to the top, or as far as the smallest exponent allows.

    One per cycle, ``latency`` cycles. A result that is subnormal is shifted less far, by the same shifter.
    An exact zero becomes +0 if it comes from a subtraction of equals.

    Members
    -------
    i : ``In(SumSignature)``
        The sum.
    o : ``Out(UnroundedSignature)``
        The same number, normalised.
    """

    i: In(SumSignature)
    o: Out(UnroundedSignature)

    latency = 2

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # The product was larger: what is to be shifted is negative, and its complement is the magnitude less 1.
        inverted, window, sticky = self.i.opposed & ~self.i.negative, *self._window(m)
        fours = self._fours(m)
        places = self._places(m, window, inverted, fours)
        nothing = register(m, ~(fours.any() | self.i.sticky | inverted), "nothing")

        below_top, sign = register(m, self.i.below_top, "below_top"), register(m, self.i.sign, "sign")
        m.d.comb += self.o.exponent.eq(
            register(
                m, Mux(nothing, 0, below_top - Cat(*(each[-1] for each in reversed(places)))), "exponent_out", shape=9
            )
        )
        self._shift(m, register(m, window, "window"), register(m, sticky, "sticky"), places)
        kept = sign & (~nothing | ~register(m, self.i.opposed, "opposed"))
        m.d.comb += [
            self.o.sign.eq(register(m, kept, "sign_out")),
            self.o.inverted.eq(register(m, inverted, "inverted", cycles=2)),
        ]
        return m

    def _window(self, m: Module) -> tuple[Signal, Signal]:
        """52 bits of the addend less the product, or of the sum; whether any bit is set below them."""
        window, below, sticky = Signal(WINDOW_BITS), Signal(FRAME_BITS - WINDOW_BITS), Signal()
        chosen = Mux(self.i.upper, self.i.total[len(below) :], self.i.total[:WINDOW_BITS])
        m.d.comb += [
            window.eq(chosen ^ replicate(self.i.opposed, len(window))),
            below.eq(self.i.total ^ replicate(self.i.opposed, len(below))),
            sticky.eq(self.i.sticky | (self.i.upper & below.any())),
        ]
        return window, sticky

    def _fours(self, m: Module) -> Signal:
        """For each four bits of the frame, whether any of them differs from the one above it: 19 bits."""
        changes, fours = Signal(FRAME_BITS), Signal(FRAME_BITS // 4)
        m.d.comb += [
            changes.eq(self.i.total ^ Cat(self.i.total[1:], self.i.negative)),
            fours.eq(Cat(changes[n : n + 4].any() for n in range(0, FRAME_BITS, 4))),
        ]
        return fours

    def _places(self, m: Module, window: Value, inverted: Value, fours: Signal) -> list[list[Value]]:
        """Digits of how many bits at the top of ``window`` are like the sign, or of the limit if that is less.

        They are there a cycle later, first ones first, each from several registers. The count ends at the limit because
        a bit that differs is put there.
        """
        size, below = WINDOW_BITS // 4, (FRAME_BITS - WINDOW_BITS) // 4
        limit_here, limit, found, changes = Signal(16), Signal(4), Signal(16), Signal(64)
        m.d.comb += [
            limit_here.eq(Const(1 << 15, 16) >> self.i.limit_fours),
            limit.eq(Const(1 << 3, 4) >> self.i.below_top[:DIGIT]),
            found.eq((Mux(self.i.upper, fours[below:], fours[:size]) << 16 - size) | limit_here),
            changes.eq((window ^ Cat(window[1:], inverted)) << 64 - WINDOW_BITS),
        ]
        last = [
            zeros_of_four(m, changes[4 * n : 4 * n + 4] | (limit & replicate(limit_here[n], 4)), f"zeros_{n}")
            for n in range(16)
        ]
        parts = [slice(n, n + 4) for n in range(0, 16, 4)]
        sixteens = [zeros_above(m, found[part], last[part], f"zeros_from_{part.start}") for part in parts]
        first = zeros_above(m, [found[part].any() for part in parts], [Cat()] * 4, "first")
        firsts = [Cat(*bits) for bits in zip(*(fanout(m, bit, "first", DIFFERENT) for bit in first), strict=True)]
        # There is time enough to choose the others in the next cycle.
        later = [
            [register(m, each[low : low + DIGIT], f"digit_{low}") for each in sixteens[::-1]] for low in (DIGIT, 0)
        ]
        return [firsts, *([Array(of_sixteens)[each] for each in firsts] for of_sixteens in later)]

    def _shift(self, m: Module, window: Value, sticky: Value, places: list[list[Value]]) -> None:
        """Register the bits shifted, but for the last place, and whether any lower one was set.

        The largest steps come first; a digit is two steps, of a LUT for each bit. Of a step's outcome only as many bits
        are kept as later ones can still bring to the significand or to the guard bit; whether any other is set is all
        that matters of them.
        """
        first, middle, last = places
        steps = [(32, first, 1), (16, first, 0), (8, middle, 1), (4, middle, 0), (2, last, 1)]
        for unit, digits, which in steps:
            kept = min(len(window), ROUNDED_BITS + unit - 1)
            rest = len(window) - kept
            stage, lost = Signal(kept, name=f"shifted_by_{unit}"), Signal(name=f"lost_{unit}")
            moved = Cat(Const(0, max(unit - rest, 0)), window[max(rest - unit, 0) :])[:kept]
            width = -(-kept // len(digits))
            for n, digit in enumerate(digits):
                part = slice(n * width, (n + 1) * width)
                m.d.comb += stage[part].eq(Mux(digit[which], moved[part], window[rest:][part]))
            if rest:
                m.d.comb += lost.eq(Mux(digits[-1][which], window[: max(rest - unit, 0)].any(), window[:rest].any()))
            window, sticky = stage, sticky | lost
        m.d.comb += [
            self.o.bits.eq(register(m, window, "bits_out")),
            self.o.again.eq(register(m, last[-1][0], "again")),
            self.o.sticky.eq(register(m, sticky, "sticky_out")),
        ]
