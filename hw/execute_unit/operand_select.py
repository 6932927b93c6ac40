"""Choice of operand a or b of a beat."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.float_format import register
from daedal.hw.execute_unit.records import operand_layout
from daedal.hw.isa.execute import OperandKind


class OperandSelect(wiring.Component):
    """Brings operand ``a`` or ``b`` from wherever it is, one beat per cycle, ``schedule.SELECT`` cycles.

    Members
    -------
    operand : ``In(operand_layout(config))``; scalar : ``In(32)``
        What the beat issued in this cycle wants.
    vector0, vector1 : ``In(8 * lane_bytes)``
        What the vector queues offer in this cycle.
    stored : ``In(8 * lane_bytes)``
        The beat's register, one cycle later, from the register file.
    o : ``Out(8 * lane_bytes)``
        The operand, two cycles after the issue.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        width = 8 * config.lane_bytes
        super().__init__(
            {
                "operand": In(operand_layout(config)),
                "scalar": In(32),
                "vector0": In(width),
                "vector1": In(width),
                "stored": In(width),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        other = Signal(len(self.o))
        popped = Mux(self.operand.queue, self.vector1, self.vector0)
        scalars = Cat(*[self.scalar] * self.config.lanes)
        m.d.comb += other.eq(Mux(self.operand.kind == OperandKind.SCALAR, scalars, popped))
        other = register(m, other, "other")
        is_register = register(m, self.operand.kind == OperandKind.REGISTER, "is_register")
        zero = register(m, self.operand.zero, "zero")
        m.d.comb += self.o.eq(register(m, Mux(is_register, Mux(zero, 0, self.stored), other), "chosen"))
        return m
