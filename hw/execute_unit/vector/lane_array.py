"""All lanes, and the last step of a division in front of them."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import COUNT_BITS, DivideFixup
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import SELECT
from daedal.hw.isa.elements import LANE


class LaneArray(wiring.Component):
    """``config.lanes`` lanes that work on one beat per cycle.

    Members
    -------
    op, negate_product, negate_addend, fix
        What to do with the beat that is issued in this cycle. Under ``fix``, ``a`` and ``b`` are remainder
        and quotient of a division, and the operands are what ``DivideFixup`` makes of them.
    reciprocal : ``In(32)``; count : ``In(24)``
        Those of the division; stable while its beats pass.
    a, b : ``In(8 * lane_bytes)``
        Operands, ``schedule.SELECT`` cycles after the issue.
    c : ``In(8 * lane_bytes)``
        Addend, ``schedule.ADDEND`` cycles after the issue.
    chain : ``In(lanes)``
        With ``c``, for each lane: its own result of this cycle is the addend instead.
    o : ``Out(8 * lane_bytes)``
        Results, ``schedule.RESULT`` cycles after the issue.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        width = 8 * config.lane_bytes
        super().__init__(
            {
                "op": In(LaneOp),
                "negate_product": In(1),
                "negate_addend": In(1),
                "fix": In(1),
                "reciprocal": In(LANE.bits),
                "count": In(COUNT_BITS),
                "a": In(width),
                "b": In(width),
                "c": In(width),
                "chain": In(config.lanes),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        fix = register(m, self.fix, "fix_now", cycles=SELECT)
        op = register(m, self.op, "op_now", cycles=SELECT, shape=LaneOp)
        negate_product = register(m, self.negate_product, "negate_product_now", cycles=SELECT)
        negate_addend = register(m, self.negate_addend, "negate_addend_now", cycles=SELECT)
        for n in range(self.config.lanes):
            m.submodules[f"lane{n}"] = lane = Lane()
            m.d.comb += [
                lane.negate_product.eq(negate_product),
                lane.negate_addend.eq(negate_addend),
                lane.c.eq(self.c.word_select(n, LANE.bits)),
                lane.chain.eq(self.chain[n]),
                self.o.word_select(n, LANE.bits).eq(lane.o),
            ]
            self._operands(m, n, lane, fix, op)
        return m

    def _operands(self, m: Module, n: int, lane: Lane, fix: Signal, op: Signal) -> None:
        """The last choice before a lane: the operands, or the fixed ones."""
        m.submodules[f"fixup{n}"] = fixup = DivideFixup()
        a, b = self.a.word_select(n, LANE.bits), self.b.word_select(n, LANE.bits)
        m.d.comb += [
            fixup.fix.eq(fix),
            fixup.given.eq(op),
            fixup.remainder.eq(a),
            fixup.quotient.eq(b),
            fixup.reciprocal.eq(self.reciprocal),
            fixup.count.eq(self.count),
            lane.a.eq(fixup.a),
            lane.b.eq(fixup.b),
            lane.op.eq(fixup.op),
        ]
