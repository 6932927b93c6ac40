"""Results that a lane does not compute: moved and compared values, infinities, NaNs."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.float_format import CANONICAL_NAN, INFINITY, ONE, Float32, register


class SpecialControl(data.Struct):
    """What to do with ``a`` and ``c`` besides adding; all zero for arithmetic on both."""

    ignores_addend: 1
    """``c`` takes no part."""
    passes: 1
    """The result is ``a`` or ``c`` itself."""
    absolute: 1
    """With ``passes``: clear the sign."""
    compares: 1
    """With ``passes``: ``a`` only if it is greater than ``c``."""
    smaller: 1
    """With ``compares``: less instead of greater."""
    equals: 1
    """With ``compares``: equal instead of greater."""
    tells: 1
    """With ``compares``: the result is 1.0 or +0.0 instead of ``a`` or ``c``."""
    selects: 1
    """With ``passes``: ``a`` only if it is ``chosen``."""
    chosen: 1


class FloatSpecial(wiring.Component):
    """Decides whether a result is special, and which; one per cycle, ``latency`` cycles.

    Members
    -------
    a, c : ``In(32)``
        First factor and addend.
    control : ``In(SpecialControl)``
        What to do with them.
    product_sign, product_infinite, product_nan : ``In(1)``
        What is known of the product.
    addend_sign : ``In(1)``
        Sign of the addend as it is added.
    o : ``Out(32)``
        The special result.
    is_special : ``Out(1)``
        Whether it is the result.
    """

    a: In(32)
    c: In(32)
    control: In(SpecialControl)
    product_sign: In(1)
    product_infinite: In(1)
    product_nan: In(1)
    addend_sign: In(1)
    o: Out(32)
    is_special: Out(1)

    latency = 2

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        a, c = Float32(self.a), Float32(self.c)
        added = ~self.control.ignores_addend
        c_infinite = c.is_infinite() & added
        opposed = self.product_sign ^ self.addend_sign
        nan = self.product_nan | (c.is_nan() & added) | (self.product_infinite & c_infinite & opposed)
        sign = Mux(self.product_infinite, self.product_sign, self.addend_sign)

        moved = Cat(self.a[:31], a.sign & ~self.control.absolute)
        wins, loses = self._wins(m, a, c), Signal()
        m.d.comb += loses.eq((self.control.compares & ~wins) | (self.control.selects & ~self.control.chosen))
        told = Mux(loses, 0, Const(ONE, 32))
        passed = register(m, Mux(self.control.tells, told, Mux(loses, self.c, moved)), "passed")
        passes = register(m, self.control.passes, "passes")
        nan, sign = register(m, nan, "nan"), register(m, sign, "infinity_sign")
        infinite = register(m, self.product_infinite | c_infinite, "infinite")
        computed = Mux(nan, CANONICAL_NAN, Cat(Const(INFINITY, 31), sign))
        m.d.comb += [
            self.o.eq(register(m, Mux(passes, passed, computed), "special")),
            self.is_special.eq(register(m, passes | nan | infinite, "any_special")),
        ]
        return m

    def _wins(self, m: Module, a: Float32, c: Float32) -> Value:
        """Whether ``a`` beats (equals) ``c``; a NaN beats nothing and is beaten by nothing, zeros are equal."""
        above, equal = Signal(), Signal()
        m.d.comb += [above.eq(self.a[:31] > self.c[:31]), equal.eq(self.a[:31] == self.c[:31])]
        turned = a.sign ^ self.control.smaller
        by_magnitude = Mux(turned, ~(above | equal), above)
        zeros = equal & a.is_zero()
        by_sign = ~turned & ~zeros
        alike = a.sign == c.sign
        beats = Mux(alike, by_magnitude, by_sign)
        return ~a.is_nan() & ~c.is_nan() & Mux(self.control.equals, (equal & alike) | zeros, beats)
