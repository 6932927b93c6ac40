"""Scale and bias of a quantised row, each times the row's weight."""

from amaranth import Module, Mux, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.execute_unit.fpu.float_format import ONE, Float32, register
from daedal.hw.execute_unit.fpu.float_product import FloatProduct, ProductSignature
from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.isa.elements import LANE


class HeadProducts(wiring.Component):
    """Rounded products, one pair per cycle, ``latency`` cycles later.

    Parameters
    ----------
    biases
        Whether there is the product with the bias.

    Members
    -------
    scale, bias, weight : ``In(32)``; plain : ``In(1)``
        Their factors; ``plain``: the weight is 1.0 instead.
    scaled : ``Out(32)``
        Scale times weight.
    biased : ``Out(ProductSignature)``
        Bias times weight, as an adder takes it.
    """

    scale: In(LANE.bits)
    bias: In(LANE.bits)
    weight: In(LANE.bits)
    plain: In(1)
    scaled: Out(LANE.bits)
    biased: Out(ProductSignature)

    latency = Lane.latency

    def __init__(self, *, biases: bool = True) -> None:
        self._biases = biases
        super().__init__()

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        weight: Value = Mux(self.plain, ONE, self.weight)
        m.submodules.scaling = scaling = Lane()
        m.d.comb += [
            scaling.op.eq(LaneOp.MUL),
            scaling.a.eq(self.scale),
            scaling.b.eq(weight),
            self.scaled.eq(scaling.o),
        ]
        if self._biases:
            self._bias(m, weight)
        return m

    def _bias(self, m: Module, weight: Value) -> None:
        m.submodules.product = product = FloatProduct()
        m.d.comb += product.rounds.eq(1)
        for factor, hidden, value, name in (
            (product.a, product.a_hidden, self.bias, "bias"),
            (product.b, product.b_hidden, weight, "weight"),
        ):
            early = register(m, value, f"{name}_early", cycles=self.latency - FloatProduct.latency - 1)
            m.d.comb += [
                factor.eq(register(m, early, f"{name}_late")),
                hidden.eq(register(m, Float32(early).hidden(), f"{name}_hidden")),
            ]
        connect(m, product.o, flipped(self.biased))
