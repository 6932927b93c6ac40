"""Scalar operations that take a step per bit: division, square root, conversions, scaling."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import (
    CANONICAL_NAN,
    EXPONENT_BIAS,
    FRACTION_BITS,
    INFINITY,
    ONE,
    SIGNIFICAND_BITS,
    Float32,
    register,
)
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.lib.fsm_names import name_states

WORD_BITS = 32
EXPONENT_BITS = 11
ROOT_BITS = SIGNIFICAND_BITS + 2
"""Bits of a quotient or root that are computed: one may be a leading zero, one rounds."""

LEAST_EXPONENT = 1 - EXPONENT_BIAS
"""Exponent of the smallest normal number."""

MOST_SCALE = 511
"""A scale of more than this, up or down, gives what this one gives."""


class IterativeRequest(data.Struct):
    """An operation and its operands, each 32 bits."""

    op: IterativeOp
    a: 32
    b: 32


class IterativeUnit(wiring.Component):
    """One operation of ``IterativeOp`` at a time, binary32 rounded once to nearest even, subnormals kept.

    NaN operands, 0/0, infinity/infinity and roots of negative numbers give 0x7fc00000; the root of -0.0 is -0.0. A
    NaN becomes the integer 0; what does not fit 32 signed bits becomes the nearest integer that does.

    A number is a word whose top bit has weight 2**exponent. It is shifted to the left until that bit is set, by 8 or
    1 places a cycle, and to the right, a place a cycle, as far as a subnormal result or an integer needs; one adder
    rounds all. Quotient and root come bit by bit from one subtracter.

    Between a request and its answer pass at most ``latency`` cycles; without subnormal numbers a quotient takes
    39 at most, a root 37, an integer's conversion 15, scaling 5.

    Members
    -------
    i : ``In(stream.Signature(IterativeRequest))``
        What to do; taken only when nothing is under way.
    o : ``Out(stream.Signature(32))``
        The answers, in order.
    """

    i: In(stream.Signature(IterativeRequest))
    o: Out(stream.Signature(32))

    latency = 84

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._op, self._a, self._b = Signal(IterativeOp), Signal(Float32), Signal(Float32)
        self._word, self._exponent = Signal(WORD_BITS), Signal(signed(EXPONENT_BITS))
        self._guard, self._sticky, self._sign = Signal(), Signal(), Signal()
        self._divisor, self._remainder = Signal(ROOT_BITS), Signal(ROOT_BITS + 2)
        self._loaded, self._computed, self._step = Signal(), Signal(), Signal(range(ROOT_BITS))
        self._result, self._takes_b = Signal(WORD_BITS), Signal()
        inverse = self.i.payload.op == IterativeOp.RECIPROCAL
        # One adder for all that happens to the exponent; what is not said leaves it as it is.
        self._base, self._change = Signal.like(self._exponent), Signal.like(self._exponent)
        self._operand = Signal(Float32)
        m.d.comb += [
            self.o.payload.eq(self._result),
            self._base.eq(self._exponent),
            self._operand.eq(Mux(self._takes_b, self._b, self._a)),
        ]
        m.d.sync += self._exponent.eq(self._base + self._change)
        with m.FSM() as fsm:
            with m.State("READY"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    self._takes_b.eq(inverse | (self.i.payload.op == IterativeOp.DIVIDE)),
                    self._op.eq(Mux(inverse, IterativeOp.DIVIDE, self.i.payload.op)),
                    self._a.as_value().eq(Mux(inverse, ONE, self.i.payload.a)),
                    self._b.as_value().eq(Mux(inverse, self.i.payload.a, self.i.payload.b)),
                ]
                with m.If(self.i.valid):
                    m.next = "LOAD"
            self._load(m)
            self._normalize(m)
            self._iterate(m)
            self._shift(m)
            self._round(m)
            with m.State("ANSWER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "READY"
        name_states(fsm, "IterativeState")
        return m

    def _is(self, *ops: IterativeOp) -> Value:
        return Value.cast(self._op).matches(*ops)

    def _load(self, m: Module) -> None:
        """Answer what needs no arithmetic; else bring the first operand into the word."""
        a, b = self._a, self._b
        divides, integer = self._is(IterativeOp.DIVIDE), self._is(IterativeOp.TO_FLOAT)
        special, answer = self._special()
        with m.State("LOAD"):
            m.d.sync += [
                self._takes_b.eq(0),
                self._sign.eq(a.sign ^ (b.sign & divides)),
                self._result.eq(answer),
                self._guard.eq(0), self._sticky.eq(0), self._computed.eq(0), self._step.eq(0),
                self._loaded.eq(~divides), self._word.eq(self._significand()),
            ]  # fmt: skip
            m.d.comb += [self._base.eq(self._operand.effective_exponent()), self._change.eq(-EXPONENT_BIAS)]
            with m.If(integer):
                bits = a.as_value()
                m.d.sync += self._word.eq(Mux(a.sign, -bits, bits))
                m.d.comb += self._base.eq(EXPONENT_BIAS + WORD_BITS - 1)
            m.next = "NORMALIZE"
            with m.If(special):
                m.next = "ANSWER"

    def _significand(self) -> Value:
        """The operand's significand as a word."""
        return Cat(Const(0, WORD_BITS - SIGNIFICAND_BITS), self._operand.significand())

    def _special(self) -> tuple[Value, Value]:
        """Whether the answer is known at once, and which it is."""
        a, b, divides = self._a, self._b, self._is(IterativeOp.DIVIDE)
        to_float, to_integer = self._is(IterativeOp.TO_FLOAT), self._is(IterativeOp.TO_INTEGER)
        root = self._is(IterativeOp.SQUARE_ROOT)
        a_nan, a_infinite, a_zero = a.is_nan(), a.is_infinite(), a.is_zero()
        nan = (
            a_nan
            | (divides & (b.is_nan() | (a_zero & b.is_zero()) | (a_infinite & b.is_infinite())))
            | (root & a.sign & ~a_zero)
        )
        infinite = a_infinite | (divides & b.is_zero())
        known = nan | infinite | a_zero | (divides & b.is_infinite())
        number = Mux(nan, CANONICAL_NAN, Cat(Mux(infinite, Const(INFINITY, 31), 0), a.sign ^ (divides & b.sign)))
        integer = Mux(infinite & ~nan, Mux(a.sign, 1 << 31, (1 << 31) - 1), 0)
        return (
            Mux(to_float, ~self._a.as_value().any(), known),
            Mux(to_integer, integer, Mux(to_float, 0, number)),
        )

    def _normalize(self, m: Module) -> None:
        """Shift until the top bit is set; then go on with what the operation needs."""
        word, exponent = self._word, self._exponent
        base, change = self._base, self._change
        with m.State("NORMALIZE"):
            with m.If(~word[-8:].any()):
                m.d.sync += word.eq(word << 8)
                m.d.comb += change.eq(-8)
            with m.Elif(~word[-1]):
                m.d.sync += word.eq(word << 1)
                m.d.comb += change.eq(-1)
            with m.Elif(~self._loaded):
                m.d.sync += [
                    self._loaded.eq(1),
                    self._divisor.eq(word[-SIGNIFICAND_BITS:]),
                    word.eq(self._significand()),
                ]
                # The difference of the exponents: ~x is -x - 1.
                m.d.comb += [base.eq(~exponent), change.eq(self._operand.effective_exponent() - EXPONENT_BIAS + 1)]
            with m.Elif(self._is(IterativeOp.DIVIDE) & ~self._computed):
                m.d.sync += [self._remainder.eq(word[-SIGNIFICAND_BITS:]), word.eq(0)]
                m.d.comb += change.eq(WORD_BITS - ROOT_BITS)
                m.next = "ITERATE"
            with m.Elif(self._is(IterativeOp.SQUARE_ROOT) & ~self._computed):
                radicand = word[-ROOT_BITS:]
                m.d.sync += [
                    self._divisor.eq(Mux(exponent[0], radicand, radicand >> 1)), self._remainder.eq(0), word.eq(0),
                ]  # fmt: skip
                m.d.comb += [base.eq(exponent >> 1), change.eq(WORD_BITS - ROOT_BITS)]
                m.next = "ITERATE"
            with m.Else():
                with m.If(self._is(IterativeOp.SCALE)):
                    m.d.comb += change.eq(self._scale())
                m.next = "SHIFT"

    def _scale(self) -> Value:
        """Operand ``b`` as an integer that does not overflow an exponent."""
        bits = self._b.as_value()
        small = bits[9:].all() | ~bits[9:].any()
        return Mux(small, bits[:10].as_signed(), Mux(bits[-1], -MOST_SCALE, MOST_SCALE))

    def _iterate(self, m: Module) -> None:
        """A bit of quotient or root each cycle into the word, most significant first.

        A root takes two bits of the radicand for each of its own; it is tried with 01 behind what is known of it.
        """
        word, divisor, remainder = self._word, self._divisor, self._remainder
        root = self._is(IterativeOp.SQUARE_ROOT)
        minuend, subtrahend = Signal(ROOT_BITS + 2), Signal(ROOT_BITS + 2)
        difference, kept = Signal(ROOT_BITS + 3), Signal(ROOT_BITS + 2)
        fits = ~difference[-1]
        m.d.comb += [
            minuend.eq(Mux(root, Cat(divisor[-2:], remainder), remainder)),
            subtrahend.eq(Mux(root, Cat(Const(1, 2), word), divisor)),
            difference.eq(minuend - subtrahend),
            kept.eq(Mux(fits, difference, minuend)),
        ]
        with m.State("ITERATE"):
            m.d.sync += [
                word.eq(Cat(fits, word)),
                remainder.eq(Mux(root, kept, kept << 1)),
                divisor.eq(Mux(root, divisor << 2, divisor)),
                self._step.eq(self._step + 1),
            ]
            with m.If(self._step == ROOT_BITS - 1):
                m.d.sync += [self._computed.eq(1), self._sticky.eq(kept.any())]
                m.next = "NORMALIZE"

    def _shift(self, m: Module) -> None:
        """Shift to the right as far as the exponent asks; what falls out is kept as guard and sticky bit."""
        word, exponent = self._word, self._exponent
        lowest = Mux(self._is(IterativeOp.TO_INTEGER), WORD_BITS - 1, LEAST_EXPONENT)
        with m.State("SHIFT"):
            with m.If((exponent < lowest) & (word.any() | self._guard)):
                m.d.sync += [
                    word.eq(word >> 1), self._guard.eq(word[0]), self._sticky.eq(self._sticky | self._guard),
                ]  # fmt: skip
                m.d.comb += self._change.eq(1)
            with m.Else():
                m.next = "ROUND"

    def _round(self, m: Module) -> None:
        """Round to nearest even: an integer by the guard bit, a float by the top bit below its significand.

        What decides it is registered: in the cycle before, word and exponent are the same.
        """
        word, exponent, integer = self._word, self._exponent, self._is(IterativeOp.TO_INTEGER)
        rest, fraction = WORD_BITS - SIGNIFICAND_BITS, self._word[WORD_BITS - SIGNIFICAND_BITS : WORD_BITS - 1]
        lost = self._guard | self._sticky
        up, base, rounded = Signal(), Signal(WORD_BITS), Signal(WORD_BITS)
        # The top bit adds one to the exponent field, so that a subnormal number has field 0.
        field = register(m, Mux(word[-1], (exponent + EXPONENT_BIAS)[:8], 0), "field", shape=8)
        overflow = register(m, (exponent > EXPONENT_BIAS) & word[-1], "overflow")
        number = Mux(overflow | rounded[FRACTION_BITS:31].all(), INFINITY, rounded[:31])
        outside = Mux(self._sign, 1 << 31, (1 << 31) - 1)
        m.d.sync += up.eq(
            Mux(
                integer,
                self._guard & (self._sticky | word[0]),
                word[rest - 1] & (word[: rest - 1].any() | lost | word[rest]),
            )
        )
        m.d.comb += [
            base.eq(Mux(integer, word ^ self._sign.replicate(WORD_BITS), Cat(fraction, field))),
            rounded.eq(base + (up ^ (integer & self._sign))),
        ]
        with m.State("ROUND"):
            m.d.sync += self._result.eq(Mux(integer, Mux(word[-1], outside, rounded), Cat(number[:31], self._sign)))
            m.next = "ANSWER"
