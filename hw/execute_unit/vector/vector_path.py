"""Vector registers, operand selection and lanes, joined."""

from amaranth import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import LOW_BITS, Factor
from daedal.hw.execute_unit.fpu.float_format import FRACTION_BITS, register
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.iterative_unit import IterativeRequest
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import SELECT
from daedal.hw.execute_unit.scalar_file import ScalarFile
from daedal.hw.execute_unit.stage_layouts import (
    issue_layout,
    partial_beats,
    partial_step,
    register_beat,
    register_place,
)
from daedal.hw.execute_unit.vector.forwarding import Forwarding
from daedal.hw.execute_unit.vector.lane_array import LaneArray
from daedal.hw.execute_unit.vector.operand_select import OperandSelect
from daedal.hw.execute_unit.vector.reduction_tree import combine_layout, neutral
from daedal.hw.execute_unit.vector.register_file import RegisterFile
from daedal.hw.isa.elements import HEAD_WORDS, LANE
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.isa.words import LengthField


class VectorPath(wiring.Component):
    """Does with each beat what its row says; one beat per cycle, never stalls. See ``schedule`` for the
    stages.

    Members
    -------
    fire : ``In(1)``; row : ``In(issue_layout(config))``; beat : ``In(range(register_beats))``; last : ``In(1)``
        A beat is issued in this cycle: its row, its number in that, whether it is the row's last.
    combining : ``In(1)``; combine : ``In(combine_layout(config))``
        A beat of a tree is issued in this cycle.
    element : ``Out(32)``
        The scalar register that ``row`` names as its index.
    request : ``Out(IterativeRequest)``; request_valid : ``Out(1)``
        For the iterative unit, which must be ready.
    vector0, vector1 : ``In(8 * lane_bytes)``
        The beats popped in this cycle.
    head : ``In(64)``, with AFFINE
        Scale and bias of the row of ``vector0``.
    kept : ``In(8 * lane_bytes)``; popped : ``Out(8 * lane_bytes)``
        The beat that was kept and is popped in this cycle; the beat that operand ``a`` popped in the cycle before.
    begins : ``In(1)``; factor : ``In(Factor)``
        Instead of ``fire``: a beat is issued for the product by the lowest bits of ``factor``, of which only the next
        cycle's product takes something. The reciprocal of a row that divides.
    store_address, store_data
        Read port of the store port, for a ``register_place``: data come one cycle after it.
    flying : ``Out(1)``
        Some result is still to come.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        width = 8 * config.lane_bytes
        super().__init__(
            {
                "fire": In(1),
                "row": In(issue_layout(config)),
                "beat": In(range(config.register_beats)),
                "last": In(1),
                "combining": In(1),
                "combine": In(combine_layout(config)),
                "element": Out(LANE.bits),
                "request": Out(IterativeRequest),
                "request_valid": Out(1),
                **({"head": In(HEAD_WORDS * LANE.bits)} if config.has_affine else {}),
                "vector0": In(width),
                "vector1": In(width),
                "kept": In(width),
                "popped": Out(width),
                "begins": In(1),
                "factor": In(Factor),
                "store_address": In(register_place(config)),
                "store_data": Out(width),
                "flying": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.registers = self.registers = registers = RegisterFile(self.config)
        m.submodules.a = a = OperandSelect(self.config, picks=self.config.scalars > 0)
        m.submodules.b = b = OperandSelect(self.config, picks=False)
        m.submodules.addend = self.addend = addend = Forwarding(self.config)
        m.submodules.lanes = lanes = LaneArray(self.config)
        self._present(m)
        offset, pick = self._element()
        row = self._row
        m.d.comb += [
            registers.a_address.eq(self._at(row.a.register, self._beat | offset)),
            registers.b_address.eq(self._at(row.b.register, self._beat)),
            registers.store_address.eq(self.store_address),
            self.store_data.eq(registers.store_data),
            addend.read_data.eq(registers.c_data),
            self.flying.eq(addend.flying),
            a.pick.eq(pick),
            a.absolute.eq(row.absolute),
            a.neutral.eq(neutral(Value.cast(row.op))),
            a.is_kept.eq(row.kept),
            a.kept.eq(self.kept),
            self.popped.eq(a.popped),
        ]
        self._select(m, a, row.a, registers.a_data)
        self._select(m, b, row.b, registers.b_data)
        self._add(m, addend, registers)
        if self.config.scalars:
            self._join_scalars(m, registers)
            self._request(m)
        self._compute(m, lanes)
        if self.config.rounds:
            m.d.comb += lanes.kind.eq(Mux(row.rounds, row.row.kind, LengthField.ELEMENTS.value))
        if self.config.has_affine:
            m.d.comb += [lanes.affine.eq(row.affine), lanes.plain.eq(row.plain), lanes.head.eq(self.head)]
        m.d.comb += [
            lanes.a.eq(a.o),
            lanes.b.eq(b.o),
            addend.b.eq(b.o),
            lanes.c.eq(addend.c),
            lanes.chain.eq(addend.chain),
            addend.result.eq(lanes.o),
            registers.write_data.eq(lanes.o),
        ]
        return m

    def _present(self, m: Module) -> None:
        """What is issued in this cycle: a beat of a row or of a tree."""
        self._row, self._beat = row, beat = Signal(issue_layout(self.config)), Signal.like(self.beat)
        self._fire, combine = Signal(), self.combine
        m.d.comb += [row.eq(self.row), beat.eq(self.beat), self._fire.eq(self.fire | self.begins | self.combining)]
        if not self.config.scalars:
            return
        with m.If(self.combining):
            m.d.comb += [
                beat.eq(combine.beat),
                row.op.eq(combine.op), row.negate_product.eq(0), row.negate_addend.eq(0), row.divides.eq(0),
                row.a.kind.eq(OperandKind.REGISTER), row.a.zero.eq(0), row.a.register.eq(combine.register),
                row.c.eq(combine.register), row.c_used.eq(1), row.c_scalar.eq(0), row.context.eq(0),
                row.adds_b.eq(0), row.absolute.eq(0),
                row.destination.eq(Mux(combine.final, combine.target, combine.register)),
                row.to_scalar.eq(combine.final), row.writes.eq(1),
                row.indexed.eq(0), row.reduces.eq(0), row.iterative.eq(IterativeOp.NONE),
            ]  # fmt: skip
            if self.config.rounds:
                m.d.comb += row.rounds.eq(0)
            if self.config.has_affine:
                m.d.comb += row.affine.eq(0)

    def _at(self, register: Value, beat: Value) -> Value:
        return register_beat(self.config, register, self._row.context, beat)

    def _element(self) -> tuple[Value, Value]:
        """Where operand ``a`` lies: what is added to its beat, and which of the beat's elements comes first."""
        lanes, other = exact_log2(self.config.lanes), self.combining
        if not self.config.scalars:
            return Const(0), Const(0)
        indexed = self.row.indexed
        return (
            Mux(other, self.combine.offset, Mux(indexed, self.element >> lanes, 0)),
            Mux(other, self.combine.pick, Mux(indexed, self.element[:lanes], 0)),
        )

    def _place(self, number: Value, scalar: Value) -> Value:
        """The ``register_place`` of a beat of ``c`` or of a result."""
        digits, step = exact_log2(partial_beats(self.config)), exact_log2(partial_step(self.config))
        beat = self._beat[:digits]
        if self.config.octets:
            beat = Cat(beat[:-1], beat[-1] & ~self._row.octets)
        round_ = register_beat(self.config, number, Const(0), beat | (self._row.area << step))
        vector = Mux(self._row.reduces, round_, self._at(number, self._beat))
        width = Shape.cast(register_place(self.config)).width
        if not self.config.scalars:
            return vector[:width]
        return Cat(Mux(scalar, number, vector)[: width - 1], scalar)

    def _join_scalars(self, m: Module, registers: RegisterFile) -> None:
        """The scalar registers beside the vector registers; a place with its top bit set is one of them."""
        m.submodules.scalars = scalars = ScalarFile(self.config)
        addend, row = self.addend, self._row
        m.d.comb += [
            scalars.a_address.eq(row.a.register), scalars.b_address.eq(row.b.register),
            scalars.index_address.eq(row.index), self.element.eq(scalars.index_data),
            scalars.c_address.eq(addend.read_address), scalars.store_address.eq(self.store_address),
            scalars.write.eq(addend.write & addend.write_address[-1]),
            scalars.write_address.eq(addend.write_address), scalars.write_data.eq(registers.write_data),
        ]  # fmt: skip
        with m.If(addend.write_address[-1]):
            m.d.comb += registers.write.eq(0)
        for place, data_in, there in (
            (addend.read_address, scalars.c_data, addend.read_data),
            (self.store_address, scalars.store_data, self.store_data),
        ):
            with m.If(register(m, place[-1], "is_scalar")):
                m.d.comb += there[: LANE.bits].eq(data_in)
        for select, operand, stored in (
            (m.submodules.a, row.a, scalars.a_data),
            (m.submodules.b, row.b, scalars.b_data),
        ):
            with m.If(operand.kind == OperandKind.SCALAR_REGISTER):
                m.d.comb += select.scalar.eq(Mux(operand.zero, 0, stored))
            tail = row.row.tail_bytes // LANE.bytes
            masks = row.reduces & self.last
            m.d.comb += select.masked.eq(Cat(masks & (n >= tail) for n in range(self.config.lanes)))
            if self.config.lanes == 1:
                with m.If(self.combining & self.combine.alone):
                    m.d.comb += select.masked.eq(1)

    def _request(self, m: Module) -> None:
        """Give the operands of the iterative unit to it, once they are selected."""
        a, b = m.submodules.a, m.submodules.b
        request = self.request
        m.d.comb += [
            request.op.eq(register(m, self._row.iterative, "iterative", cycles=SELECT, shape=IterativeOp)),
            request.a.eq(a.o),
            request.b.eq(b.o),
        ]
        flying = Signal(SELECT)
        m.d.sync += flying.eq(Cat(self.fire & (self._row.iterative != IterativeOp.NONE), flying))
        m.d.comb += self.request_valid.eq(flying[-1])

    def _select(self, m: Module, select: OperandSelect, operand: data.View, stored: Value) -> None:
        m.d.comb += [
            select.operand.eq(operand),
            select.scalar.eq(self._row.scalar),
            select.vector0.eq(self.vector0),
            select.vector1.eq(self.vector1),
            select.stored.eq(stored),
        ]

    def _add(self, m: Module, addend: Forwarding, registers: RegisterFile) -> None:
        row = self._row
        digits = exact_log2(partial_beats(self.config))
        first = row.reduces & ~self._beat[digits:].any()
        if self.config.octets:
            first &= ~(row.octets & self._beat[digits - 1])
        op = Value.cast(row.op)
        m.d.comb += [
            addend.fire.eq(self._fire),
            addend.c_address.eq(self._place(row.c, row.c_scalar)),
            addend.c_used.eq(row.c_used & ~first),
            addend.extreme.eq(first & op.matches(LaneOp.MAX, LaneOp.MIN)),
            addend.negative.eq(first & (op != LaneOp.MIN)),
            addend.adds_b.eq(row.adds_b),
            addend.address.eq(self._place(row.destination, row.to_scalar)),
            addend.writes.eq(row.writes & ~self.begins),
            registers.c_address.eq(addend.read_address),
            registers.write.eq(addend.write),
            registers.write_address.eq(addend.write_address),
        ]

    def _compute(self, m: Module, lanes: LaneArray) -> None:
        """The operation, and for a division its factor as operand ``b`` and what has no room there."""
        row, factor, select = self._row, self.factor, m.submodules.b
        once = ~factor.long | self.begins
        top, exponent = factor.low[-1], factor.exponent
        # A number without a hidden bit has exponent 0.
        low = Cat(factor.low[LOW_BITS:-1], Mux(top, exponent, 0))
        high = Cat(Const(0, FRACTION_BITS + 1 - len(factor.high)), factor.high[:-1], exponent)
        m.d.comb += [
            lanes.op.eq(row.op),
            lanes.negate_product.eq(row.negate_product),
            lanes.negate_addend.eq(row.negate_addend),
            lanes.low.eq(Mux(row.divides & once, factor.low, 0)),
            lanes.cuts.eq(row.divides & ~factor.long),
            lanes.carries.eq(row.divides & ~once),
        ]
        with m.If(row.divides):
            m.d.comb += select.scalar.eq(Mux(once, low, high))
