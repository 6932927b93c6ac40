"""One binary32 lane of the execute unit."""

from amaranth import Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.execute_unit.float_align import FloatAlign
from daedal.hw.execute_unit.float_format import register
from daedal.hw.execute_unit.float_normalize import FloatNormalize
from daedal.hw.execute_unit.float_product import FloatProduct
from daedal.hw.execute_unit.float_round import FloatRound
from daedal.hw.execute_unit.float_special import FloatSpecial, SpecialControl
from daedal.hw.execute_unit.lane_op import LaneOp

COMPARISONS = (LaneOp.MAX, LaneOp.MIN, LaneOp.GREATER, LaneOp.LESS, LaneOp.EQUAL)


class Lane(wiring.Component):
    """Binary32 arithmetic on two factors and a late addend, fully pipelined.

    IEEE-754, round to nearest even, subnormals kept on both sides, infinities, signed zeros; every NaN that
    arithmetic produces is 0x7fc00000. One operation of any kind per cycle, without stalling: ``a``, ``b`` and
    the controls are sampled in cycle 0, ``c`` in cycle ``join``, and ``o`` holds the result in cycle
    ``latency``, for one cycle. ``o`` is a register: a result may be given to ``c`` in the cycle it appears,
    so an accumulation takes ``latency - join`` cycles per step.

    Members
    -------
    op : ``In(LaneOp)``
        What to do.
    negate_product, negate_addend : ``In(1)``
        Change the sign of ``a * b``, of ``c`` before they are added.
    a, b : ``In(32)``
        Factors, with ``op``.
    c : ``In(32)``
        Addend or accumulator, ``join`` cycles after ``op``.
    o : ``Out(32)``
        Result, ``latency`` cycles after ``op``.
    """

    op: In(LaneOp)
    negate_product: In(1)
    negate_addend: In(1)
    a: In(32)
    b: In(32)
    c: In(32)
    o: Out(32)

    join = FloatProduct.latency
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
        control = register(m, self._decode(m), "control", cycles=self.join, shape=SpecialControl)
        m.d.comb += [
            product.a.eq(self.a),
            product.b.eq(self.b),
            product.negate.eq(self.negate_product),
            product.ignore_b.eq(self.op == LaneOp.ADD),
            product.rounds.eq(self.op == LaneOp.MUL_ADD),
            align.addend.eq(self.c),
            align.ignore.eq(control.ignores_addend),
            align.negate.eq(register(m, self.negate_addend, "negate_addend_late", cycles=self.join)),
            self.o.eq(rounding.o),
        ]
        self._specials(m, product, align, rounding, control)
        return m

    def _decode(self, m: Module) -> SpecialControl:
        """What the operation means to the special results."""
        control, op = Signal(SpecialControl), Value.cast(self.op)
        m.d.comb += [
            control.ignores_addend.eq(op == LaneOp.MUL),
            control.passes.eq(op.matches(LaneOp.MOVE, LaneOp.ABS, LaneOp.SELECT, *COMPARISONS)),
            control.absolute.eq(op == LaneOp.ABS),
            control.compares.eq(op.matches(*COMPARISONS)),
            control.smaller.eq(op.matches(LaneOp.MIN, LaneOp.LESS)),
            control.equals.eq(op == LaneOp.EQUAL),
            control.tells.eq(op.matches(LaneOp.GREATER, LaneOp.LESS, LaneOp.EQUAL)),
            control.selects.eq(op == LaneOp.SELECT),
            control.chosen.eq(self.b[:31].any()),
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
        wait = FloatNormalize.latency
        m.d.comb += [
            special.a.eq(register(m, self.a, "a_late", cycles=self.join)),
            special.c.eq(self.c),
            special.control.eq(control),
            special.addend_sign.eq(align.sign),
            special.product_sign.eq(product.o.sign),
            special.product_nan.eq(product.o.nan),
            special.product_infinite.eq(product.o.infinite),
            rounding.special.eq(register(m, special.o, "special_late", cycles=wait)),
            rounding.is_special.eq(register(m, special.is_special, "is_special_late", cycles=wait)),
        ]
