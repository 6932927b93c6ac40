"""From elements of 16 bits, and numbers of 8, to binary32, exactly."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, EXPONENT_SPECIAL
from daedal.hw.execute_unit.stage_layouts import kind_bits
from daedal.hw.isa.elements import FLOATS8, LENGTH_ELEMENTS
from daedal.hw.isa.words import LengthField

_BIAS = EXPONENT_BIAS - 15
"""What is added to an exponent of binary16."""

_MORE = 8
"""What is added more to one of 4 bits, whose bias is less by so much."""


class FloatWiden(wiring.Component):
    """One element, combinational; a NaN keeps its sign and payload.

    Members
    -------
    i : ``In(16)``; kind : ``In(kind_bits(config))``
        The element and its type, a ``LengthField`` but ELEMENTS; a number of 8 bits is in the lower half.
    o : ``Out(32)``
        The binary32.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"i": In(16), "kind": In(kind_bits(config)), "o": Out(32)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        from_bfloat16 = Cat(Const(0, 16), self.i)
        if not self.config.binary16:
            m.d.comb += self.o.eq(from_bfloat16)
        elif not self.config.bfloat16:
            m.d.comb += self.o.eq(self._from_binary16(m))
        else:
            kinds = [LengthField.BINARY16.value, *(kind.value for kind in self._eights())]
            m.d.comb += self.o.eq(Mux(self.kind.matches(*kinds), self._from_binary16(m), from_bfloat16))
        return m

    def _eights(self) -> list[LengthField]:
        """Types of 8 bits that there are."""
        return [kind for kind in self.config.length_fields if LENGTH_ELEMENTS[kind] in FLOATS8]

    def _in_half(self, m: Module) -> tuple[Value, Value | int, Value | bool]:
        """An element as binary16, what is added to its exponent, and whether that may be a special one."""
        if not self._eights():
            return self.i, _BIAS, True
        few, many, half = Signal(), Signal(), Signal(16)
        code, sign = self.i[:7], self.i[7]
        m.d.comb += [
            few.eq(self.kind == LengthField.FLOAT8_E4.value),
            many.eq(self.kind == LengthField.FLOAT8_E5.value),
            half.eq(self.i),
        ]
        with m.If(few):
            m.d.comb += half.eq(Cat(Const(0, 7), code, Const(0, 1), sign))
        with m.If(many):
            m.d.comb += half.eq(Cat(Const(0, 8), code, sign))
        return half, _BIAS | Cat(Const(0, exact_log2(_MORE)), few), ~(few | many)

    def _from_binary16(self, m: Module) -> Value:
        half, bias, has_special = self._in_half(m)
        fraction, exponent, sign = half[:10], half[10:15], half[15]
        # A subnormal's leading one goes to the top, in steps of 8, 4, 2, 1 places.
        zeros, shifted = Signal(4), fraction
        for step in (3, 2, 1, 0):
            places, stage = 1 << step, Signal(10, name=f"shifted{step}")
            m.d.comb += [
                zeros[step].eq(~shifted[10 - places :].any()),
                stage.eq(Mux(zeros[step], shifted << places, shifted)),
            ]
            shifted = stage
        is_small, is_special = ~exponent.any(), exponent.all()
        if has_special is not True:
            is_special &= has_special
        wide = Signal(8)
        m.d.comb += wide.eq(
            Mux(
                is_small,
                Mux(shifted[9], bias - zeros, 0),
                Mux(is_special, EXPONENT_SPECIAL, exponent + bias),
            )
        )
        return Cat(Const(0, 13), Mux(is_small, shifted << 1, fraction)[:10], wide, sign)
