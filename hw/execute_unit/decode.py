"""Instruction decoding."""

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.lane_op import LaneOp
from daedal.hw.execute_unit.records import Kind, decoded_layout, fetched_layout, row_layout
from daedal.hw.isa.execute import Instruction, OperandKind, VectorOp
from daedal.hw.isa.program_words import FetchQueue

LANE_OPS = {
    VectorOp.MOVE: LaneOp.MOVE,
    VectorOp.ADD: LaneOp.ADD,
    VectorOp.SUBTRACT: LaneOp.ADD,
    VectorOp.MULTIPLY: LaneOp.MUL,
    VectorOp.FMA: LaneOp.FMA,
    VectorOp.MUL_ADD: LaneOp.MUL_ADD,
    VectorOp.MAX: LaneOp.MAX,
    VectorOp.MIN: LaneOp.MIN,
    VectorOp.ABS: LaneOp.ABS,
}
"""What the lanes do for the instructions that are one pass."""

USES_B = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD)
USES_C = (VectorOp.ADD, VectorOp.SUBTRACT, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.MAX, VectorOp.MIN)
ONLY_REGISTER_A = (VectorOp.STORE, VectorOp.DIVIDE_COUNT)


class Decode(wiring.Component):
    """Says what an instruction does and whether the machine has it; combinational.

    Members
    -------
    i : ``In(fetched_layout())``
        The instruction.
    row : ``In(row_layout(config))``; bad_length : ``In(1)``
        The row of the length register that ``length`` names.
    o : ``Out(decoded_layout(config))``
        What it does.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(fetched_layout()),
                "row": In(row_layout(config)),
                "bad_length": In(1),
                "o": Out(decoded_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._code = code = Instruction(self.i.code)
        self._op = Value.cast(code.op)
        o, issue = self.o, self.o.issue
        too_long = (self.i.context != 0) & (self.row.last_beat >= self.config.context_beats)
        m.d.comb += [
            o.position.eq(self.i.position),
            o.length.eq(code.length),
            o.clear.eq(code.clear & (code.a.kind == OperandKind.REGISTER)),
            o.extreme.eq(self._is(VectorOp.MAX, VectorOp.MIN)),
            o.needs_scalar.eq((code.a.kind == OperandKind.SCALAR) | (code.b.kind == OperandKind.SCALAR)),
            o.bad_token.eq(self.i.bad),
            o.illegal.eq(self.i.beyond | self._illegal()),
            o.bad_length.eq((self.bad_length | too_long) & ~self._is(VectorOp.NOP)),
            issue.row.eq(self.row),
            issue.context.eq(self.i.context),
            issue.negate_addend.eq(self._is(VectorOp.SUBTRACT)),
            issue.c.eq(code.c),
            issue.c_used.eq(self._is(*USES_C)),
            issue.destination.eq(code.destination),
            issue.copies.as_value().eq(~0),
            *self._operand(issue.a, code.a),
            *self._operand(issue.b, code.b),
            issue.b.zero.eq(~self._is(*USES_B)),
        ]
        self._operation(m)
        return m

    def _is(self, *ops: VectorOp) -> Value:
        return self._op.matches(*ops)

    def _operation(self, m: Module) -> None:
        # Not on the output itself: in Verilog the constant parts of a signal that is assigned in a switch
        # become processes without a sensitivity, which never run.
        kind, lane_op = Signal(Kind), Signal(LaneOp)
        with m.Switch(self._op):
            with m.Case(VectorOp.STORE):
                m.d.comb += kind.eq(Kind.STORE)
            with m.Case(VectorOp.DIVIDE_COUNT):
                m.d.comb += kind.eq(Kind.DIVIDE)
            for op, result in LANE_OPS.items():
                with m.Case(op):
                    m.d.comb += [kind.eq(Kind.LANES), lane_op.eq(result)]
        m.d.comb += [self.o.kind.eq(kind), self.o.issue.op.eq(lane_op)]

    def _operand(self, operand: data.View, code: data.View) -> list[object]:
        return [operand.register.eq(code.number), operand.kind.eq(code.kind), operand.queue.eq(code.number)]

    def _illegal(self) -> Value:
        """An operation, register, operand or length register that the machine does not have."""
        code, config = self._code, self.config
        registers = [Value.cast(n) >= config.vector_registers for n in (code.destination, code.c)]
        a_kind, b_kind = Value.cast(code.a.kind), Value.cast(code.b.kind)
        same_number = Value.cast(code.a.number) == Value.cast(code.b.number)
        both_pop = (a_kind == b_kind) & (a_kind != OperandKind.REGISTER)
        return Cat(
            ~self._is(*VectorOp),
            code.reserved.any(),
            *registers,
            self._bad_operand(code.a),
            self._bad_operand(code.b),
            both_pop & ((a_kind == OperandKind.SCALAR) | same_number),
            ~self._is(*USES_B) & Value.cast(code.b).any(),
            self._is(*ONLY_REGISTER_A) & (a_kind != OperandKind.REGISTER),
            code.length >= config.lengths,
        ).any()

    def _bad_operand(self, code: data.View) -> Value:
        kind, number = Value.cast(code.kind), Value.cast(code.number)
        return (
            ((kind == OperandKind.REGISTER) & (number >= self.config.vector_registers))
            | ((kind == OperandKind.QUEUE) & (number >= FetchQueue.STORE.value))
            | ~kind.matches(*OperandKind)
        )
