"""One ALU operation of a level."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import RESULT_FIELDS, WorkBus, register
from daedal.hw.access_unit.levels.multiplier import Multiplier
from daedal.hw.access_unit.levels.pipelined.operand import operand, targets, write
from daedal.hw.config.core import Config
from daedal.hw.isa.words import AluControl, AluOp
from daedal.hw.lib.replicate import replicate

STAGES = 3
"""Registers from input to output."""

COARSE = 8
"""A shift is done by its low three bits first, then by a multiple of this."""


class Alu(wiring.Component):
    """Reads two operands, works on them, and writes the destination register: one stage each.

    Only work bundles are changed. Members: ``control``, ``constant_a``, ``constant_b``: the operation of the bundle
    that comes a cycle later; ``i``, ``o``: ``WorkBus(config)``, 3 cycles apart.
    """

    def __init__(self, config: Config, *, shifter: bool) -> None:
        super().__init__(
            {
                "control": In(AluControl),
                "constant_a": In(config.address_bits),
                "constant_b": In(config.address_bits),
                "i": In(WorkBus(config)),
                "o": Out(WorkBus(config)),
            }
        )
        self._config, self._shifter = config, shifter

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.multiplier = multiplier = Multiplier(self._config.address_bits)
        read, worked = (WorkBus(self._config).create(path=(name,)) for name in ("read", "worked"))
        bits = self._config.address_bits
        a, b, simple, result = (Signal(bits, name=name) for name in ("a", "b", "simple", "result"))
        m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b)]
        register(m, read, self.i, RESULT_FIELDS)
        register(m, worked, read, RESULT_FIELDS)
        controls = [self.control, *(Signal(AluControl, name=f"control{stage}") for stage in range(STAGES))]
        for sooner, later in pairwise(controls):
            m.d.sync += later.eq(sooner)
        sources = [
            operand(m, "a", self.control.a, self.constant_a, self.i.registers),
            operand(m, "b", self.control.b, self.constant_b, self.i.registers),
        ]
        with m.If(self.i.valid):
            m.d.sync += [to.eq(source) for to, source in zip((a, b), sources, strict=True)]
        worked_out = self._simple(m, controls[1].op, a, b)
        with m.If(read.valid):
            m.d.sync += simple.eq(worked_out)
        product = sum(multiplier.summands[1:], multiplier.summands[0])
        multiplies, changes = Signal(), Signal()
        m.d.sync += [multiplies.eq(controls[2].op == AluOp.MUL), changes.eq(controls[2].op != AluOp.NONE)]
        m.d.comb += result.eq(simple | (product & replicate(multiplies, bits)))
        if self._shifter:
            self._shift(m, controls[2].op, controls[3].op, a, b, result)
        works = worked.work & changes
        to = targets(m, "alu", controls[2].destination, self._config.registers)
        write(m, self.o, worked, to & replicate(works, len(to)), result)
        return m

    def _simple(self, m: Module, op: Any, a: Signal, b: Signal) -> Value:
        """All but products and shifts, with one adder: ``a - b`` also tells which one is less; 0 for a product."""
        is_op = {one: Signal(name=f"is_{one.name.lower()}") for one in AluOp}
        minus, sums, selects, logic = Signal(), Signal(), Signal(), Signal(2)
        m.d.sync += [
            *(bit.eq(op == one) for one, bit in is_op.items()),
            minus.eq(Value.cast(op).matches(AluOp.SUB, AluOp.MIN, AluOp.MAX, AluOp.LESS)),
            sums.eq(Value.cast(op).matches(AluOp.ADD, AluOp.SUB)),
            selects.eq(Value.cast(op).matches(AluOp.MIN, AluOp.MAX)),
        ]
        bits = self._config.address_bits
        other = Cat(b, b[-1]) ^ replicate(minus, bits + 1)
        total = (Cat(1, a, a[-1]) + Cat(minus, other))[1 : bits + 2]
        less, equal = total[-1], a == b
        # a, b, or a AND b: the two bits say which of the operands a one must be in.
        m.d.comb += logic.eq(
            Mux(selects, Mux(less ^ is_op[AluOp.MAX], 1, 2), replicate(is_op[AluOp.AND], 2)),
        )
        both = (a | replicate(~logic[0], bits)) & (b | replicate(~logic[1], bits))
        truth = (is_op[AluOp.EQUAL] & equal) | (is_op[AluOp.NOT_EQUAL] & ~equal) | (is_op[AluOp.LESS] & less)
        return (both & replicate(logic.any(), bits)) | (total[:bits] & replicate(sums, bits)) | truth

    def _shift(self, m: Module, first_op: Any, op: Any, a: Signal, b: Signal, result: Signal) -> None:
        """Shift left by way of reversal, so that one shifter does both directions; its operation in each stage."""
        fine, coarse = Signal(self._config.address_bits), Signal(3)
        source = Mux(first_op == AluOp.SHIFT_LEFT, a[::-1], a)
        m.d.sync += [fine.eq(source >> b[:3]), coarse.eq(b[3:6])]
        shifted = Signal(self._config.address_bits)
        with m.Switch(coarse):
            for amount in range(COARSE):
                with m.Case(amount):
                    m.d.comb += shifted.eq(fine >> COARSE * amount)
        with m.If(op == AluOp.SHIFT_LEFT):
            m.d.comb += result.eq(shifted[::-1])
        with m.Elif(op == AluOp.SHIFT_RIGHT):
            m.d.comb += result.eq(shifted)
