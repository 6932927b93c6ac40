"""Normalisation of a sum: count its leading zeros, then shift them out."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.float_align import FRAME_BITS, HIGH_BITS, LOW_BITS, SumSignature
from daedal.hw.execute_unit.float_format import SIGNIFICAND_BITS, register
from daedal.hw.execute_unit.float_shift import DIGIT, leading_zeros
from daedal.hw.spread import spread

WINDOW_BITS = 52
ROUNDED_BITS = SIGNIFICAND_BITS + 1
LIMIT_BITS = 6

UnroundedSignature = wiring.Signature(
    {
        "sign": Out(1),
        "exponent": Out(9),
        "significand": Out(SIGNIFICAND_BITS),
        "guard": Out(1),
        "sticky": Out(1),
    }
)
"""A number before its rounding: the exponent field is ``exponent`` plus the significand's top bit.

``guard`` is the bit below the significand, ``sticky`` says that there is more below that.
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
        window, sticky = self._window(m)
        zeros = leading_zeros(m, Cat(Const(0, 64 - WINDOW_BITS), window), "zeros")
        below_top = Signal(9)
        m.d.comb += below_top.eq(self.i.exponent - Mux(self.i.upper, 1, HIGH_BITS))
        limit = below_top[:LIMIT_BITS] | spread(below_top[LIMIT_BITS:].any(), LIMIT_BITS)

        window, sticky = register(m, window, "window"), register(m, sticky, "sticky")
        below_top, sign = register(m, below_top, "below_top"), register(m, self.i.sign, "sign")
        # The count is at most WINDOW_BITS - 1, or 63 for a window of zeros.
        nothing = register(m, zeros[-DIGIT:], "zeros_sixteens").all() & register(m, zeros[3], "zeros_eight") & ~sticky
        places = self._least(m, zeros, limit)
        m.d.comb += self.o.exponent.eq(register(m, Mux(nothing, 0, below_top - places), "exponent_out", shape=9))
        self._shift(m, window, sticky, places)
        kept = sign & (~nothing | ~register(m, self.i.opposed, "opposed"))
        m.d.comb += self.o.sign.eq(register(m, kept, "sign_out"))
        return m

    def _window(self, m: Module) -> tuple[Signal, Signal]:
        """The 52 bits of the frame that hold the result, and whether anything is left below them."""
        window, below = Signal(WINDOW_BITS), FRAME_BITS - WINDOW_BITS
        upper = Cat(self.i.low[below:], self.i.high)
        lower = Cat(self.i.low, self.i.high[: WINDOW_BITS - LOW_BITS])
        sticky = Signal()
        m.d.comb += [
            window.eq(Mux(self.i.upper, upper, lower)),
            sticky.eq(self.i.sticky | (self.i.upper & self.i.low[:below].any())),
        ]
        return window, sticky

    def _least(self, m: Module, zeros: Value, limit: Value) -> Signal:
        """The smaller one, a cycle later; each digit is there when the shift comes to it, the first at once."""
        split = LIMIT_BITS - DIGIT
        less, more = _less(zeros[split:], limit[split:]), _less(limit[split:], zeros[split:])
        digits = [register(m, Mux(more, limit[split:], zeros[split:]), "first_digit")]
        less, more = register(m, less, "less"), register(m, more, "more")
        zeros, limit = register(m, zeros[:split], "zeros"), register(m, limit[:split], "limit")
        for low in reversed(range(0, split, DIGIT)):
            mine, other = zeros[low : low + DIGIT], limit[low : low + DIGIT]
            above = more | (~less & _less(other, mine))
            digits.append(Mux(above, other, mine))
            less, more = less | (~more & _less(mine, other)), above
        places = Signal(LIMIT_BITS)
        m.d.comb += places.eq(Cat(*reversed(digits)))
        return places

    def _shift(self, m: Module, window: Value, sticky: Value, places: Signal) -> None:
        """Register the shifted significand and what decides its rounding.

        The largest steps come first. Of a step's outcome only as many bits are kept as later ones can still bring to
        the significand or to the guard bit; whether any other is set is all that matters of them.
        """
        for low in reversed(range(0, LIMIT_BITS, DIGIT)):
            rest = len(window) - ROUNDED_BITS - (1 << low) + 1
            stage, lost = Signal(len(window) - rest, name=f"shifted_by_{1 << low}"), Signal(name=f"lost_{1 << low}")
            with m.Switch(places[low : low + DIGIT]):
                for times in range(1 << DIGIT):
                    step = times << low
                    with m.Case(times):
                        m.d.comb += stage.eq(Cat(Const(0, max(step - rest, 0)), window[max(rest - step, 0) :]))
                        m.d.comb += lost.eq(window[: max(rest - step, 0)].any())
            window, sticky = stage, sticky | lost
        m.d.comb += [
            self.o.significand.eq(register(m, window[1:], "significand_out")),
            self.o.guard.eq(register(m, window[0], "guard_out")),
            self.o.sticky.eq(register(m, sticky, "sticky_out")),
        ]


def _less(a: Value, b: Value) -> Value:
    """Whether one digit is less than another, without a chain of carries."""
    return (~a[1] & b[1]) | ((a[1] == b[1]) & ~a[0] & b[0])
