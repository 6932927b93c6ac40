"""Results that a lane does not compute: moved and compared values, infinities, NaNs."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.execute_unit.fpu.float_format import CANONICAL_NAN, INFINITY, ONE, Float32, register


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

    latency = 3

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        control = register(m, self.control, "control_late", shape=SpecialControl)
        a, c = (Float32(register(m, each, f"{each.name}_late")) for each in (self.a, self.c))
        moved = Cat(a.as_value()[:31], a.sign & ~control.absolute)
        won = register(m, Mux(control.tells, ONE, moved), "won")
        lost = register(m, Mux(control.tells, 0, c.as_value()), "lost")
        loses, passes = self._loses(m, control, a, c), register(m, control.passes, "passes")
        computed, not_finite = self._compute(m, c)
        m.d.comb += [
            self.o.eq(register(m, Mux(passes, Mux(loses, lost, won), computed), "special")),
            self.is_special.eq(register(m, passes | not_finite, "any_special")),
        ]
        return m

    def _compute(self, m: Module, c: Float32) -> tuple[Value, Value]:
        """The NaN or the infinity that the sum is, if it is one, and whether it is, in the third cycle."""
        flags = Cat(self.product_infinite, self.product_nan, self.product_sign, self.addend_sign)
        product_infinite, product_nan, product_sign, addend_sign = register(m, flags, "flags_late")
        c_infinite, opposed = c.is_infinite(), product_sign ^ addend_sign
        nan = register(m, product_nan | c.is_nan() | (product_infinite & c_infinite & opposed), "nan")
        sign = register(m, Mux(product_infinite, product_sign, addend_sign), "infinity_sign")
        infinite = register(m, product_infinite | c_infinite, "infinite")
        return Mux(nan, CANONICAL_NAN, Cat(Const(INFINITY, 31), sign)), nan | infinite

    def _loses(self, m: Module, control: Any, a: Float32, c: Float32) -> Value:
        """Whether ``a`` is not the result that passes, in the third cycle.

        What follows if its magnitude is above that of ``c``, if they are the same, and if it is below, is found while
        they are compared.
        """
        a_nan, a_zero, b_zero = register(m, Cat(self.a_nan, self.a_zero, self.b_zero), "factors_late")
        unordered, not_selected = a_nan | c.is_nan(), control.selects & b_zero
        above, same, below = (
            register(m, (control.compares & (unordered | ~beats)) | not_selected, f"loses_{name}")
            for name, beats in self._beats(control, a, c, a_zero).items()
        )
        is_above = register(m, a.as_value()[:31] > c.as_value()[:31], "above")
        is_same = register(m, a.as_value()[:31] == c.as_value()[:31], "same")
        return Mux(is_above, above, Mux(is_same, same, below))

    def _beats(self, control: Any, a: Float32, c: Float32, a_zero: Value) -> dict[str, Value]:
        """Whether ``a`` beats (equals) ``c``, for each order of their magnitudes, if none is a NaN; zeros are equal."""
        turned, alike = a.sign ^ control.smaller, a.sign == c.sign
        by_sign = ~turned & ~alike
        return {
            "above": ~turned & ~control.equals,
            "same": Mux(control.equals, alike | a_zero, by_sign & ~a_zero),
            "below": Mux(alike, turned, by_sign) & ~control.equals,
        }
