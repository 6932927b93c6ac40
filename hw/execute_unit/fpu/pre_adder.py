"""An adder in front of a lane: what is added to the addend, rounded, before the lane adds its product."""

from amaranth import Module
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.execute_unit.fpu.float_align import FloatAlign
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.float_normalize import FloatNormalize
from daedal.hw.execute_unit.fpu.float_product import ProductSignature
from daedal.hw.execute_unit.fpu.float_round import FloatRound
from daedal.hw.execute_unit.fpu.float_special import FloatSpecial


class PreAdder(wiring.Component):
    """The second half of a lane, for a product that others share; fully pipelined.

    Members
    -------
    product : ``In(ProductSignature)``
        A rounded product.
    adds : ``In(1)``
        With it: add it to ``c``; else the result is ``c``, every bit of it.
    c : ``In(32)``; chain : ``In(1)``; result : ``In(32)``
        With it: the other operand; under ``chain`` it is ``result`` instead.
    o : ``Out(32)``
        Their sum, ``latency`` cycles later.
    """

    product: In(ProductSignature)
    adds: In(1)
    c: In(32)
    chain: In(1)
    result: In(32)
    o: Out(32)

    latency = FloatAlign.latency + FloatNormalize.latency + FloatRound.latency

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.align = align = FloatAlign()
        m.submodules.normalize = normalize = FloatNormalize()
        m.submodules.round = rounding = FloatRound()
        m.submodules.special = special = FloatSpecial()
        connect(m, flipped(self.product), align.product)
        connect(m, align.o, normalize.i)
        connect(m, normalize.o, rounding.i)
        wait = FloatAlign.latency + FloatNormalize.latency - FloatSpecial.latency
        m.d.comb += [
            align.given.eq(self.c),
            align.result.eq(self.result),
            align.chain.eq(self.chain),
            special.c.eq(align.addend),
            # As a selection by a zero.
            special.control.passes.eq(~self.adds),
            special.control.selects.eq(~self.adds),
            special.b_zero.eq(1),
            special.addend_sign.eq(align.sign),
            special.product_sign.eq(self.product.sign),
            special.product_nan.eq(self.product.nan),
            special.product_infinite.eq(self.product.infinite),
            rounding.special.eq(register(m, special.o, "special_late", cycles=wait)),
            rounding.is_special.eq(register(m, special.is_special, "is_special_late", cycles=wait)),
            self.o.eq(rounding.o),
        ]
        return m
