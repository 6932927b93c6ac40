"""Where the addend joins a lane: it is aligned to the product and added, in a fixed frame."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.copies import DIFFERENT, copies
from daedal.hw.execute_unit.float_format import SIGNIFICAND_BITS, Float32, register
from daedal.hw.execute_unit.float_product import ProductSignature
from daedal.hw.spread import spread

FRAME_BITS = 76
HIGH_BITS = 25
LOW_BITS = FRAME_BITS - HIGH_BITS
FINE_BITS = SIGNIFICAND_BITS + 15
PLACES = 5
"""Places in the frame, 16 bits apart, for an addend shifted by less than 16."""

SumSignature = wiring.Signature(
    {
        "low": Out(LOW_BITS),
        "high": Out(HIGH_BITS),
        "exponent": Out(9),
        "sign": Out(1),
        "upper": Out(1),
        "sticky": Out(1),
        "opposed": Out(1),
    }
)
"""Magnitude and sign of a sum.

The frame ``Cat(low, high)`` has 76 bits; ``exponent`` (1 to 408) is the exponent field of a number whose
hidden bit is the frame's top bit. ``sticky`` stands for a nonzero part below the frame. ``upper`` says that
the bits of the result, and the one that rounds them, lie in the frame's upper 52 bits; otherwise they lie
in its lower 52, and ``exponent`` is at least 25. ``opposed`` says that the signs of the operands differed;
an exact zero may have either sign here.
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
        fine, sixteens, exponent = self._shift_finely(m, addend)
        opposed = register(m, self.product.sign ^ self.sign, "opposed")
        frame, any_high, lost = self._shift_coarsely(m, fine, sixteens)
        m.d.comb += [
            self.o.exponent.eq(register(m, exponent, "exponent")),
            self.o.upper.eq(register(m, any_high | (exponent < HIGH_BITS), "upper")),
            self.o.sticky.eq(register(m, lost, "sticky")),
        ]
        self._add(m, frame ^ spread(opposed, FRAME_BITS), opposed, register(m, ~any_high, "nothing_above"))
        return m

    def _shift_finely(self, m: Module, addend: Float32) -> tuple[Signal, list[Signal], Signal]:
        """Register the addend shifted right by 0 to 15, the sixteens that remain, the frame's exponent.

        The sixteens have a register for each number of them, of which none is set if there are too many.
        """
        distance, shift = Signal(signed(11)), Signal(7)
        at_top, base = distance[-1], self.product.exponent
        distances = (_distance(base, Float32(each)) for each in (self.result, self.given))
        m.d.comb += [
            distance.eq(Mux(self.chain, *distances)),
            shift[:4].eq(Mux(at_top, 0, distance[:4])),
            shift[4:].eq(Mux(at_top, 0, Mux(distance[7:].any(), 7, distance[4:7]))),
        ]
        fine: Value = addend.significand()
        for digit in range(4):
            # From the right end of its place, by what it is shifted less than 15; the smallest steps come first.
            step = Const(0, 1 << digit)
            shifted = Signal(len(fine) + len(step), name=f"shifted_{1 << digit}")
            m.d.comb += shifted.eq(Mux(shift[digit], Cat(fine, step), Cat(step, fine)))
            fine = shifted
        exponent = Mux(at_top, addend.effective_exponent(), base)
        return (
            register(m, fine, "fine"),
            [register(m, shift[4:] == number, f"sixteens{number}") for number in range(PLACES)],
            register(m, exponent, "frame_exponent", shape=9),
        )

    def _shift_coarsely(self, m: Module, fine: Signal, sixteens: list[Signal]) -> tuple[Value, Signal, Signal]:
        """Place the addend in the frame; say whether any bit is in its high part, and whether any fell out."""
        frame, any_high, lost = Const(0, FRAME_BITS), Signal(), Signal()
        high, fallen = Const(0, 1), fine.any() & ~Cat(*sixteens).any()
        for number, here in enumerate(sixteens):
            place = FRAME_BITS - FINE_BITS - 16 * number
            bits = fine & spread(here, FINE_BITS)
            placed = Cat(Const(0, max(place, 0)), bits[max(-place, 0) :], Const(0, FRAME_BITS))[:FRAME_BITS]
            frame = frame | placed
            high = high | (here & fine[max(LOW_BITS - place, 0) :].any())
            fallen = fallen | (here & fine[: max(-place, 0)].any())
        m.d.comb += [any_high.eq(high), lost.eq(fallen)]
        return frame, any_high, lost

    def _add(self, m: Module, frame: Value, opposed: Signal, nothing_above: Signal) -> None:
        """Register two sums, then choose the one that is the magnitude.

        With opposite signs, ``first = product + ~addend`` is one less than the difference, which is right
        when a lost part has to be taken off too, and its complement is the negated difference. ``second`` is
        the difference itself, with its top bit set unless it is negative. A negative one means that nothing was lost.
        The product has no high part, nor then has ``second``. Each part of the sum has a register of its own that says
        whether signs are opposite.
        """
        product_sign, product = register(m, self.product.sign, "product_sign"), Signal(LOW_BITS)
        m.d.comb += product.eq(register(m, self.product.significand, "product") << 2)
        first = register(m, (product + frame)[:FRAME_BITS], "first")
        # With a carry from below.
        second = register(m, (Cat(1, product) + Cat(1, frame[:LOW_BITS]))[1:], "second", shape=LOW_BITS + 1)
        positive = nothing_above & second[LOW_BITS]
        *each, above = copies(m, opposed, "subtracted", DIFFERENT)
        width = -(-LOW_BITS // len(each))
        for n, subtracted in enumerate(each):
            bits = slice(n * width, min((n + 1) * width, LOW_BITS))
            flipped = first[bits] ^ spread(subtracted & ~positive, len(first[bits]))
            difference = subtracted & positive & ~self.o.sticky
            m.d.comb += self.o.low[bits].eq(Mux(difference, second[bits], flipped))
        negated = above & ~positive
        m.d.comb += [
            self.o.high.eq(Mux(above & positive, 0, first[LOW_BITS:] ^ spread(negated, HIGH_BITS))),
            self.o.sign.eq(register(m, product_sign, "sign_if_positive") ^ negated),
            self.o.opposed.eq(above),
        ]


def _distance(base: Value, number: Any) -> Value:
    """How far below ``base`` a number's exponent is; that of a subnormal counts as 1, without waiting for its bits."""
    return Mux(number.hidden(), base - number.exponent, base - 1)
