"""Choice of operand a or b of a beat."""

from amaranth import Cat, Module, Mux
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.float_format import register
from daedal.hw.execute_unit.records import operand_layout
from daedal.hw.isa.execute import OperandKind
from daedal.hw.spread import spread


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
        kind, width = self.operand.kind, len(self.o)
        from_queue = (kind != OperandKind.SCALAR) & (kind != OperandKind.REGISTER)
        popped = Mux(from_queue, Mux(self.operand.queue, self.vector1, self.vector0), 0)
        popped = register(m, popped, "popped")
        scalar = register(m, Mux(kind == OperandKind.SCALAR, self.scalar, 0), "scalar_or_zero")
        is_stored = register(m, (kind == OperandKind.REGISTER) & ~self.operand.zero, "is_stored")
        # Two of the three are zero, which costs less than a choice.
        chosen = popped | Cat(*[scalar] * self.config.lanes) | (self.stored & spread(is_stored, width))
        m.d.comb += self.o.eq(register(m, chosen, "chosen"))
        return m
