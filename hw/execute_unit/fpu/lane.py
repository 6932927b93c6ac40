"""One binary32 lane of the execute unit."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.execute_unit.fpu.float_align import FloatAlign
from daedal.hw.execute_unit.fpu.float_divide import LOW_BITS
from daedal.hw.execute_unit.fpu.float_format import ONE, Float32, register
from daedal.hw.execute_unit.fpu.float_normalize import FloatNormalize
from daedal.hw.execute_unit.fpu.float_product import FloatProduct
from daedal.hw.execute_unit.fpu.float_round import FloatRound
from daedal.hw.execute_unit.fpu.float_special import FloatSpecial, SpecialControl
from daedal.hw.execute_unit.fpu.lane_op import LaneOp

COMPARISONS = (LaneOp.MAX, LaneOp.MIN, LaneOp.GREATER, LaneOp.LESS, LaneOp.EQUAL)


class Lane(wiring.Component):
    """Binary32 arithmetic on two factors and a late addend, fully pipelined.

    IEEE-754, round to nearest even, subnormals kept on both sides, infinities, signed zeros; every NaN that
    arithmetic produces is 0x7fc00000. One operation of any kind per cycle, without stalling: ``a``, ``b`` and
    the controls are sampled in cycle 0, ``c`` and ``chain`` in cycle ``join``, and ``o`` holds the result in
    cycle ``latency``, for one cycle. A result may be the addend in the cycle it appears, so an accumulation
    takes ``latency - join`` cycles per step.

    Members
    -------
    op : ``In(LaneOp)``
        What to do.
    negate_product, negate_addend : ``In(1)``
        Change the sign of ``a * b``, of ``c`` before they are added.
    a, b : ``In(32)``
        Factors, with ``op``.
    low : ``In(LOW_BITS)``; cuts, carries : ``In(1)``
        With them; for ``MUL`` as part of a division, else 0: see ``FloatProduct``.
    c : ``In(32)``
        Addend or accumulator, ``join`` cycles after ``op``; +0.0 for MUL.
    chain : ``In(1)``
        In place of ``c``, with it: what ``o`` holds in this cycle.
    o : ``Out(32)``
        Result, ``latency`` cycles after ``op``.
    """

    op: In(LaneOp)
    negate_product: In(1)
    negate_addend: In(1)
    a: In(32)
    b: In(32)
    low: In(LOW_BITS)
    cuts: In(1)
    carries: In(1)
    c: In(32)
    chain: In(1)
    o: Out(32)

    join = 1 + FloatProduct.latency
    latency = join + FloatAlign.latency + FloatNormalize.latency + FloatRound.latency

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.product = product = FloatProduct()
        m.submodules.align = align = FloatAlign()
        m.submodules.normalize = normalize = FloatNormalize()
        m.submodules.round = rounding = FloatRound()
        connect(m, product.o, align.product)
        connect(m, align.o, normalize.i)
        connect(m, normalize.o, rounding.i)
        op, negate = register(m, Value.cast(self.op), "op_now"), Cat(self.negate_product, self.negate_addend)
        negate_product, negate_addend = register(m, negate, "negate")
        # A multiplication by 1 goes the way of all products.
        is_add = self.op == LaneOp.ADD
        m.d.comb += [
            product.a.eq(register(m, self.a, "factor_a")),
            product.b.eq(register(m, Mux(is_add, ONE, self.b), "factor_b")),
            Cat(product.low, product.cuts, product.carries).eq(
                register(m, Cat(self.low, self.cuts, self.carries), "long_factor")
            ),
            product.a_hidden.eq(register(m, Float32(self.a).hidden(), "hidden_a")),
            product.b_hidden.eq(register(m, is_add | Float32(self.b).hidden(), "hidden_b")),
            product.negate.eq(negate_product),
            product.rounds.eq(op == LaneOp.MUL_ADD),
            align.given.eq(self.c),
            align.result.eq(rounding.o),
            align.chain.eq(self.chain),
            align.negate.eq(register(m, negate_addend, "negate_addend_late", cycles=FloatProduct.latency)),
            self.o.eq(rounding.o),
        ]
        late = register(m, op, "op_late", cycles=FloatProduct.latency - 1)
        m.d.comb += align.ignore.eq(register(m, late == LaneOp.MUL, "ignores_addend"))
        self._specials(m, product, align, rounding, register(m, self._decode(m, late), "control", shape=SpecialControl))
        return m

    def _decode(self, m: Module, op: Value) -> SpecialControl:
        """What the operation means to the special results."""
        control = Signal(SpecialControl)
        m.d.comb += [
            control.passes.eq(op.matches(LaneOp.MOVE, LaneOp.ABS, LaneOp.SELECT, *COMPARISONS)),
            control.absolute.eq(op == LaneOp.ABS),
            control.compares.eq(op.matches(*COMPARISONS)),
            control.smaller.eq(op.matches(LaneOp.MIN, LaneOp.LESS)),
            control.equals.eq(op == LaneOp.EQUAL),
            control.tells.eq(op.matches(LaneOp.GREATER, LaneOp.LESS, LaneOp.EQUAL)),
            control.selects.eq(op == LaneOp.SELECT),
        ]
        return control

    def _specials(
        self,
        m: Module,
        product: FloatProduct,
        align: FloatAlign,
        rounding: FloatRound,
        control: SpecialControl,
    ) -> None:
        """Put the special results beside the sum."""
        m.submodules.special = special = FloatSpecial()
        wait = FloatAlign.latency + FloatNormalize.latency - FloatSpecial.latency
        m.d.comb += [
            special.a.eq(register(m, product.a, "a_late", cycles=FloatProduct.latency)),
            special.c.eq(align.addend),
            special.control.eq(control),
            special.a_zero.eq(product.a_zero),
            special.a_nan.eq(product.a_nan),
            special.b_zero.eq(product.b_zero),
            special.addend_sign.eq(align.sign),
            special.product_sign.eq(product.o.sign),
            special.product_nan.eq(product.o.nan),
            special.product_infinite.eq(product.o.infinite),
            rounding.special.eq(register(m, special.o, "special_late", cycles=wait)),
            rounding.is_special.eq(register(m, special.is_special, "is_special_late", cycles=wait)),
        ]
