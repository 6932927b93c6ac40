"""Instruction decoding."""

from collections.abc import Callable, Mapping

from amaranth import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import Kind, decoded_layout, fetched_layout, row_layout
from daedal.hw.isa.elements import LANE, UNSTORED
from daedal.hw.isa.instructions import CONVERTED, HEAD, KEEP, KEPT, Instruction, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, Operation, OperationUnit
from daedal.hw.isa.words import FetchQueue, LengthField

_LANE_OPS = {
    VectorOp.SUBTRACT: LaneOp.ADD,
    VectorOp.MULTIPLY: LaneOp.MUL,
    VectorOp.ROUND: LaneOp.MOVE,
    VectorOp.AFFINE: LaneOp.FMA,
}
"""What the lanes do for operations that have another name there; SUBTRACT also negates ``c``, ROUND rounds ``a``."""

_KINDS = {
    OperationUnit.NONE: Kind.NOTHING,
    OperationUnit.LANES: Kind.LANES,
    OperationUnit.DIVIDER: Kind.LANES,
    OperationUnit.ITERATIVE: Kind.LANES,
    OperationUnit.STORE: Kind.STORE,
}
"""What the dispatcher does with an operation."""

REGISTERS = (OperandKind.REGISTER, OperandKind.SCALAR_REGISTER)


class Decode(wiring.Component):
    """Says what an instruction does and whether the machine has it; combinational.

    Parameters
    ----------
    operations
        The table of operations: what has no row there is illegal.

    Members
    -------
    i : ``In(fetched_layout())``
        The instruction.
    row : ``In(row_layout(config))``; bad_length : ``In(1)``
        The row of the length register that ``length`` names.
    o : ``Out(decoded_layout(config))``
        What it does.
    """

    def __init__(self, config: Config, operations: Mapping[VectorOp, Operation] = OPERATIONS) -> None:
        self.config = config
        self._operations = {op: row for op, row in operations.items() if row.is_of(config)}
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
        self._uses_b = self._where(lambda row: "b" in row.operands)
        self._may_add_b = self._where(lambda row: row.b_replaces_c) & (self._mode != Mode.REDUCE)
        adds_b, absolute = self._may_add_b & Value.cast(code.b).any(), self._sums_absolutes()
        iterative = self._where(lambda row: row.unit is OperationUnit.ITERATIVE)
        divides, quotient = self._where(lambda row: row.pops_count), self._where(lambda row: row.stores)
        does_nothing = self._where(lambda row: row.unit is OperationUnit.NONE)
        too_long = (self.i.context != 0) & (self.row.last_beat >= self.config.context_beats)
        bad_length = self.bad_length | too_long
        if self.config.quantised:
            bad_length |= self._unstorable()
        m.d.comb += [
            o.position.eq(self.i.position),
            o.length.eq(code.length),
            o.clear.eq((code.clear | quotient) & Value.cast(code.a.kind).matches(*REGISTERS)),
            o.stores.eq(quotient | self._is(VectorOp.STORE)),
            issue.divides.eq(divides),
            issue.partial.eq(quotient),
            o.rotate.eq(code.rotate),
            o.rotate_scalars.eq(code.rotate_scalars),
            o.extreme.eq(self._where(lambda row: row.takes_a)),
            issue.keeps.eq(self._keeps()),
            issue.kept.eq(self._kept()),
            *([issue.head.eq(self._head())] if self.config.quantised else []),
            *([issue.octets.eq(code.octets)] if self.config.octets else []),
            o.beyond_kept.eq(code.a.number),
            o.needs_scalar.eq(divides | (code.a.kind == OperandKind.SCALAR) | (code.b.kind == OperandKind.SCALAR)),
            o.bad_token.eq(self.i.bad),
            o.illegal.eq(self.i.beyond | self._illegal()),
            o.bad_length.eq(bad_length & ~does_nothing & (self._mode != Mode.SCALAR)),
            issue.row.eq(self._elements(m)),
            issue.context.eq(self.i.context),
            issue.negate_addend.eq(self._is(VectorOp.SUBTRACT)),
            issue.c.eq(code.c),
            issue.c_used.eq(self._where(lambda row: "c" in row.operands) & ~adds_b),
            issue.adds_b.eq(adds_b),
            issue.absolute.eq(absolute),
            # A quotient that is stored goes by way of its dividend's register, which is empty afterwards.
            issue.destination.eq(Mux(quotient, code.a.number, code.destination)),
            issue.writes.eq(~iterative),
            issue.c_scalar.eq(self._mode == Mode.SCALAR),
            issue.to_scalar.eq(self._mode != Mode.VECTOR),
            issue.indexed.eq(code.indexed),
            issue.index.eq(code.element),
            *self._operand(issue.a, code.a),
            *self._operand(issue.b, code.b),
            issue.b.zero.eq(~self._uses_b & ~adds_b),
        ]
        if self.config.has_affine:
            affine = self._where(lambda row: row.takes_head)
            plain = affine & ~Value.cast(code.b).any()
            m.d.comb += [
                issue.affine.eq(affine),
                issue.plain.eq(plain),
                issue.b.zero.eq(~self._uses_b & ~adds_b | plain),
            ]
        if self.config.rounds:
            m.d.comb += issue.rounds.eq(self._where(lambda row: row.rounds))
        self._operation(m)
        return m

    def _elements(self, m: Module) -> data.View:
        """The row that the instruction works on: a scalar is one of one element."""
        row = Signal.like(self.row)
        m.d.comb += row.eq(self.row)
        with m.If(self._mode == Mode.SCALAR):
            wait = latencies(self.config).read_after_write - 1
            m.d.comb += [row.last_beat.eq(0), row.tail_bytes.eq(LANE.bytes), row.wait.eq(wait)]
            if self.config.length_fields[1:]:
                m.d.comb += row.kind.eq(LengthField.ELEMENTS.value)
        return row

    def _is(self, *ops: VectorOp) -> Value:
        return self._op.matches(*ops)

    def _where(self, holds: Callable[[Operation], bool]) -> Value:
        """Whether this holds of the operation's row."""
        return self._is(*(op for op, row in self._operations.items() if holds(row)))

    def _sums_absolutes(self) -> Value:
        """The reduction of ABS is that of ADD, of ``a`` without its sign."""
        return (self._mode == Mode.REDUCE) & self._is(VectorOp.ABS)

    def _operation(self, m: Module) -> None:
        # Not on the output itself: in Verilog the constant parts of a signal that is assigned in a switch
        # become processes without a sensitivity, which never run.
        kind, lane_op, iterative = Signal(Kind), Signal(LaneOp), Signal(IterativeOp)
        with m.Switch(self._op):
            for op, row in self._operations.items():
                with m.Case(op):
                    m.d.comb += kind.eq(_KINDS[row.unit])
                    if row.unit is OperationUnit.LANES:
                        m.d.comb += lane_op.eq(_LANE_OPS.get(op) or LaneOp[op.name])
                    if row.unit is OperationUnit.ITERATIVE:
                        m.d.comb += iterative.eq(IterativeOp[op.name])
        m.d.comb += [
            self.o.kind.eq(Mux((self._mode == Mode.REDUCE) & (kind == Kind.LANES), Kind.REDUCE, kind)),
            self.o.issue.op.eq(Mux(self._sums_absolutes(), LaneOp.ADD, lane_op)),
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
        bad_a = self._bad_operand(code.a) & ~self._keeps() & ~self._kept()
        if self.config.quantised:
            bad_a &= ~self._head()
        return Cat(
            ~self._is(*self._operations),
            code.octets & (self._mode != Mode.REDUCE) if config.octets else code.octets.any(),
            bad_a,
            self._bad_operand(code.b),
            both_pop & (((a_kind == OperandKind.QUEUE) & same_number) | (a_kind == OperandKind.SCALAR)),
            ~self._uses_b & ~self._may_add_b & Value.cast(code.b).any(),
            *([self._bad_head()] if config.has_affine else []),
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

    def _head(self) -> Value:
        a = self._code.a
        number = a.number.matches(*(HEAD + queue for queue in CONVERTED))
        return (a.kind == OperandKind.QUEUE) & (self._mode != Mode.REDUCE) & number

    def _bad_head(self) -> Value:
        """An operation on a whole row whose ``a`` is none, or whose ``b`` is no scalar."""
        a, b = self._code.a, self._code.b
        no_row = (a.kind != OperandKind.QUEUE) | ~a.number.matches(*CONVERTED)
        many = (b.kind == OperandKind.QUEUE) | ((b.kind == OperandKind.REGISTER) & b.number.any())
        return self._where(lambda row: row.takes_head) & (no_row | many)

    def _unstorable(self) -> Value:
        """A store of elements, or a rounding to them, that are only popped."""
        kinds = [kind.value for kind in self.config.length_fields if kind in UNSTORED]
        return (self.o.stores | self._where(lambda row: row.rounds)) & self.row.kind.matches(*kinds)

    def _bad_mode(self) -> Value:
        """What the mode does not allow: registers, operations, operands, an index."""
        code, scalars, vectors = self._code, self.config.scalars, self.config.vector_registers
        a, b, c = Value.cast(code.a), Value.cast(code.b), code.c
        vector_a, scalar_a = code.a.kind == OperandKind.REGISTER, code.a.kind == OperandKind.SCALAR_REGISTER
        partials, index = Cat(c, Const(OperandKind.REGISTER.value, Shape.cast(OperandKind))), code.indexed
        vector = [
            code.destination >= vectors,
            c >= vectors,
            self._on_register(Mode.VECTOR) & ~vector_a,
            self._where(lambda row: not row.may_have(Mode.VECTOR)),
            index,
        ]
        scalar = [
            code.destination >= scalars,
            c >= scalars,
            self._where(lambda row: not row.may_have(Mode.SCALAR)),
            self._on_register(Mode.SCALAR) & ~scalar_a,
            index & ~vector_a,
        ]
        reduce = [
            code.destination >= scalars,
            c >= vectors,
            ~self._where(lambda row: row.may_have(Mode.REDUCE)),
            index,
            a == partials,
            self._uses_b & (b == partials),
        ]
        return Mux(
            self._mode == Mode.VECTOR,
            Cat(vector).any(),
            Mux(self._mode == Mode.SCALAR, Cat(scalar).any(), Cat(reduce).any() | (self._mode != Mode.REDUCE)),
        )

    def _on_register(self, mode: Mode) -> Value:
        """Whether the operation's ``a`` must be a register in this mode."""
        return self._where(lambda row: row.register_a and row.may_have(mode))

    def _bad_operand(self, code: data.View) -> Value:
        kind, number = Value.cast(code.kind), Value.cast(code.number)
        return (
            ((kind == OperandKind.REGISTER) & (number >= self.config.vector_registers))
            | ((kind == OperandKind.QUEUE) & (number >= FetchQueue.STORE.value))
            | ((kind == OperandKind.SCALAR_REGISTER) & (number >= self.config.scalars))
        )
