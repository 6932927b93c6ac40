"""One ALU operation of a level."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.bundles import WorkBus, operand, register
from daedal.hw.access_unit.multiplier import Multiplier
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.isa.program_words import AluControl, AluOp
from daedal.hw.spread import spread

STAGES = 3
"""Registers from input to output."""

COARSE = 8
"""A shift is done by its low three bits first, then by a multiple of this."""


class Alu(wiring.Component):
    """Reads two operands, works on them, and writes the destination register: one stage each.

    Only work bundles are changed. Members: ``control``, ``constant_a``, ``constant_b``: the operation; ``i``,
    ``o``: ``WorkBus(config)``, 3 cycles apart.
    """

    def __init__(self, config: Config, *, shifter: bool) -> None:
        super().__init__(
            {
                "control": In(AluControl),
                "constant_a": In(ADDRESS_BITS),
                "constant_b": In(ADDRESS_BITS),
                "i": In(WorkBus(config)),
                "o": Out(WorkBus(config)),
            }
        )
        self._config, self._shifter = config, shifter

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.multiplier = multiplier = Multiplier()
        read, worked = (WorkBus(self._config).create(path=(name,)) for name in ("read", "worked"))
        a, b, simple, result = (Signal(ADDRESS_BITS, name=name) for name in ("a", "b", "simple", "result"))
        m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b), multiplier.enable.eq(1)]
        for later, bus in ((read, self.i), (worked, read), (self.o, worked)):
            register(m, later, bus)
        with m.If(self.i.valid):
            m.d.sync += [
                a.eq(operand(self.control.a, self.constant_a, self.i.registers)),
                b.eq(operand(self.control.b, self.constant_b, self.i.registers)),
            ]
        with m.If(read.valid):
            m.d.sync += simple.eq(self._simple(a, b))
        product = sum(multiplier.summands[1:], multiplier.summands[0])
        m.d.comb += result.eq(Mux(self.control.op == AluOp.MUL, product, simple))
        if self._shifter:
            self._shift(m, a, b, result)
        with m.If(worked.valid & worked.work & (self.control.op != AluOp.NONE)):
            for number, held in enumerate(self.o.registers):
                with m.If(Value.cast(self.control.destination) == number + 1):
                    m.d.sync += held.eq(result)
        return m

    def _simple(self, a: Signal, b: Signal) -> Value:
        """All but products and shifts, with one adder: ``a - b`` also tells which one is less."""
        is_op = {op: self.control.op == op for op in AluOp}
        minus = is_op[AluOp.SUB] | is_op[AluOp.MIN] | is_op[AluOp.MAX] | is_op[AluOp.LESS]
        other = Cat(b, b[-1]) ^ spread(minus, ADDRESS_BITS + 1)
        total = (Cat(1, a, a[-1]) + Cat(minus, other))[1 : ADDRESS_BITS + 2]
        less, equal = total[-1], a == b
        selects = is_op[AluOp.MAX] | is_op[AluOp.MIN]
        result = Mux(selects, Mux(less ^ is_op[AluOp.MAX], a, b), total[:ADDRESS_BITS])
        for op, value in (
            (AluOp.AND, a & b),
            (AluOp.EQUAL, equal),
            (AluOp.NOT_EQUAL, ~equal),
            (AluOp.LESS, less),
        ):
            result = Mux(is_op[op], value, result)
        return result

    def _shift(self, m: Module, a: Signal, b: Signal, result: Signal) -> None:
        """Shift left by way of reversal, so that one shifter does both directions."""
        left = self.control.op == AluOp.SHIFT_LEFT
        fine, coarse = Signal(ADDRESS_BITS), Signal(3)
        source = Mux(left, a[::-1], a)
        m.d.sync += [fine.eq(source >> b[:3]), coarse.eq(b[3:6])]
        shifted = Signal(ADDRESS_BITS)
        with m.Switch(coarse):
            for amount in range(COARSE):
                with m.Case(amount):
                    m.d.comb += shifted.eq(fine >> COARSE * amount)
        with m.If(left):
            m.d.comb += result.eq(shifted[::-1])
        with m.Elif(self.control.op == AluOp.SHIFT_RIGHT):
            m.d.comb += result.eq(shifted)
