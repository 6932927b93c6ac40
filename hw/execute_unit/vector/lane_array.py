"""All lanes, and what is in front of them: roundings, pre-adders."""

from amaranth import Cat, Module, Mux, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import LOW_BITS
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.float_product import ProductSignature
from daedal.hw.execute_unit.fpu.float_shorten import FloatShorten
from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.fpu.pre_adder import PreAdder
from daedal.hw.execute_unit.latencies import SELECT, latencies
from daedal.hw.execute_unit.vector.head_products import HeadProducts
from daedal.hw.isa.elements import HEAD_WORDS, LANE
from daedal.hw.lib.delay import delayed


class LaneArray(wiring.Component):
    """``config.lanes`` lanes that work on one beat per cycle.

    Members
    -------
    op, negate_product, negate_addend, low, cuts, carries
        What to do with the beat that is issued in this cycle: see ``Lane``.
    kind : ``In(2)``, if rows have several types
        With ``op``: the type that ``a`` is rounded to before all else, a ``LengthField``.
    affine, plain : ``In(1)``; head : ``In(64)``, with AFFINE
        With ``op``: ``b`` is the row's weight, or that is 1.0; its scale and bias. The scale times the weight is the
        second factor; the bias times the weight is what pre-adders add before.
    a, b : ``In(8 * lane_bytes)``
        Operands, ``SELECT`` cycles after the issue.
    c : ``In(8 * lane_bytes)``
        Addend, ``addend`` cycles after the issue.
    chain : ``In(lanes)``
        With ``c``, for each lane: its own result of this cycle is the addend instead.
    o : ``Out(8 * lane_bytes)``
        Results, ``result`` cycles after the issue.
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
                **({"affine": In(1), "plain": In(1), "head": In(HEAD_WORDS * LANE.bits)} if config.has_affine else {}),
                "a": In(width),
                "b": In(width),
                "c": In(width),
                "chain": In(config.lanes),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        wait = latencies(self.config).lane
        op = register(m, self.op, "op_now", cycles=wait, shape=LaneOp)
        negate_product = register(m, self.negate_product, "negate_product_now", cycles=wait)
        negate_addend = register(m, self.negate_addend, "negate_addend_now", cycles=wait)
        division = register(m, Cat(self.low, self.cuts, self.carries), "division_now", cycles=wait)
        first: Value = self.a
        if wait > SELECT:
            first = delayed(m, self.a, "a_late", cycles=wait - SELECT)
        operands = [first.word_select(n, LANE.bits) for n in range(self.config.lanes)]
        if self.config.rounds:
            kind = register(m, self.kind, "kind_now", cycles=wait)
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
        if self.config.has_affine:
            self._scale(m)
        return m

    def _scale(self, m: Module) -> None:
        """Scales as second factors, and addends by way of the pre-adders, if there are any."""
        times = latencies(self.config)
        m.submodules.products = products = HeadProducts(biases=bool(self.config.preadder))
        second = delayed(m, self.b, "b_late", cycles=times.lane - SELECT)
        affine = register(m, self.affine, "affine_now", cycles=times.lane)
        head = register(m, self.head, "head_now", cycles=SELECT)
        m.d.comb += [
            Cat(products.scale, products.bias).eq(head),
            products.weight.eq(self.b[: LANE.bits]),
            products.plain.eq(register(m, self.plain, "plain_now", cycles=SELECT)),
        ]
        for n in range(self.config.lanes):
            lane = getattr(m.submodules, f"lane{n}")
            before = self._add_before(m, n, products, affine) if self.config.preadder else None
            m.d.comb += lane.b.eq(Mux(affine, products.scaled, second.word_select(n, LANE.bits)))
            if before is not None:
                m.d.comb += [lane.c.eq(before.o), lane.chain.eq(0)]

    def _add_before(self, m: Module, n: int, products: HeadProducts, affine: Value) -> PreAdder:
        """The pre-adder of a lane."""
        m.submodules[f"before{n}"] = before = PreAdder()
        m.d.comb += [
            *(getattr(before.product, name).eq(getattr(products.biased, name)) for name in ProductSignature.members),
            before.adds.eq(affine),
            before.c.eq(self.c.word_select(n, LANE.bits)),
            before.chain.eq(self.chain[n]),
            before.result.eq(getattr(m.submodules, f"lane{n}").o),
        ]
        return before
