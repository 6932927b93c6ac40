"""Division by a count in three passes over a lane.

Given ``y``, the correctly rounded binary32 reciprocal of an integer count ``L``, and ``L`` itself in
binary32 (:class:`~daedal.hw.execute_unit.fpu.float_reciprocal.Reciprocal` makes both), the quotient ``x / L``
correctly rounded takes three passes, whatever ``x`` is:

====  ====================  =========  =========  =========  ================  ===========
pass  operation             ``a``      ``b``      ``c``      negate_product    result
====  ====================  =========  =========  =========  ================  ===========
1     ``MUL``               x          y                     no                q, quotient
2     ``FMA``               q          L          x          yes               r, remainder
3     as DivideFixup says   its ``a``  its ``b``  q          no                x / L
====  ====================  =========  =========  =========  ================  ===========

Valid for every 1 <= L < 2**24; no count needs a further pass. Why: the first quotient is off by at most 1.5
units in its last place, so what the third pass rounds differs from x / L by at most 2.25 * 2**-24 units. A
quotient that is not halfway between two numbers is at least 1 / (2 L') from it, L' being the odd part of L:
further than that for L' up to 2**24 / 4.5. For every odd L between 2**21 and 2**24, each significand whose
quotient lies within 4 / (2 L) of a halfway point was computed (1.2 * 10**8 cases), and all came out right.
A quotient with a normal result is never exactly halfway. A subnormal one can be: then the remainder is
exactly half the count, which :class:`DivideFixup` looks for. Only a power of two can have a tie right below
the smallest normal number, where the first quotient is normal; its reciprocal is exact and needs no help.
"""

from typing import Protocol

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import FRACTION_BITS, HALF, SMALLEST_SUBNORMAL, Float32
from daedal.hw.execute_unit.fpu.lane_op import LaneOp

COUNT_BITS = 24
"""Width of a count: all these integers are binary32 numbers."""


class LaneFunction(Protocol):
    """A lane as a function on 32-bit patterns, in Python."""

    def __call__(self, op: LaneOp, a: int, b: int, c: int, *, negate_product: bool = False) -> int: ...


class DivideFixup(wiring.Component):
    """Operands of the third pass of a division by a count; combinational, about four levels of logic.

    A quotient that is infinite or NaN, or a zero that left no remainder, is the result already (the dividend
    was infinite, NaN or zero). The remainder is then a NaN or a zero, too, so that MAX keeps ``c``, the quotient, of
    which every bit is right. A remainder of exactly half the count under a subnormal
    or zero quotient is a tie: the remainder times a rounded reciprocal would miss it, half the smallest
    subnormal does not, and the lane rounds it to even. Everything else is ``fma(r, y, q)``.

    Members
    -------
    fix : ``In(1)``; given : ``In(LaneOp)``
        Whether this is a third pass; the operation if it is not. The operands are then those of the next two.
    remainder, quotient : ``In(32)``
        Results of the second and the first pass. The quotient is needed here and as the lane's late ``c``.
    reciprocal : ``In(32)``
        1 / count, correctly rounded.
    count : ``In(24)``
        The divisor, at least 1.
    op : ``Out(LaneOp)``
        Operation of the third pass, ``FMA`` or ``MAX``.
    a, b : ``Out(32)``
        Its operands.
    """

    fix: In(1)
    given: In(LaneOp)
    remainder: In(32)
    quotient: In(32)
    reciprocal: In(32)
    count: In(COUNT_BITS)
    op: Out(LaneOp)
    a: Out(32)
    b: Out(32)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        remainder, quotient = Float32(self.remainder), Float32(self.quotient)
        done, tie = Signal(), Signal()
        m.d.comb += [
            done.eq(quotient.exponent.all() | (quotient.is_zero() & remainder.is_zero())),
            tie.eq(~quotient.hidden() & ~self.count[0] & (self.remainder[:31] == self.count[1:])),
            Value.cast(self.op).eq(Mux(self.fix, Mux(done, LaneOp.MAX, LaneOp.FMA), Value.cast(self.given))),
            # Half a count is subnormal: its exponent stays.
            self.a.eq(Cat(Mux(self.fix & tie, SMALLEST_SUBNORMAL, remainder.fraction), self.remainder[FRACTION_BITS:])),
            self.b.eq(Mux(self.fix, Mux(tie, HALF, self.reciprocal), self.quotient)),
        ]
        return m


def fix_up(remainder: int, quotient: int, reciprocal: int, count: int) -> tuple[LaneOp, int, int]:
    """What :class:`DivideFixup` answers: operation, ``a``, ``b`` of the third pass."""
    sign, magnitude = remainder & 1 << 31, remainder & ~(1 << 31)
    exponent = quotient >> 23 & 0xFF
    if exponent == 0xFF or (quotient << 1 & 0xFFFFFFFF == 0 and magnitude == 0):
        return LaneOp.MAX, remainder, reciprocal
    if exponent == 0 and count % 2 == 0 and magnitude == count // 2:
        return LaneOp.FMA, sign | SMALLEST_SUBNORMAL, HALF
    return LaneOp.FMA, remainder, reciprocal


def divide_passes(lane: LaneFunction, dividend: int, count: int, *, reciprocal: int, value: int) -> int:
    """Divide by a count as the sequencer does.

    ``dividend`` is a binary32 pattern, ``count`` an integer, ``reciprocal`` and ``value`` the patterns of
    its reciprocal and of itself. Raises ValueError unless ``1 <= count < 2**24``.
    """
    if not 1 <= count < 1 << COUNT_BITS:
        raise ValueError(f"Count must be at least 1 and below 2**{COUNT_BITS}, not {count!r}")
    quotient = lane(LaneOp.MUL, dividend, reciprocal, 0)
    remainder = lane(LaneOp.FMA, quotient, value, dividend, negate_product=True)
    op, a, b = fix_up(remainder, quotient, reciprocal, count)
    return lane(op, a, b, quotient)
