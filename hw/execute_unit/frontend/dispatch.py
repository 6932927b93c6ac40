"""Sends decoded instructions, in order, on their way to the lanes or to the store port."""

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import (
    Kind,
    decoded_layout,
    is_long,
    issue_layout,
    partial_area,
    register_number,
    sent_layout,
)
from daedal.hw.execute_unit.vector.reduction_tree import PartialAreas
from daedal.hw.interfaces import scalar_layout
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import OperandKind


class Dispatch(wiring.Component):
    """Takes one instruction per cycle and hands it on.

    It waits for a scalar if it needs one, and for scalar registers and partial results that are still to come.

    Members
    -------
    i : ``In(stream.Signature(decoded_layout(config)))``
        Instructions, from ``Resolve``. One of kind FAULT stays there.
    scalars : ``In(stream.Signature(scalar_layout(config)))``
        The scalar queue.
    o : ``Out(stream.Signature(sent_layout(config)))``
        Rows.
    result : ``In(stream.Signature(32))``
        Of the iterative unit.
    finished : ``In(1)``; finished_area, target
        The tree of a reduction ends, which was in this area and is for this scalar register.
    reducing : ``Out(1)``; partial_register
        Some reductions have not ended; the register in which their partial results are.
    awaits : ``Out(1)``
        An instruction waited in the cycle before for the scalar of a reduction, or of the iterative unit.
    pending : ``Out(1)``
        A result of the iterative unit is still to come.
    no_scalar, no_result : ``Out(1)``
        An instruction waits in this cycle for a scalar; for an earlier result.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(decoded_layout(config))),
                "scalars": In(stream.Signature(scalar_layout(config))),
                "o": Out(stream.Signature(sent_layout(config))),
                "result": In(stream.Signature(LANE.bits)),
                "finished": In(1),
                "finished_area": In(partial_area(config)),
                "target": In(range(config.scalars)),
                "reducing": Out(1),
                "partial_register": Out(register_number(config)),
                "awaits": Out(1),
                "pending": Out(1),
                "no_scalar": Out(1),
                "no_result": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        kinds = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in Kind}
        for kind, here in kinds.items():
            m.d.comb += here.eq(self.i.valid & (self.i.payload.kind == kind))
        self._row, self._issue = Signal(issue_layout(self.config)), self.o.payload.issue
        self._injects, self._blocked = Signal(), Signal()
        m.d.comb += [self._row.eq(self.i.payload.issue), self._row.scalar.eq(self.scalars.payload.value)]
        self._send(m, kinds)
        if self.config.scalars:
            areas_wait = self._reduce(m, kinds[Kind.REDUCE])
            self._wait_for_scalars(m, kinds, areas_wait)
            self._inject(m)
        return m

    def _send(self, m: Module, kinds: dict[Kind, Signal]) -> None:
        scalar, no_scalar = self.i.payload.needs_scalar, Signal()
        rows = (kinds[Kind.LANES] | kinds[Kind.REDUCE] | kinds[Kind.STORE]) & ~self._blocked
        here = Signal()
        m.d.comb += [
            no_scalar.eq(scalar & ~self.scalars.valid),
            here.eq(rows & ~no_scalar & self.o.ready & ~self._injects),
            self.o.valid.eq(rows & ~no_scalar),
            self._issue.eq(self._row),
            self.o.payload.stores.eq(self.i.payload.stores),
            self.scalars.ready.eq(here & scalar),
            self.i.ready.eq(kinds[Kind.NOTHING] | here),
            self.no_scalar.eq(rows & no_scalar),
            self.no_result.eq(self._blocked),
        ]

    def _reduce(self, m: Module, reduces: Signal) -> Value:
        """A reduction goes to the lanes as a row to its partial results. Returns whether something waits for a place
        there, or because it would write their register.
        """
        m.submodules.areas = areas = PartialAreas(self.config)
        row, o, long = self._row, self._issue, is_long(self.config, self._row.row)
        m.d.comb += [
            areas.register.eq(row.c), areas.context.eq(row.context), areas.long.eq(long),
            areas.take.eq(reduces & self.o.valid & self.o.ready & ~self._injects),
            areas.leave.eq(self.finished), areas.leave_area.eq(self.finished_area),
            self.reducing.eq(areas.any), self.partial_register.eq(areas.present),
        ]  # fmt: skip
        self._taken = areas.take
        # Which place it is, and that it is free, takes a cycle to find out.
        looked, area, free = Signal(), Signal.like(areas.area), Signal()
        m.d.sync += [looked.eq(reduces & ~areas.take), area.eq(areas.area), free.eq(areas.free)]
        with m.If(reduces):
            m.d.comb += [
                o.reduces.eq(1), o.area.eq(area), o.destination.eq(row.c), o.to_scalar.eq(0), o.c_used.eq(1),
            ]  # fmt: skip
        return (~row.to_scalar & areas.any & (areas.present == row.destination)) | (reduces & ~(looked & free))

    def _wait_for_scalars(self, m: Module, kinds: dict[Kind, Signal], areas_wait: Value) -> None:
        """What names a scalar register waits for its result; a store does so elsewhere, but for the iterative unit's.

        Nor is there more than one instruction in the iterative unit.
        """
        row, names, stores = self._row, self.i.payload.scalars, self.i.payload.stores
        self._reduced, self._place = reduced, place = Signal(self.config.scalars), Signal(self.config.scalars)
        iterates = row.iterative != IterativeOp.NONE
        with m.If(self.finished):
            m.d.sync += reduced.bit_select(self.target, 1).eq(0)
        with m.If(self._taken):
            m.d.sync += reduced.bit_select(row.target, 1).eq(1)
        named = (names & (place | Mux(stores, 0, reduced))).any()
        m.d.sync += self.awaits.eq(self.i.valid & named)
        # A quotient that is stored is written as well.
        waits = named | (self.pending & iterates) | (areas_wait & (~stores | row.divides))
        m.d.comb += self._blocked.eq(self.i.valid & ~kinds[Kind.NOTHING] & ~kinds[Kind.FAULT] & waits)

    def _inject(self, m: Module) -> None:
        """Give a result of the iterative unit, when it comes, to the lanes, which write it.

        Until then instructions that name its register are ``blocked``, and others for the iterative unit.
        """
        row, o, register = self._row, self._issue, Signal(range(self.config.scalars))
        # It takes a cycle to see that one is there.
        m.d.sync += self._injects.eq(self.pending & self.result.valid & ~self.result.ready)
        m.d.comb += self.result.ready.eq(self._injects & self.o.ready)
        with m.If(self._injects):
            m.d.comb += [
                self.o.valid.eq(1), self.o.payload.stores.eq(0),
                o.eq(0),
                o.op.eq(LaneOp.MOVE), o.partial.eq(1), o.writes.eq(1),
                o.a.kind.eq(OperandKind.SCALAR), o.scalar.eq(self.result.payload), o.b.zero.eq(1),
                o.to_scalar.eq(1), o.destination.eq(register), o.target.eq(register),
                o.row.tail_bytes.eq(LANE.bytes), o.row.wait.eq(latencies(self.config).read_after_write - 1),
            ]  # fmt: skip
            with m.If(self.o.ready):
                m.d.sync += [self.pending.eq(0), self._place.eq(0)]
        lanes = self.i.payload.kind == Kind.LANES
        with m.If(lanes & self.i.valid & self.i.ready & (row.iterative != IterativeOp.NONE)):
            m.d.sync += [self.pending.eq(1), register.eq(row.target), self._place.eq(1 << row.target)]
