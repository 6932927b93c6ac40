"""The unit that turns a count into the reciprocal that rows are multiplied by."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_divide import (
    COUNT_BITS,
    FACTOR_BITS,
    HIGH_BITS,
    TABLE_BITS,
    Factor,
    factor,
)
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, FRACTION_BITS
from daedal.hw.lib.fsm_names import name_states
from daedal.hw.lib.ram_style import BLOCK_RAM

DIGITS = FACTOR_BITS + HIGH_BITS
"""Bits of a long reciprocal, of which each takes a cycle."""


def table() -> list[int]:
    """A word for each count of ``TABLE_BITS``: its ``Factor.low``, in which the top bit, always 1, gives way to whether
    the count is a power of two.
    """
    words = [0]
    for count in range(1, 1 << TABLE_BITS):
        top = 1 << FACTOR_BITS - 1
        words.append(factor(count).low - top + (0 if count & (count - 1) else top))
    return words


class Reciprocal(wiring.Component):
    """The ``Factor`` of each count.

    That of a count of ``TABLE_BITS`` comes out of a table, one every two cycles. Others are divided for, bit by bit: at
    most ``latency`` cycles, of which such a count's rows take several hundred. A count of 0 has an answer without a
    meaning.

    Members
    -------
    i : ``In(stream.Signature(24))``
        Counts, at least 1.
    o : ``Out(stream.Signature(Factor))``
        Answers, one for each count, in order.
    """

    i: In(stream.Signature(COUNT_BITS))
    o: Out(stream.Signature(Factor))

    latency = 2 + (COUNT_BITS - TABLE_BITS - 1) + DIGITS

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.table = words = memory.Memory(
            shape=FACTOR_BITS, depth=1 << TABLE_BITS, init=table(), attrs=BLOCK_RAM
        )
        self._word = words.read_port()
        self._divisor, self._places = Signal(COUNT_BITS), Signal(range(COUNT_BITS))
        m.d.comb += [self._word.addr.eq(self.i.payload), self._word.en.eq(0)]
        with m.FSM() as fsm:
            with m.State("READY"):
                m.d.comb += [self.i.ready.eq(1), self._word.en.eq(self.i.valid)]
                with m.If(self.i.valid):
                    m.d.sync += [self._divisor.eq(self.i.payload), self._places.eq(0)]
                    m.next = "FOUND"
                    with m.If(self.i.payload[TABLE_BITS:].any()):
                        m.next = "NORMALIZE"
            with m.State("FOUND"):
                m.d.comb += self.o.valid.eq(1)
                self._find(m)
                with m.If(self.o.ready):
                    m.next = "READY"
            self._divide(m)
        name_states(fsm, "ReciprocalState")
        return m

    def _find(self, m: Module) -> None:
        """Give the answer of the table."""
        word, answer, size = self._word.data, self.o.payload, Signal(range(TABLE_BITS + 1))
        for n in range(TABLE_BITS):
            with m.If(self._divisor[n]):
                m.d.comb += size.eq(n + 1)
        m.d.comb += [
            answer.low.eq(Cat(word[:-1], Const(1, 1))),
            answer.exponent.eq(EXPONENT_BIAS - size + word[-1]),
        ]

    def _divide(self, m: Module) -> None:
        """The divisor to the top, then a bit of the quotient in each cycle, the most significant one first.

        Behind the dividend come ones, which round the quotient up. That of a power of two would have a bit more: it is
        1.
        """
        divisor, places = self._divisor, self._places
        quotient, remainder, step = Signal(DIGITS), Signal(COUNT_BITS), Signal(range(DIGITS))
        doubled, difference, fits = Signal(COUNT_BITS + 1), Signal(COUNT_BITS + 2), Signal()
        is_power = ~divisor[:FRACTION_BITS].any()
        m.d.comb += [
            doubled.eq(Cat(step >= DIGITS - COUNT_BITS, remainder)),
            difference.eq(doubled - divisor),
            fits.eq(~difference[-1]),
        ]
        with m.State("NORMALIZE"):
            m.d.sync += [step.eq(0), remainder.eq(1 << FRACTION_BITS), quotient.eq(1 << DIGITS - 1)]
            with m.If(divisor[-1]):
                m.next = "DIVIDE"
                with m.If(is_power):
                    m.next = "DIVIDED"
            with m.Else():
                m.d.sync += [divisor.eq(divisor << 1), places.eq(places + 1)]
        with m.State("DIVIDE"):
            m.d.sync += [
                remainder.eq(Mux(fits, difference, doubled)),
                quotient.eq(Cat(fits, quotient)),
                step.eq(step + 1),
            ]
            with m.If(step == DIGITS - 1):
                m.next = "DIVIDED"
        with m.State("DIVIDED"):
            m.d.comb += [
                self.o.valid.eq(1),
                self.o.payload.long.eq(1),
                self.o.payload.low.eq(quotient[:FACTOR_BITS]),
                self.o.payload.high.eq(quotient[FACTOR_BITS:]),
                self.o.payload.exponent.eq(EXPONENT_BIAS - COUNT_BITS + places + is_power),
            ]
            with m.If(self.o.ready):
                m.next = "READY"
