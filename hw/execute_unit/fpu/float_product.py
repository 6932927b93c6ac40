"""The first half of a lane: an exact product, rounded in place when it is asked for, or that of a long factor."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_divide import FACTOR_BITS, HIGH_BITS, LOW_BITS
from daedal.hw.execute_unit.fpu.float_format import SIGNIFICAND_BITS, Float32, register
from daedal.hw.execute_unit.fpu.float_shift import leading_zeros
from daedal.hw.lib.below import below
from daedal.hw.lib.replicate import replicate

PRODUCT_BITS = 2 * SIGNIFICAND_BITS
ADDEND_TOP = 100
"""Sum of the two exponent fields at which the top of the addend's place has exponent field 0."""

MULTIPLIER_BITS = 18
"""Bits of a factor that a multiplier takes."""

NO_EXPONENT = -512
"""Exponent of a product that is zero: less than that of any addend."""

ProductSignature = wiring.Signature(
    {
        "sign": Out(1),
        "exponent": Out(signed(10)),
        "tiny": Out(1),
        "significand": Out(PRODUCT_BITS + 1),
        "infinite": Out(1),
        "nan": Out(1),
    }
)
"""A product on its way to the adder.

Its magnitude is ``significand * 2**(exponent - 200)`` with ``exponent = ea + eb - ADDEND_TOP`` (exponent
fields, 1 for subnormals), not normalised. ``exponent`` is the exponent field of an addend that lies as far
to the left of the product as the adder's frame reaches. It is ``NO_EXPONENT`` if a factor was zero.
``tiny`` says that it is 0 or less.
"""


class FloatProduct(wiring.Component):
    """Multiplies two binary32 numbers exactly, or rounds the product to binary32 (ties to even) in place.

    One product per cycle, ``latency`` cycles after its operands. Rounding in place keeps the product where
    it is and clears the bits under its last one: no shifter, and subnormal results cost nothing.

    The second factor can have ``LOW_BITS`` more bits than binary32 has; of the product the highest ones are kept.

    Members
    -------
    a, b : ``In(32)``
        Factors.
    low : ``In(LOW_BITS)``
        What follows the significand of ``b``; 0 if that is a binary32 number.
    cuts, carries : ``In(1)``
        With the factors: clear the product's last ``LOW_BITS``; add what is left of the product before it, if that
        was by the lowest bits of a longer factor (see ``float_divide``). The lower half of this one is then 0.
    a_hidden, b_hidden : ``In(1)``
        Their hidden bits, which come from registers: multipliers start with the cycle.
    negate : ``In(1)``
        Change the product's sign.
    rounds : ``In(1)``
        Round the product; one that overflows is infinite.
    o : ``Out(ProductSignature)``
        The product.
    a_zero, a_nan, b_zero : ``Out(1)``
        What the factors were, in the same cycle as ``o``.
    """

    a: In(32)
    b: In(32)
    low: In(LOW_BITS)
    cuts: In(1)
    carries: In(1)
    a_hidden: In(1)
    b_hidden: In(1)
    negate: In(1)
    rounds: In(1)
    o: Out(ProductSignature)
    a_zero: Out(1)
    a_nan: Out(1)
    b_zero: Out(1)

    latency = 4

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        a, b = Float32(self.a), Float32(self.b)
        self._classify(m, a, b)
        a_scale = Cat(a.exponent[0] | ~self.a_hidden, a.exponent[1:])
        b_scale = Cat(b.exponent[0] | ~self.b_hidden, b.exponent[1:])
        exponents = register(m, a_scale + b_scale, "exponents")
        significands = Cat(a.fraction, self.a_hidden), Cat(b.fraction, self.b_hidden)
        top, least = self._last_bits(m, significands, exponents)
        exact = self._multiply(m, significands[0], Cat(self.low, significands[1]))

        rounds = register(m, self.rounds, "rounds", cycles=2)
        last = self._last_bit(m, exact, top, least, rounds)
        rounded = self._round(m, register(m, exact, "unrounded"), last)

        exponents = register(m, exponents, "exponents_rounded", cycles=2)
        base = Mux(self._zero, NO_EXPONENT, exponents - ADDEND_TOP)
        m.d.comb += [
            self.o.significand.eq(rounded),
            self.o.exponent.eq(register(m, base, "exponent", shape=signed(10))),
            self.o.tiny.eq(register(m, self._zero | below(exponents, ADDEND_TOP + 1), "tiny")),
            self.o.infinite.eq(self._overflows(m, register(m, rounds, "rounds_late"), exponents)),
        ]
        return m

    def _multiply(self, m: Module, a: Value, b: Value) -> Signal:
        """The highest bits of their product, two cycles later: the sum of four that fit a multiplier each.

        Those are registered. Where another product is carried on, the lower factor is 0, and so are two of the four.
        """
        half, exact, gone = MULTIPLIER_BITS, Signal(PRODUCT_BITS, reset_less=True), LOW_BITS
        pieces = ((x, y) for x in (a[:half], a[half:]) for y in (b[:half], b[half:]))
        both_low, low_high, high_low, both_high = (register(m, x * y, f"part{n}") for n, (x, y) in enumerate(pieces))
        cuts, carries = register(m, self.cuts, "cuts"), register(m, self.carries, "carries")
        left, lost = exact[HIGH_BITS:], exact[HIGH_BITS - 4 : HIGH_BITS].any()
        carried = Cat(left[0] | lost, left[1:]) & replicate(carries, len(left))
        at_once = FACTOR_BITS - gone
        lower = Cat(both_low[gone:] | carried[:at_once], both_high)
        middle = low_high + (high_low | (carried[at_once:] << half))
        m.d.sync += exact.eq(lower + (middle << half - gone))
        with m.If(cuts):
            m.d.sync += exact[:gone].eq(0)
        return exact

    def _classify(self, m: Module, a: Float32, b: Float32) -> None:
        """Signs, zeros, infinities and NaNs, which pass beside the product."""
        zero, infinite = a.is_zero() | b.is_zero(), a.is_infinite() | b.is_infinite()
        nan = a.is_nan() | b.is_nan() | (zero & infinite)
        late = register(m, Cat(zero, infinite), "zero_infinite", cycles=self.latency - 1)
        self._zero, self._infinite = late[0], late[1]
        flags = Cat(a.sign ^ b.sign ^ self.negate, nan, a.is_zero(), a.is_nan(), b.is_zero())
        outputs = Cat(self.o.sign, self.o.nan, self.a_zero, self.a_nan, self.b_zero)
        m.d.comb += outputs.eq(register(m, flags, "flags", cycles=self.latency))

    def _last_bits(self, m: Module, significands: tuple[Value, Value], exponents: Value) -> tuple[Signal, Signal]:
        """Two bounds for the place of the last bit of the rounded product, two cycles after the operands.

        The first, ``top``, is the highest set bit of the smaller significand: 23, or less for a subnormal
        (of two subnormals the product is far below the smallest number, where only the second bound
        counts). The product's own highest bit is 23 or 24 above, so its last bit is at ``top`` or one above.
        The second is where the smallest subnormal lies: no last bit can be lower.
        """
        a, b = significands
        narrow = register(m, Mux(self.a_hidden, b, a), "narrow")
        top, least, distance = Signal(5), Signal(6), Signal(signed(10))
        # Of 64 bits, the number of the highest one that is set is the complement of the zeros above.
        m.d.comb += top.eq(~leading_zeros(m, Cat(narrow, Const(0, 64 - SIGNIFICAND_BITS)), "zeros"))
        nothing_left = PRODUCT_BITS + 1
        m.d.comb += distance.eq(151 - exponents)
        m.d.comb += least.eq(Mux(distance < 0, 0, Mux(below(distance[:-1], nothing_left), distance, nothing_left)))
        return register(m, top, "top"), register(m, least, "least")

    def _last_bit(self, m: Module, exact: Value, top: Signal, least: Signal, rounds: Value) -> Signal:
        """The place of the product's last bit, 0 when it is not to be rounded, three cycles in."""
        carried, last = Signal(), Signal(6)
        m.d.comb += [
            carried.eq(exact[SIGNIFICAND_BITS:].bit_select(top, 1)),
            last.eq(Mux(carried, Mux(top >= least, top + 1, least), Mux(top > least, top, least))),
        ]
        return register(m, Mux(rounds, last, 0), "last")

    def _round(self, m: Module, exact: Value, last: Signal) -> Value:
        """``exact`` rounded to a multiple of ``2**last``, ties to even, a cycle later.

        Half a last bit is added. Only a tie leaves no bit set below the last one; then this is cleared too.
        """
        bits = PRODUCT_BITS + 1
        under, raised = Signal(bits), Signal(bits)
        # In eights and ones, of which few signals tell.
        eights, ones = last[3:], last[:3]
        more = [ones > n for n in range(7)] + [Const(0)]
        m.d.comb += [
            under.eq(Cat((eights > n // 8) | ((eights == n // 8) & more[n % 8]) for n in range(bits))),
            raised.eq(exact + (under >> 1) + under[0]),
        ]
        under, self._raised = register(m, under, "under"), register(m, raised, "raised")
        tie = ~(self._raised & under).any()
        return self._raised & ~(under | Mux(tie, under << 1, 0))

    def _overflows(self, m: Module, rounds: Value, exponents: Value) -> Value:
        """Whether the product is infinite, or rounded to 2**128 or more, a cycle after ``exponents``.

        Two significands give at most (2**24 - 1)**2, which rounds to less than 2**48 when 24 bits are kept: the top
        bit, 2**48, is set only by tiny products.
        """
        infinite = register(m, self._infinite | (rounds & ~below(exponents, 382)), "infinite_or_overflow")
        at_limit = register(m, rounds & (exponents == 381), "at_limit")
        # The bit comes late out of the adder, so it is looked at behind its register.
        return infinite | (at_limit & self._raised[PRODUCT_BITS - 1])
