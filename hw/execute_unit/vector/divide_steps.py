"""The passes of DIVIDE_COUNT."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import COUNT_BITS
from daedal.hw.execute_unit.fpu.float_format import FRACTION_BITS
from daedal.hw.execute_unit.fpu.float_reciprocal import Reciprocal
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.stage_layouts import issue_layout
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.lib.fsm_names import name_states


class DivideSteps(wiring.Component):
    """Makes the passes that divide a register by a count, as ``float_divide`` says.

    One pass does for a count that is a power of two, and for 0, which moves the dividend.

    The quotient goes to the destination's copy for port b only, the remainder to that for port a, so that
    destination and dividend may be the same register and no other is needed: the dividend is read through
    port a before the remainder comes, and through port c.

    The count is popped as soon as it is there; the first pass follows 1 or ``Reciprocal.latency`` cycles
    later.

    Members
    -------
    active : ``In(1)``; row : ``In(issue_layout(config))``
        A division waits: operand ``a``, the destination and the row are valid.
    count : ``In(stream.Signature(24))``
        Counts to divide by.
    o : ``Out(stream.Signature(issue_layout(config)))``
        The passes.
    done : ``Out(1)``
        The last pass is taken in this cycle.
    waits : ``Out(1)``
        There is no count yet.
    fix_reciprocal, fix_count
        For the third pass; stable while that is in the lanes.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "active": In(1),
                "row": In(issue_layout(config)),
                "count": In(stream.Signature(COUNT_BITS)),
                "o": Out(stream.Signature(issue_layout(config))),
                "done": Out(1),
                "waits": Out(1),
                "fix_reciprocal": Out(LANE.bits),
                "fix_count": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.reciprocal = reciprocal = Reciprocal()
        self._answer, self._taken, self._ends = reciprocal.o.payload, Signal(), Signal()
        self._count, ended = Signal(COUNT_BITS), Signal()
        m.d.sync += ended.eq(self._ends)
        with m.If(ended):
            m.d.sync += [self.fix_reciprocal.eq(self._answer.reciprocal), self.fix_count.eq(self._count)]
        zero = self.count.payload == 0
        m.d.comb += [
            self.o.payload.eq(self.row),
            self._taken.eq(self.o.valid & self.o.ready),
            reciprocal.i.payload.eq(self.count.payload),
            reciprocal.o.ready.eq(self.done),
        ]
        with m.FSM() as fsm:
            with m.State("COUNT"):
                m.d.comb += [
                    self.waits.eq(self.active & ~self.count.valid),
                    reciprocal.i.valid.eq(self.active & self.count.valid & ~zero),
                    self.count.ready.eq(self.active & (zero | reciprocal.i.ready)),
                ]
                m.d.sync += self._count.eq(self.count.payload)
                with m.If(self.count.valid & self.count.ready):
                    with m.If(zero):
                        m.next = "MOVE"
                    with m.Else():
                        m.next = "QUOTIENT"
            self._move(m)
            self._quotient(m, reciprocal.o.valid)
            self._remainder(m)
            self._fix(m)
        name_states(fsm, "DivideState")
        return m

    def _move(self, m: Module) -> None:
        with m.State("MOVE"):
            m.d.comb += [self.o.valid.eq(1), self.o.payload.op.eq(LaneOp.MOVE), self.done.eq(self._taken)]
            with m.If(self._taken):
                m.next = "COUNT"

    def _quotient(self, m: Module, ready: Signal) -> None:
        """Quotient a * y, into the destination for port b; for a power of two it is exact.

        The reciprocal would tell the same, but comes out of an adder. The fraction is there long before the answer.
        """
        o, exact = self.o.payload, Signal()
        m.d.sync += exact.eq(~self._answer.value[:FRACTION_BITS].any())
        with m.State("QUOTIENT"):
            m.d.comb += [
                self.o.valid.eq(ready), o.op.eq(LaneOp.MUL), o.partial.eq(~exact),
                *self._scalar(o.b, self._answer.reciprocal), *self._writes(a=exact, b=1, rest=exact),
                self.done.eq(self._taken & exact),
            ]  # fmt: skip
            with m.If(self._taken):
                m.next = "REMAINDER"
                with m.If(exact):
                    m.next = "COUNT"

    def _remainder(self, m: Module) -> None:
        """Remainder a - count * q, into the destination for port a; q is the same where port b reads it."""
        o, row = self.o.payload, self.row
        with m.State("REMAINDER"):
            m.d.comb += [
                self.o.valid.eq(1), o.op.eq(LaneOp.FMA), o.partial.eq(1), o.negate_product.eq(1),
                o.c.eq(row.a.register), o.c_used.eq(~row.a.zero),
                *self._scalar(o.a, self._answer.value), *self._result(o.b), *self._writes(a=1),
            ]  # fmt: skip
            with m.If(self._taken):
                m.next = "FIX"

    def _fix(self, m: Module) -> None:
        """Last pass: r * y + q, or what the fix-up makes of it.

        Its constants change a cycle after it is taken, when the last beat of the division before, which may have been
        issued two cycles ago, is past the fix-up. The answer is still there then.
        """
        o = self.o.payload
        with m.State("FIX"):
            m.d.comb += [
                self.o.valid.eq(1), o.op.eq(LaneOp.FMA), o.fix.eq(1), *self._result(o.a), *self._result(o.b),
                self.done.eq(self._taken), self._ends.eq(self._taken),
            ]  # fmt: skip
            with m.If(self._taken):
                m.next = "COUNT"

    def _scalar(self, operand: data.View, value: Signal) -> list[object]:
        """``operand`` is ``value`` for all elements."""
        return [operand.kind.eq(OperandKind.SCALAR), operand.zero.eq(0), self.o.payload.scalar.eq(value)]

    def _result(self, operand: data.View) -> list[object]:
        """``operand`` is the destination, as an earlier pass left it for that port."""
        return [
            operand.kind.eq(OperandKind.REGISTER), operand.zero.eq(0),
            operand.register.eq(self.row.destination),
        ]  # fmt: skip

    def _writes(self, *, a: ValueLike = 0, b: ValueLike = 0, rest: ValueLike = 0) -> list[object]:
        copies = self.o.payload.copies
        return [copies.a.eq(a), copies.b.eq(b), copies.rest.eq(rest)]
