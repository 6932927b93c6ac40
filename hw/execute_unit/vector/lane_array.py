"""All lanes, and the last step of a division in front of them."""

from amaranth import Cat, Module
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import LOW_BITS
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.float_shorten import FloatShorten
from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import SELECT
from daedal.hw.isa.elements import LANE


class LaneArray(wiring.Component):
    """``config.lanes`` lanes that work on one beat per cycle.

    Members
    -------
    op, negate_product, negate_addend, low, cuts, carries
        What to do with the beat that is issued in this cycle: see ``Lane``.
    kind : ``In(2)``, if rows have several types
        With ``op``: the type that ``a`` is rounded to before all else, a ``LengthField``.
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
                "low": In(LOW_BITS),
                "cuts": In(1),
                "carries": In(1),
                **({"kind": In(2)} if config.rounds else {}),
                "a": In(width),
                "b": In(width),
                "c": In(width),
                "chain": In(config.lanes),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        op = register(m, self.op, "op_now", cycles=SELECT, shape=LaneOp)
        negate_product = register(m, self.negate_product, "negate_product_now", cycles=SELECT)
        negate_addend = register(m, self.negate_addend, "negate_addend_now", cycles=SELECT)
        division = register(m, Cat(self.low, self.cuts, self.carries), "division_now", cycles=SELECT)
        operands = [self.a.word_select(n, LANE.bits) for n in range(self.config.lanes)]
        if self.config.rounds:
            kind = register(m, self.kind, "kind_now", cycles=SELECT)
            for n, a in enumerate(operands):
                m.submodules[f"shorten{n}"] = shorten = FloatShorten(self.config)
                m.d.comb += [shorten.i.eq(a), shorten.kind.eq(kind)]
                operands[n] = shorten.o
        for n in range(self.config.lanes):
            m.submodules[f"lane{n}"] = lane = Lane()
            m.d.comb += [
                lane.op.eq(op),
                lane.negate_product.eq(negate_product),
                lane.negate_addend.eq(negate_addend),
                Cat(lane.low, lane.cuts, lane.carries).eq(division),
                lane.a.eq(operands[n]),
                lane.b.eq(self.b.word_select(n, LANE.bits)),
                lane.c.eq(self.c.word_select(n, LANE.bits)),
                lane.chain.eq(self.chain[n]),
                self.o.word_select(n, LANE.bits).eq(lane.o),
            ]
        return m
