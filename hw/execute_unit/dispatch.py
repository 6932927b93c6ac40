"""Sends decoded instructions, in order, to the lanes or to the store port."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import ELEMENT_BYTES, Config
from daedal.hw.execute_unit.divide_steps import DivideSteps
from daedal.hw.execute_unit.float_divide import COUNT_BITS
from daedal.hw.execute_unit.iterative_op import IterativeOp
from daedal.hw.execute_unit.lane_op import LaneOp
from daedal.hw.execute_unit.records import (
    Kind,
    decoded_layout,
    is_long,
    issue_layout,
    partial_area,
    register_number,
    store_layout,
)
from daedal.hw.execute_unit.reduce_tree import PartialAreas
from daedal.hw.execute_unit.schedule import READ_AFTER_WRITE
from daedal.hw.interfaces import context_bits, scalar_layout
from daedal.hw.isa.execute import OperandKind


class Dispatch(wiring.Component):
    """Takes one instruction per cycle and hands it on.

    It waits for room, for a scalar if it needs one, and for the row that must first be stored from the
    register which it writes.

    Members
    -------
    i : ``In(stream.Signature(decoded_layout(config)))``
        Instructions without faults, from ``Resolve``.
    scalars : ``In(stream.Signature(scalar_layout(config)))``
        The scalar queue.
    issue : ``Out(stream.Signature(issue_layout(config)))``
        Rows for the lanes.
    store : ``Out(stream.Signature(store_layout(config)))``
        Rows to store.
    result : ``In(stream.Signature(32))``
        Of the iterative unit.
    held : ``In(1)``; held_register, held_context
        A row still waits to be stored from that register of that context.
    stored : ``In(scalars)``
        Scalar registers that still wait to be stored.
    reading, long, read_long : ``In(1)``; read_register
        As in ``StorePort``.
    finished : ``In(1)``; finished_area, target
        The tree of a reduction ends, which was in this area and is for this scalar register.
    reducing : ``Out(1)``; partial_register; reduced : ``Out(scalars)``
        Some reductions have not ended; the register in which their partial results are; these scalar registers wait for
        them.
    pending : ``Out(1)``
        A result of the iterative unit is still to come.
    fix_reciprocal : ``Out(32)``; fix_count : ``Out(24)``
        Of the division whose last pass was issued last.
    no_scalar, no_reciprocal : ``Out(1)``
        An instruction waits in this cycle for a scalar; for the reciprocal of one, or the iterative unit.
    no_store : ``Out(1)``
        It waits for an earlier store to start.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(decoded_layout(config))),
                "scalars": In(stream.Signature(scalar_layout(config))),
                "issue": Out(stream.Signature(issue_layout(config))),
                "store": Out(stream.Signature(store_layout(config))),
                "held": In(1),
                "result": In(stream.Signature(32)),
                "held_register": In(register_number(config)),
                "stored": In(config.scalars),
                "reading": In(1),
                "finished": In(1),
                "finished_area": In(partial_area(config)),
                "target": In(range(config.scalars)),
                "reducing": Out(1),
                "partial_register": Out(register_number(config)),
                "reduced": Out(config.scalars),
                "pending": Out(1),
                "held_context": In(context_bits(config)),
                "long": In(1),
                "read_long": In(1),
                "read_register": In(register_number(config)),
                "fix_reciprocal": Out(32),
                "fix_count": Out(COUNT_BITS),
                "no_scalar": Out(1),
                "no_store": Out(1),
                "no_reciprocal": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.divide = self._divide = DivideSteps(self.config)
        kinds = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in Kind}
        self._kind = self.i.payload.kind
        for kind, here in kinds.items():
            m.d.comb += here.eq(self.i.valid & (self._kind == kind))
        self._row = Signal(issue_layout(self.config))
        self._injects, self._blocked, self._waits, free = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [self._row.eq(self.i.payload.issue), self._row.scalar.eq(self.scalars.payload.value)]
        m.d.comb += free.eq(~self._waits_for_store(kinds[Kind.REDUCE]))
        self._to_lanes(m, kinds, free)
        self._to_store(m, kinds[Kind.STORE])
        if self.config.scalars:
            self._reduce(m, kinds[Kind.REDUCE])
            self._inject(m)
        m.d.comb += self.no_store.eq(
            (kinds[Kind.STORE] & ~self._blocked & ~self.store.ready)
            | ((kinds[Kind.LANES] | kinds[Kind.REDUCE] | self._divide.o.valid) & ~free)
        )
        return m

    def _waits_for_store(self, reduces: Value) -> Value:
        """Whether a row that must first be stored, or read to its end, is where this one writes.

        A row longer than a context's share lies in the beats of other contexts too. Those it has in common with a row
        of its own context are read before that can write them, once the store has started. Partial results may be in
        any of them.
        """
        row = self._row
        same = ~row.to_scalar & (self.held_register == row.destination)
        same_context = (self.held_context == row.context) | is_long(self.config, row.row)
        waits = (self.held & same & same_context) | (reduces & self.reading)
        if self.config.scalars:
            waits |= row.to_scalar & self.stored.bit_select(row.destination, 1)
        if self.config.context_count == 1:
            return waits
        ahead = self.long & (self.held_register == row.destination)
        within = self.read_long & (self.read_register == row.destination)
        return waits | (~row.to_scalar & (row.context != 0) & (ahead | within))

    def _to_lanes(self, m: Module, kinds: dict[Kind, Signal], free: Signal) -> None:
        divide, scalar = self._divide, self.i.payload.needs_scalar
        lanes = (kinds[Kind.LANES] | kinds[Kind.REDUCE]) & ~self._blocked
        divides = kinds[Kind.DIVIDE] & ~self._waits
        here, enough = Signal(), ~scalar | self.scalars.valid
        m.d.comb += [
            divide.active.eq(divides),
            divide.row.eq(self._row),
            divide.count.payload.eq(self.scalars.payload.value),
            divide.count.valid.eq(self.scalars.valid),
            divide.o.ready.eq(self.issue.ready & free & ~self._injects),
            self.fix_reciprocal.eq(divide.fix_reciprocal),
            self.fix_count.eq(divide.fix_count),
            here.eq(lanes & enough & free & self.issue.ready & ~self._injects),
            self.issue.valid.eq(free & Mux(divides, divide.o.valid, lanes & enough)),
            self.issue.payload.eq(Mux(kinds[Kind.DIVIDE], divide.o.payload, self._row)),
            self.scalars.ready.eq(Mux(divides, divide.count.ready, here & scalar)),
            self.i.ready.eq(kinds[Kind.NOTHING] | (self.store.valid & self.store.ready) | here | self._divide.done),
            self.no_scalar.eq((lanes & scalar & ~self.scalars.valid) | self._divide.waits),
            self.no_reciprocal.eq((divides & ~self._divide.o.valid & ~self._divide.waits) | self._blocked),
        ]

    def _reduce(self, m: Module, reduces: Signal) -> None:
        """A reduction goes to the lanes as a row to its partial results. What names its scalar register waits, as does
        what writes the register of the partial results; only a store waits elsewhere.
        """
        m.submodules.areas = areas = PartialAreas(self.config)
        row, o, long = self._row, self.issue.payload, is_long(self.config, self._row.row)
        taken = Signal()
        m.d.comb += [
            taken.eq(reduces & self.issue.valid & self.issue.ready & ~self._injects),
            areas.register.eq(row.c), areas.context.eq(row.context), areas.long.eq(long), areas.take.eq(taken),
            areas.leave.eq(self.finished), areas.leave_area.eq(self.finished_area),
            self.reducing.eq(areas.any), self.partial_register.eq(areas.present),
        ]  # fmt: skip
        with m.If(reduces):
            m.d.comb += [
                o.reduces.eq(1), o.area.eq(areas.area), o.target.eq(row.destination),
                o.destination.eq(row.c), o.to_scalar.eq(0), o.c_used.eq(1),
            ]  # fmt: skip
        with m.If(self.finished):
            m.d.sync += self.reduced.bit_select(self.target, 1).eq(0)
        with m.If(taken):
            m.d.sync += self.reduced.bit_select(row.destination, 1).eq(1)
        a_scalar, b_scalar = (one.kind == OperandKind.SCALAR_REGISTER for one in (row.a, row.b))
        waits = Cat(
            a_scalar & self.reduced.bit_select(row.a.register, 1),
            b_scalar & self.reduced.bit_select(row.b.register, 1),
            row.c_scalar & self.reduced.bit_select(row.c, 1),
            row.to_scalar & self.reduced.bit_select(row.destination, 1),
            row.indexed & self.reduced.bit_select(row.index, 1),
            ~row.to_scalar & areas.any & (areas.present == row.destination),
            reduces & ~areas.free,
        ).any()
        kind = self._kind
        m.d.comb += self._waits.eq(self.i.valid & (kind != Kind.NOTHING) & (kind != Kind.STORE) & waits)

    def _inject(self, m: Module) -> None:
        """Give a result of the iterative unit, when it comes, to the lanes, which write it.

        Until then instructions that name its register are ``blocked``, and others for the iterative unit.
        """
        place, row = Signal(range(self.config.scalars), name="place"), self._row
        iterates = row.iterative != IterativeOp.NONE
        mine = [
            (row.a.kind == OperandKind.SCALAR_REGISTER) & (row.a.register == place),
            (row.b.kind == OperandKind.SCALAR_REGISTER) & (row.b.register == place),
            row.c_scalar & (row.c == place),
            row.to_scalar & (row.destination == place),
            row.indexed & (row.index == place),
        ]
        uses = self.pending & (Cat(mine).any() | iterates)
        m.d.comb += [
            self._injects.eq(self.pending & self.result.valid),
            self.result.ready.eq(self.pending & self.issue.ready),
            self._blocked.eq((self.i.valid & (self._kind != Kind.NOTHING) & uses) | self._waits),
        ]
        with m.If(self._injects):
            o = self.issue.payload
            m.d.comb += [
                self.issue.valid.eq(1),
                o.eq(0),
                o.op.eq(LaneOp.MOVE), o.partial.eq(1), o.copies.as_value().eq(~0),
                o.a.kind.eq(OperandKind.SCALAR), o.scalar.eq(self.result.payload), o.b.zero.eq(1),
                o.to_scalar.eq(1), o.destination.eq(place),
                o.row.tail_bytes.eq(ELEMENT_BYTES), o.row.wait.eq(READ_AFTER_WRITE - 1),
            ]  # fmt: skip
            with m.If(self.issue.ready):
                m.d.sync += self.pending.eq(0)
        with m.If((self._kind == Kind.LANES) & self.i.valid & self.i.ready & iterates):
            m.d.sync += [self.pending.eq(1), place.eq(row.destination)]

    def _to_store(self, m: Module, stores: Signal) -> None:
        row = self._row
        m.d.comb += [
            self.store.valid.eq(stores & ~self._blocked),
            self.store.payload.register.eq(row.a.register),
            self.store.payload.scalar.eq(row.a.kind == OperandKind.SCALAR_REGISTER),
            self.store.payload.context.eq(row.context),
            self.store.payload.zero.eq(row.a.zero),
            self.store.payload.row.eq(row.row),
        ]
