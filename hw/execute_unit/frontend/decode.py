"""Instruction decoding."""

from amaranth import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import READ_AFTER_WRITE
from daedal.hw.execute_unit.stage_layouts import Kind, decoded_layout, fetched_layout, row_layout
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import KEEP, KEPT, Instruction, Mode, OperandKind, VectorOp
from daedal.hw.isa.words import FetchQueue

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
    VectorOp.SELECT: LaneOp.SELECT,
    VectorOp.GREATER: LaneOp.GREATER,
    VectorOp.LESS: LaneOp.LESS,
    VectorOp.EQUAL: LaneOp.EQUAL,
}
"""What the lanes do for the instructions that are one pass."""

ITERATIVE_OPS = {
    VectorOp.RECIPROCAL: IterativeOp.RECIPROCAL,
    VectorOp.DIVIDE: IterativeOp.DIVIDE,
    VectorOp.SQUARE_ROOT: IterativeOp.SQUARE_ROOT,
    VectorOp.TO_FLOAT: IterativeOp.TO_FLOAT,
    VectorOp.TO_INTEGER: IterativeOp.TO_INTEGER,
    VectorOp.SCALE: IterativeOp.SCALE,
}
"""What the iterative unit does for the instructions on scalars that take it."""

USES_B = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.SELECT, VectorOp.DIVIDE, VectorOp.SCALE)
USES_C = (
    VectorOp.ADD, VectorOp.SUBTRACT, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.MAX, VectorOp.MIN, VectorOp.SELECT,
    VectorOp.GREATER, VectorOp.LESS, VectorOp.EQUAL,
)  # fmt: skip
ADDS_B = (VectorOp.ADD, VectorOp.SUBTRACT)
"""What adds operand ``b``, if there is one, instead of ``c``; not in mode REDUCE."""

REDUCES = (VectorOp.ADD, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.MAX, VectorOp.MIN, VectorOp.ABS)
ONLY_REGISTER_A = (VectorOp.STORE, VectorOp.DIVIDE_COUNT)


REGISTERS = (OperandKind.REGISTER, OperandKind.SCALAR_REGISTER)


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
        self._op, self._mode = Value.cast(code.op), Value.cast(code.mode)
        o, issue = self.o, self.o.issue
        self._adds_b = self._is(*ADDS_B) & (self._mode != Mode.REDUCE)
        adds_b, absolute = self._adds_b & Value.cast(code.b).any(), (self._mode == Mode.REDUCE) & self._is(VectorOp.ABS)
        too_long = (self.i.context != 0) & (self.row.last_beat >= self.config.context_beats)
        m.d.comb += [
            o.position.eq(self.i.position),
            o.length.eq(code.length),
            o.clear.eq(code.clear & Value.cast(code.a.kind).matches(*REGISTERS)),
            o.rotate.eq(code.rotate),
            o.rotate_scalars.eq(code.rotate_scalars),
            o.extreme.eq(self._is(VectorOp.MAX, VectorOp.MIN)),
            issue.keeps.eq(self._keeps()),
            issue.kept.eq(self._kept()),
            o.beyond_kept.eq(code.a.number),
            o.needs_scalar.eq((code.a.kind == OperandKind.SCALAR) | (code.b.kind == OperandKind.SCALAR)),
            o.bad_token.eq(self.i.bad),
            o.illegal.eq(self.i.beyond | self._illegal()),
            o.bad_length.eq((self.bad_length | too_long) & ~self._is(VectorOp.NOP) & (self._mode != Mode.SCALAR)),
            issue.row.eq(self._elements(m)),
            issue.context.eq(self.i.context),
            issue.negate_addend.eq(self._is(VectorOp.SUBTRACT)),
            issue.c.eq(code.c),
            issue.c_used.eq(self._is(*USES_C) & ~adds_b),
            issue.adds_b.eq(adds_b),
            issue.absolute.eq(absolute),
            issue.destination.eq(code.destination),
            issue.copies.as_value().eq(~self._is(*ITERATIVE_OPS).replicate(len(issue.copies.as_value()))),
            issue.c_scalar.eq(self._mode == Mode.SCALAR),
            issue.to_scalar.eq(self._mode != Mode.VECTOR),
            issue.indexed.eq(code.indexed),
            issue.index.eq(code.element),
            *self._operand(issue.a, code.a),
            *self._operand(issue.b, code.b),
            issue.b.zero.eq(~self._is(*USES_B) & ~adds_b),
        ]
        self._operation(m)
        return m

    def _elements(self, m: Module) -> data.View:
        """The row that the instruction works on: a scalar is one of one element."""
        row = Signal.like(self.row)
        m.d.comb += row.eq(self.row)
        with m.If(self._mode == Mode.SCALAR):
            m.d.comb += [row.last_beat.eq(0), row.tail_bytes.eq(LANE.bytes), row.wait.eq(READ_AFTER_WRITE - 1)]
        return row

    def _is(self, *ops: VectorOp) -> Value:
        return self._op.matches(*ops)

    def _operation(self, m: Module) -> None:
        # Not on the output itself: in Verilog the constant parts of a signal that is assigned in a switch
        # become processes without a sensitivity, which never run.
        kind, lane_op, iterative = Signal(Kind), Signal(LaneOp), Signal(IterativeOp)
        with m.Switch(self._op):
            with m.Case(VectorOp.STORE):
                m.d.comb += kind.eq(Kind.STORE)
            with m.Case(VectorOp.DIVIDE_COUNT):
                m.d.comb += kind.eq(Kind.DIVIDE)
            for op, result in LANE_OPS.items():
                with m.Case(op):
                    m.d.comb += [kind.eq(Kind.LANES), lane_op.eq(result)]
            for op, meant in ITERATIVE_OPS.items():
                with m.Case(op):
                    m.d.comb += [kind.eq(Kind.LANES), iterative.eq(meant)]
        m.d.comb += [
            self.o.kind.eq(Mux((self._mode == Mode.REDUCE) & (kind == Kind.LANES), Kind.REDUCE, kind)),
            self.o.issue.op.eq(Mux((self._mode == Mode.REDUCE) & self._is(VectorOp.ABS), LaneOp.ADD, lane_op)),
            self.o.issue.iterative.eq(iterative),
        ]

    def _operand(self, operand: data.View, code: data.View) -> list[object]:
        return [operand.register.eq(code.number), operand.kind.eq(code.kind), operand.queue.eq(code.number)]

    def _illegal(self) -> Value:
        """An operation, register, operand or length register that the machine does not have."""
        code, config = self._code, self.config
        a_kind, b_kind = Value.cast(code.a.kind), Value.cast(code.b.kind)
        same_number = Value.cast(code.a.number)[0] == Value.cast(code.b.number)[0]
        both_pop = (a_kind == b_kind) & ~self._kept()
        return Cat(
            ~self._is(*VectorOp),
            code.reserved.any(),
            self._bad_operand(code.a) & ~self._keeps() & ~self._kept(),
            self._bad_operand(code.b),
            both_pop & (((a_kind == OperandKind.QUEUE) & same_number) | (a_kind == OperandKind.SCALAR)),
            ~self._is(*USES_B) & ~self._adds_b & Value.cast(code.b).any(),
            code.length >= config.lengths,
            Mux(code.indexed, code.element >= config.scalars, code.element.any()),
            self._bad_mode(),
        ).any()

    def _keeps(self) -> Value:
        a = self._code.a
        queue = a.number.matches(KEEP, KEEP + 1) if self.config.kept_beats else Const(0)
        return (a.kind == OperandKind.QUEUE) & queue

    def _kept(self) -> Value:
        a = self._code.a
        return (a.kind == OperandKind.QUEUE) & (a.number >= KEPT if self.config.kept_beats else Const(0))

    def _bad_mode(self) -> Value:
        """What the mode does not allow: registers, operations, operands, an index."""
        code, scalars, vectors = self._code, self.config.scalars, self.config.vector_registers
        a, b, c = Value.cast(code.a), Value.cast(code.b), code.c
        vector_a, scalar_a = code.a.kind == OperandKind.REGISTER, code.a.kind == OperandKind.SCALAR_REGISTER
        only_register, index = self._is(*ONLY_REGISTER_A), code.indexed
        partials = Cat(c, Const(OperandKind.REGISTER.value, Shape.cast(OperandKind)))
        vector = Cat(
            code.destination >= vectors, c >= vectors, only_register & ~vector_a, self._is(*ITERATIVE_OPS), index
        ).any()
        scalar = Cat(
            code.destination >= scalars, c >= scalars, self._is(VectorOp.DIVIDE_COUNT),
            self._is(VectorOp.STORE) & ~scalar_a, index & ~vector_a,
        ).any()  # fmt: skip
        reduce = Cat(
            code.destination >= scalars, c >= vectors, ~self._is(*REDUCES), index, a == partials,
            self._is(*USES_B) & (b == partials),
        ).any()  # fmt: skip
        return Mux(
            self._mode == Mode.VECTOR,
            vector,
            Mux(self._mode == Mode.SCALAR, scalar, reduce | (self._mode != Mode.REDUCE)),
        )

    def _bad_operand(self, code: data.View) -> Value:
        kind, number = Value.cast(code.kind), Value.cast(code.number)
        return (
            ((kind == OperandKind.REGISTER) & (number >= self.config.vector_registers))
            | ((kind == OperandKind.QUEUE) & (number >= FetchQueue.STORE.value))
            | ((kind == OperandKind.SCALAR_REGISTER) & (number >= self.config.scalars))
        )
