"""A serial unit that turns a count into its binary32 value and reciprocal."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_divide import COUNT_BITS
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, FRACTION_BITS
from daedal.hw.lib.fsm_names import name_states


class CountFloats(data.Struct):
    """A count in binary32, both exactly as IEEE-754 rounds them."""

    reciprocal: 32
    value: 32


class Reciprocal(wiring.Component):
    """Correctly rounded 1 / count, and the count itself, in binary32.

    Divides bit by bit: an answer is valid ``latency`` cycles after a count was taken, or 1 cycle after it if
    the count is the same as the one before. One count at a time; the next is taken once the answer is.
    A count of 0 is answered, but with nothing of meaning.

    Members
    -------
    i : ``In(stream.Signature(24))``
        Counts, at least 1.
    o : ``Out(stream.Signature(CountFloats))``
        Answers, one for each count, in order.
    """

    i: In(stream.Signature(COUNT_BITS))
    o: Out(stream.Signature(CountFloats))

    latency = 28

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count, known = Signal(COUNT_BITS), Signal()
        with m.FSM() as fsm:
            with m.State("READY"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += count.eq(self.i.payload)
                    with m.If(known & (self.i.payload == count)):
                        m.next = "ANSWER"
                    with m.Else():
                        m.next = "COARSE"
            self._normalize(m, count)
            self._divide(m)
            with m.State("ANSWER"):
                m.d.comb += self.o.valid.eq(1)
                m.d.sync += known.eq(1)
                with m.If(self.o.ready):
                    m.next = "READY"
        name_states(fsm, "ReciprocalState")
        self._answer(m)
        return m

    def _normalize(self, m: Module, count: Signal) -> None:
        """Two cycles: shift the divisor's leading one to the top, keep the number of places."""
        self._divisor, self._places = divisor, places = Signal(COUNT_BITS), Signal(5)
        with m.State("COARSE"):
            eights = Mux(count[16:].any(), 0, Mux(count[8:].any(), 1, 2))
            m.d.sync += [places.eq(Cat(Const(0, 3), eights)), divisor.eq(count << Cat(Const(0, 3), eights))]
            m.next = "FINE"
        with m.State("FINE"):
            ones = Signal(3)
            for n in range(8):
                with m.If(divisor[16 + n]):
                    m.d.comb += ones.eq(7 - n)
            m.d.sync += [places.eq(places | ones), divisor.eq(divisor << ones)]
            m.next = "DIVIDE"

    def _divide(self, m: Module) -> None:
        """25 cycles: 24 bits of quotient and one to round by, most significant first.

        Only for a power of two does the remainder reach the divisor: the bits are then all ones, and rounding
        carries into the exponent, as it must. No other reciprocal is a tie.
        """
        self._quotient = quotient = Signal(COUNT_BITS + 1)
        remainder = Signal(COUNT_BITS, init=1 << FRACTION_BITS)
        difference = Signal(COUNT_BITS + 2)
        doubled, fits, step = Signal(COUNT_BITS + 1), Signal(), Signal(range(COUNT_BITS + 1))
        m.d.comb += [doubled.eq(remainder << 1), difference.eq(doubled - self._divisor), fits.eq(~difference[-1])]
        with m.State("DIVIDE"):
            m.d.sync += [
                remainder.eq(Mux(fits, difference, doubled)),
                quotient.eq(Cat(fits, quotient[:COUNT_BITS])),
                step.eq(step + 1),
            ]
            with m.If(step == COUNT_BITS):
                m.d.sync += [step.eq(0), remainder.eq(1 << FRACTION_BITS)]
                m.next = "ANSWER"

    def _answer(self, m: Module) -> None:
        """Round and pack; the exponent field below is that of a reciprocal in (1/2, 1) units."""
        rounded, exponent, value_exponent = Signal(COUNT_BITS + 8), Signal(8), Signal(8)
        # One adder: the quotient has a bit more than the fraction, to which 1 is added.
        m.d.comb += [
            rounded.eq(Cat(Const(1, COUNT_BITS), exponent) + self._quotient),
            value_exponent.eq(EXPONENT_BIAS + COUNT_BITS - 1 - self._places),
            exponent.eq(EXPONENT_BIAS - COUNT_BITS - 1 + self._places),
            self.o.payload.reciprocal.eq(rounded >> 1),
            self.o.payload.value.eq(Cat(self._divisor[:FRACTION_BITS], value_exponent)),
        ]
