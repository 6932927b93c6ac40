"""Sends decoded instructions, in order, to the lanes or to the store port."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.divide_steps import DivideSteps
from daedal.hw.execute_unit.float_divide import COUNT_BITS
from daedal.hw.execute_unit.lane_op import LaneOp
from daedal.hw.execute_unit.records import Kind, decoded_layout, issue_layout, store_layout
from daedal.hw.interfaces import context_bits, scalar_layout


class EmptyFlags(wiring.Component):
    """One flag for each vector register and context: nothing was written since the launch or since it was cleared.

    Members
    -------
    launch : ``In(1)``
        All registers become empty.
    context
        Whose registers all others are.
    clear : ``In(1)``; clear_register
        That register becomes empty.
    write : ``In(1)``; write_register
        That register becomes not empty, even if it is the one that is cleared.
    a, b, c
        Registers to ask for.
    a_empty, b_empty, c_empty : ``Out(1)``
        Whether they are empty; combinational.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        register = range(config.vector_registers)
        super().__init__(
            {
                "launch": In(1),
                "context": In(context_bits(config)),
                "clear": In(1),
                "clear_register": In(register),
                "write": In(1),
                "write_register": In(register),
                **{name: In(register) for name in "abc"},
                **{f"{name}_empty": Out(1) for name in "abc"},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        registers = self.config.vector_registers
        flags = [Signal(registers, init=~0, name=f"empty{context}") for context in range(self.config.context_count)]
        mine = Signal(registers)
        m.d.comb += mine.eq(Array(flags)[self.context])
        for context, empty in enumerate(flags):
            with m.If(self.clear & (self.context == context)):
                m.d.sync += empty.bit_select(self.clear_register, 1).eq(1)
            with m.If(self.write & (self.context == context)):
                m.d.sync += empty.bit_select(self.write_register, 1).eq(0)
            with m.If(self.launch):
                m.d.sync += empty.eq(~0)
        m.d.comb += [
            self.a_empty.eq(mine.bit_select(self.a, 1)),
            self.b_empty.eq(mine.bit_select(self.b, 1)),
            self.c_empty.eq(mine.bit_select(self.c, 1)),
        ]
        return m


class Dispatch(wiring.Component):
    """Takes one instruction per cycle and hands it on.

    It waits for room, for a scalar if it needs one, and for the row that must first be stored from the
    register which it writes.

    Members
    -------
    launch : ``In(1)``
        All vector registers become empty.
    i : ``In(stream.Signature(decoded_layout(config)))``
        Instructions without faults.
    scalars : ``In(stream.Signature(scalar_layout()))``
        The scalar queue.
    issue : ``Out(stream.Signature(issue_layout(config)))``
        Rows for the lanes.
    store : ``Out(stream.Signature(store_layout(config)))``
        Rows to store.
    held : ``In(1)``; held_register, held_context
        A row still waits to be stored from that register of that context.
    fix_reciprocal : ``Out(32)``; fix_count : ``Out(24)``
        Of the division whose last pass was issued last.
    no_scalar, no_reciprocal : ``Out(1)``
        An instruction waits in this cycle for a scalar, or for the reciprocal of one.
    no_store : ``Out(1)``
        It waits for an earlier store to start.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "launch": In(1),
                "i": In(stream.Signature(decoded_layout(config))),
                "scalars": In(stream.Signature(scalar_layout())),
                "issue": Out(stream.Signature(issue_layout(config))),
                "store": Out(stream.Signature(store_layout(config))),
                "held": In(1),
                "held_register": In(range(config.vector_registers)),
                "held_context": In(context_bits(config)),
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
        m.submodules.empty = self._empty = EmptyFlags(self.config)
        kinds = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in Kind}
        for kind, here in kinds.items():
            m.d.comb += here.eq(self.i.valid & (self.i.payload.kind == kind))
        self._row = Signal(issue_layout(self.config))
        self._complete(m)
        free = Signal()
        held = Cat(self.held_context, self.held_register)
        m.d.comb += free.eq(~self.held | (held != Cat(self._row.context, self._row.destination)))
        self._to_lanes(m, kinds[Kind.LANES], kinds[Kind.DIVIDE], free)
        self._to_store(m, kinds[Kind.STORE])
        m.d.comb += self.i.ready.eq(
            kinds[Kind.NOTHING]
            | (self.store.valid & self.store.ready)
            | (kinds[Kind.LANES] & self.issue.valid & self.issue.ready)
            | self._divide.done
        )
        m.d.comb += [
            self.no_scalar.eq(
                (kinds[Kind.LANES] & self.i.payload.needs_scalar & ~self.scalars.valid) | self._divide.waits
            ),
            self.no_store.eq(
                (kinds[Kind.STORE] & ~self.store.ready) | ((kinds[Kind.LANES] | self._divide.o.valid) & ~free)
            ),
            self.no_reciprocal.eq(kinds[Kind.DIVIDE] & ~self._divide.o.valid & ~self._divide.waits),
        ]
        return m

    def _complete(self, m: Module) -> None:
        """The instruction's row, with what the empty flags say; they change once it is taken to the end."""
        empty, code, row = self._empty, self.i.payload, self._row
        first = code.extreme & empty.c_empty
        taken = self.i.valid & self.i.ready
        m.d.comb += [
            empty.launch.eq(self.launch),
            empty.context.eq(code.issue.context),
            empty.a.eq(code.issue.a.register),
            empty.b.eq(code.issue.b.register),
            empty.c.eq(code.issue.c),
            row.eq(code.issue),
            row.a.zero.eq(empty.a_empty),
            row.b.zero.eq(code.issue.b.zero | empty.b_empty),
            row.c_used.eq(code.issue.c_used & ~empty.c_empty),
            row.scalar.eq(self.scalars.payload.value),
            empty.clear.eq(taken & code.clear),
            empty.clear_register.eq(code.issue.a.register),
            empty.write.eq(taken & Value.cast(code.kind).matches(Kind.LANES, Kind.DIVIDE)),
            empty.write_register.eq(code.issue.destination),
        ]
        with m.If(first):
            m.d.comb += row.op.eq(LaneOp.MOVE)

    def _to_lanes(self, m: Module, lanes: Signal, divides: Signal, free: Signal) -> None:
        divide, scalar = self._divide, self.i.payload.needs_scalar
        m.d.comb += [
            divide.active.eq(divides),
            divide.row.eq(self._row),
            divide.count.payload.eq(self.scalars.payload.value),
            divide.count.valid.eq(self.scalars.valid),
            divide.o.ready.eq(self.issue.ready & free),
            self.fix_reciprocal.eq(divide.fix_reciprocal),
            self.fix_count.eq(divide.fix_count),
            self.issue.valid.eq(free & Mux(divides, divide.o.valid, lanes & (~scalar | self.scalars.valid))),
            self.issue.payload.eq(Mux(divides, divide.o.payload, self._row)),
            self.scalars.ready.eq(Mux(divides, divide.count.ready, self.issue.valid & self.issue.ready & scalar)),
        ]

    def _to_store(self, m: Module, stores: Signal) -> None:
        row = self._row
        m.d.comb += [
            self.store.valid.eq(stores),
            self.store.payload.register.eq(row.a.register),
            self.store.payload.context.eq(row.context),
            self.store.payload.zero.eq(row.a.zero),
            self.store.payload.row.eq(row.row),
        ]
