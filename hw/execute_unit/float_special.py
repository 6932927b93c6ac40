"""Results that a lane does not compute: moved and compared values, infinities, NaNs."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.float_format import CANONICAL_NAN, INFINITY, ONE, Float32, register


class SpecialControl(data.Struct):
    """What to do with ``a`` and ``c`` besides adding; all zero for arithmetic on both."""

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
    """With ``passes``: ``a`` only if ``b`` is not a zero."""


class FloatSpecial(wiring.Component):
    """Decides whether a result is special, and which; one per cycle, ``latency`` cycles.

    Members
    -------
    a, c : ``In(32)``
        First factor and addend.
    control : ``In(SpecialControl)``
        What to do with them.
    a_zero, a_nan, b_zero : ``In(1)``
        What is known of the factors.
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
    a_zero: In(1)
    a_nan: In(1)
    b_zero: In(1)
    product_sign: In(1)
    product_infinite: In(1)
    product_nan: In(1)
    addend_sign: In(1)
    o: Out(32)
    is_special: Out(1)

    latency = 2

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        c = Float32(self.c)
        c_infinite, c_nan = c.is_infinite(), c.is_nan()
        opposed = self.product_sign ^ self.addend_sign
        nan = self.product_nan | c_nan | (self.product_infinite & c_infinite & opposed)
        sign = Mux(self.product_infinite, self.product_sign, self.addend_sign)
        nan, sign = register(m, nan, "nan"), register(m, sign, "infinity_sign")
        infinite = register(m, self.product_infinite | c_infinite, "infinite")
        loses = self._loses(m, c_nan)

        a = Float32(register(m, self.a, "a_late"))
        moved = Cat(a.as_value()[:31], a.sign & ~self._control.absolute)
        told, passes = Mux(loses, 0, Const(ONE, 32)), self._control.passes
        passed = Mux(self._control.tells, told, Mux(loses, self._c, moved))
        computed = Mux(nan, CANONICAL_NAN, Cat(Const(INFINITY, 31), sign))
        m.d.comb += [
            self.o.eq(register(m, Mux(passes, passed, computed), "special")),
            self.is_special.eq(register(m, passes | nan | infinite, "any_special")),
        ]
        return m

    def _loses(self, m: Module, c_nan: Value) -> Value:
        """Whether ``a`` is not the result that passes, in the second cycle."""
        self._control = control = register(m, self.control, "control_late", shape=SpecialControl)
        self._c = register(m, self.c, "c_late")
        unordered = register(m, self.a_nan | c_nan, "unordered")
        wins, loses = self._beats(m) & ~unordered, Signal()
        m.d.comb += loses.eq((control.compares & ~wins) | (control.selects & register(m, self.b_zero, "b_zero_late")))
        return loses

    def _beats(self, m: Module) -> Value:
        """Whether ``a`` beats (equals) ``c``, in the second cycle, if none is a NaN; zeros are equal.

        The comparisons of the magnitudes are registered.
        """
        control, a_sign, c_sign = self._control, register(m, self.a[31], "a_sign"), self._c[31]
        above = register(m, self.a[:31] > self.c[:31], "above")
        same = self.a[:31] == self.c[:31]
        equal, zeros = register(m, same, "equal"), register(m, same & self.a_zero, "zeros")
        turned = a_sign ^ control.smaller
        by_magnitude = Mux(turned, ~(above | equal), above)
        by_sign = ~turned & ~zeros
        alike = a_sign == c_sign
        beats = Mux(alike, by_magnitude, by_sign)
        return Mux(control.equals, (equal & alike) | zeros, beats)
