"""Where the addend joins a lane: it is aligned to the product and added, in a fixed frame."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import SIGNIFICAND_BITS, Float32, register
from daedal.hw.execute_unit.fpu.float_product import ProductSignature
from daedal.hw.lib.below import below
from daedal.hw.lib.replicate import replicate

FRAME_BITS = 76
WINDOW_BITS = 52
FINE_BITS = SIGNIFICAND_BITS + 7
NEAR = FRAME_BITS - WINDOW_BITS
"""A normal addend that is shifted so far or less begins in the part of the frame that is not in its lower window."""

PLACES = 10
"""Places in the frame, 8 bits apart, for an addend shifted by less than 8."""

SumSignature = wiring.Signature(
    {
        "total": Out(FRAME_BITS),
        "negative": Out(1),
        "below_top": Out(9),
        "limit_fours": Out(4),
        "sign": Out(1),
        "upper": Out(1),
        "sticky": Out(1),
        "opposed": Out(1),
    }
)
"""A sum that is not yet a magnitude, and its sign.

The frame ``total`` has 76 bits. ``opposed`` says that the signs of the operands differed. Then ``total`` is the
product less the addend less 1, in two's complement with ``negative`` as its highest bit, and its complement the addend
less the product: so one sum serves for both signs of the difference. Else it is the sum and ``negative`` is not set.
``sticky`` stands for a part of the addend, nonzero and below the frame; the product is then the larger one.
``upper`` says that the bits of the result, and the one that rounds them, lie in the frame's upper 52 bits; otherwise
they lie in its lower 52. ``below_top`` (0 to 407) is the exponent field of a number whose hidden bit is the top one of
those, less 1: as many places may it be shifted. ``limit_fours`` is a quarter of it, at most 15. ``sign`` is that of the
larger operand; an exact zero may have either sign here.
"""


class FloatAlign(wiring.Component):
    """Adds a binary32 number to a product: exactly, but for one sticky bit.

    One sum per cycle. ``o`` is combinational on registers, ``latency`` cycles after the inputs. The product
    stays where it is in the frame (bits 2 to 50); the addend starts at its top and is only ever shifted
    right. An addend too large for the frame stays at the top: the product is then less than a quarter of the
    addend's last bit, and any such part rounds alike. Bits are lost at the frame's lower end only if the
    product has 24 bits or more in the frame, so that they can only decide a rounding.

    Members
    -------
    product : ``In(ProductSignature)``
        One operand.
    given, result : ``In(32)``
        The other is one of these, binary32; an infinity or a NaN gives a sum that means nothing.
    chain : ``In(1)``
        It is ``result``. Both are subtracted from the product's exponent, so that neither waits for this.
    negate : ``In(1)``
        Subtract the addend.
    ignore : ``In(1)``
        The addend is +0.0, and is added with the product's sign, so that it changes nothing.
    addend : ``Out(32)``; sign : ``Out(1)``
        What is added, and with which sign, in the same cycle.
    o : ``Out(SumSignature)``
        The sum.
    """

    product: In(ProductSignature)
    given: In(32)
    result: In(32)
    chain: In(1)
    negate: In(1)
    ignore: In(1)
    addend: Out(32)
    sign: Out(1)
    o: Out(SumSignature)

    latency = 2

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        addend = Float32(self.addend)
        m.d.comb += [
            self.addend.eq(Mux(self.chain, self.result, self.given)),
            self.sign.eq(Mux(self.ignore, self.product.sign, addend.sign ^ self.negate)),
        ]
        fine, eights, near, exponent = self._shift_finely(m, addend)
        opposed = register(m, self.product.sign ^ self.sign, "opposed")
        frame, lost = self._shift_coarsely(m, fine, eights)
        m.d.comb += [
            self.o.sticky.eq(register(m, lost, "sticky")),
            self.o.opposed.eq(register(m, opposed, "subtracted")),
        ]
        self._choose_window(m, near, exponent)
        self._add(m, frame ^ replicate(opposed, FRAME_BITS), opposed)
        return m

    def _shift_finely(self, m: Module, addend: Float32) -> tuple[Signal, list[Signal], Signal, Signal]:
        """Register the addend shifted right by 0 to 7, the eights that remain, whether they are few, the exponent.

        Of the eights there are a register that says whether they are an odd number, and one for each number of
        pairs, of which none is set if there are too many.
        """
        distance, shift, at_top, base = Signal(signed(11)), Signal(7), Signal(), self.product.exponent
        distances = (base - Float32(each).exponent for each in (self.result, self.given))
        m.d.comb += [
            distance.eq(Mux(self.chain, *distances)),
            at_top.eq(self.product.tiny | (distance < 0)),
            shift.eq(Mux(at_top, 0, distance[:7] | replicate(distance[7:].any(), 7))),
        ]
        exponent = Mux(at_top, addend.effective_exponent(), base)
        return (
            register(m, self._step(m, addend, Mux(at_top, 0, distance[:3])), "fine"),
            [register(m, shift[3], "odd"), *(register(m, shift[4:] == n, f"pair{n}") for n in range(PLACES // 2))],
            register(m, at_top | ~(shift[5:].any() | (shift[3:5].all() & shift[:3].any())), "near"),
            register(m, exponent, "frame_exponent", shape=9),
        )

    def _step(self, m: Module, addend: Float32, shift: Value) -> Value:
        """The addend in 31 bits, at their top if it is not shifted.

        A subnormal's exponent counts as 0: its fraction lies one place higher, unless the frame begins with it.
        """
        hidden = Mux(self.chain, Float32(self.result).hidden(), Float32(self.given).hidden())
        unmoved = hidden | self.product.tiny
        fine: Value = Mux(unmoved, Cat(addend.fraction, hidden), addend.fraction << 1)[:SIGNIFICAND_BITS]
        for digit in range(3):
            # From the right end of its place, by what it is shifted less than 7; the smallest steps come first.
            step = Const(0, 1 << digit)
            shifted = Signal(len(fine) + len(step), name=f"shifted_{1 << digit}")
            m.d.comb += shifted.eq(Mux(shift[digit], Cat(fine, step), Cat(step, fine)))
            fine = shifted
        return fine

    def _shift_coarsely(self, m: Module, fine: Signal, eights: list[Signal]) -> tuple[Value, Signal]:
        """Place the addend in the frame; say whether any bit fell out."""
        odd, *pairs = eights
        frame, lost, narrow = Const(0, FRAME_BITS), Signal(), FINE_BITS + 8
        bits, fallen = Signal(narrow), fine.any() & ~Cat(*pairs).any()
        m.d.comb += bits.eq(Mux(odd, fine, Cat(Const(0, 8), fine)))
        for number, pair in enumerate(pairs):
            place = FRAME_BITS - narrow - 16 * number
            chosen = bits & replicate(pair, narrow)
            frame = frame | Cat(Const(0, max(place, 0)), chosen[max(-place, 0) :], Const(0, FRAME_BITS))[:FRAME_BITS]
            fallen = fallen | chosen[: max(-place, 0)].any()
        m.d.comb += lost.eq(fallen)
        return frame, lost

    def _choose_window(self, m: Module, near: Value, exponent: Value) -> None:
        """Register which part of the frame counts, and how far below the top the smallest exponent is."""
        upper, low, high = near | below(exponent, NEAR + 1), Signal(9), Signal(9)
        m.d.comb += [low.eq(exponent - NEAR - 1), high.eq(exponent - 1)]
        below_top = register(m, Mux(upper, high, low), "below_top")
        fours = [each[2:6] | replicate(each[6:].any(), 4) for each in (high, low)]
        m.d.comb += [
            self.o.upper.eq(register(m, upper, "upper")),
            self.o.below_top.eq(below_top),
            self.o.limit_fours.eq(register(m, Mux(upper, *fours), "limit_fours")),
        ]

    def _add(self, m: Module, frame: Value, opposed: Signal) -> None:
        """Register the sum of the product and the frame, which is complemented if the signs are opposite.

        Its highest bit is then set if the addend is not less than the product. That is so only if nothing was lost.
        """
        product = register(m, self.product.significand, "product") << 2
        total = register(m, (product + Cat(frame, opposed))[: FRAME_BITS + 1], "total")
        m.d.comb += [
            Cat(self.o.total, self.o.negative).eq(total),
            self.o.sign.eq(register(m, register(m, self.product.sign, "product_sign"), "sign_late") ^ total[-1]),
        ]
