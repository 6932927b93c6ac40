"""Vector registers, operand selection and lanes, joined."""

from amaranth import Module, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.addend_path import AddendPath
from daedal.hw.execute_unit.float_divide import COUNT_BITS
from daedal.hw.execute_unit.lane_array import LaneArray
from daedal.hw.execute_unit.operand_select import OperandSelect
from daedal.hw.execute_unit.records import issue_layout, register_beat
from daedal.hw.execute_unit.register_file import RegisterFile


class VectorPath(wiring.Component):
    """Does with each beat what its row says; one beat per cycle, never stalls. See ``schedule`` for the
    stages.

    Members
    -------
    fire : ``In(1)``; row : ``In(issue_layout(config))``; beat : ``In(range(register_beats))``
        A beat is issued in this cycle: its row and its number in that.
    vector0, vector1 : ``In(8 * lane_bytes)``
        The beats popped in this cycle.
    fix_reciprocal : ``In(32)``; fix_count : ``In(24)``
        For the third pass of a division.
    store_address, store_data
        Read port of the store port: data come one cycle after the address.
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
                "vector0": In(width),
                "vector1": In(width),
                "fix_reciprocal": In(32),
                "fix_count": In(COUNT_BITS),
                "store_address": In(range(config.vector_registers * config.register_beats)),
                "store_data": Out(width),
                "flying": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.registers = self.registers = registers = RegisterFile(self.config)
        m.submodules.a = a = OperandSelect(self.config)
        m.submodules.b = b = OperandSelect(self.config)
        m.submodules.addend = self.addend = addend = AddendPath(self.config)
        m.submodules.lanes = lanes = LaneArray(self.config)
        m.d.comb += [
            registers.a_address.eq(self._at(self.row.a.register)),
            registers.b_address.eq(self._at(self.row.b.register)),
            registers.store_address.eq(self.store_address),
            self.store_data.eq(registers.store_data),
            self.flying.eq(addend.flying),
        ]
        self._select(m, a, self.row.a, registers.a_data)
        self._select(m, b, self.row.b, registers.b_data)
        self._add(m, addend, registers)
        self._compute(m, lanes)
        m.d.comb += [
            lanes.a.eq(a.o),
            lanes.b.eq(b.o),
            addend.b.eq(b.o),
            lanes.c.eq(addend.c),
            addend.result.eq(lanes.o),
            registers.write_data.eq(lanes.o),
        ]
        return m

    def _at(self, register: Value) -> Value:
        return register_beat(self.config, register, self.row.context, self.beat)

    def _select(self, m: Module, select: OperandSelect, operand: data.View, stored: Value) -> None:
        m.d.comb += [
            select.operand.eq(operand),
            select.scalar.eq(self.row.scalar),
            select.vector0.eq(self.vector0),
            select.vector1.eq(self.vector1),
            select.stored.eq(stored),
        ]

    def _add(self, m: Module, addend: AddendPath, registers: RegisterFile) -> None:
        row = self.row
        m.d.comb += [
            addend.fire.eq(self.fire),
            addend.c_address.eq(self._at(row.c)),
            addend.c_used.eq(row.c_used),
            addend.fix.eq(row.fix),
            addend.address.eq(self._at(row.destination)),
            addend.copies.eq(row.copies),
            registers.c_address.eq(addend.read_address),
            addend.read_data.eq(registers.c_data),
            registers.write.eq(addend.write),
            registers.write_address.eq(addend.write_address),
        ]

    def _compute(self, m: Module, lanes: LaneArray) -> None:
        row = self.row
        m.d.comb += [
            lanes.op.eq(row.op),
            lanes.negate_product.eq(row.negate_product),
            lanes.negate_addend.eq(row.negate_addend),
            lanes.fix.eq(row.fix),
            lanes.reciprocal.eq(self.fix_reciprocal),
            lanes.count.eq(self.fix_count),
        ]
