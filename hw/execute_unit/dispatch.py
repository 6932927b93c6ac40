"""Sends decoded instructions, in order, to the lanes or to the store port."""

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import ELEMENT_BYTES, Config
from daedal.hw.execute_unit.divide_steps import DivideSteps
from daedal.hw.execute_unit.float_divide import COUNT_BITS
from daedal.hw.execute_unit.iterative_op import IterativeOp
from daedal.hw.execute_unit.kept_rows import KeptCount
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
    write : ``In(1)``; write_register; write_empty, write_all : ``In(1)``
        That register becomes not empty, or empty after all, even if it is the one that is cleared; of all contexts.
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
                "write_empty": In(1),
                "write_all": In(1),
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
            with m.If(self.write & (self.write_all | (self.context == context))):
                m.d.sync += empty.bit_select(self.write_register, 1).eq(self.write_empty)
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
                "launch": In(1),
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
        m.submodules.empty = self._empty = EmptyFlags(self.config)
        kinds = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in Kind}
        self._kind = self._what(m)
        for kind, here in kinds.items():
            m.d.comb += here.eq(self.i.valid & (self._kind == kind))
        self._row = Signal(issue_layout(self.config))
        self._scalar_empty = Signal(self.config.scalars, init=~0)
        self._injects, self._blocked, self._waits, free = Signal(), Signal(), Signal(), Signal()
        self._complete(m)
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

    def _what(self, m: Module) -> Signal:
        """What to do with the instruction: nothing, if it is for a row that is kept and too few are."""
        code, kind = self.i.payload, Signal(Kind)
        m.d.comb += kind.eq(code.kind)
        if self.config.kept_beats:
            m.submodules.kept = kept = KeptCount(self.config)
            taken = self.i.valid & self.i.ready & (kind != Kind.NOTHING)
            m.d.comb += [
                kept.launch.eq(self.launch), kept.beyond.eq(code.beyond_kept),
                kept.keep.eq(taken & code.issue.keeps), kept.drop.eq(taken & code.issue.kept),
            ]  # fmt: skip
            with m.If(code.issue.kept & ~kept.enough):
                m.d.comb += kind.eq(Kind.NOTHING)
        return kind

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

    def _complete(self, m: Module) -> None:
        """The instruction's row, with what the empty flags say; they change once it is taken to the end."""
        empty, code, row = self._empty, self.i.payload, self._row
        reduces = self._kind == Kind.REDUCE
        writes = Value.cast(self._kind).matches(Kind.LANES, Kind.DIVIDE, Kind.REDUCE)
        clears = code.clear & (self._kind != Kind.NOTHING)
        taken = self.i.valid & self.i.ready
        m.d.comb += row.eq(code.issue)
        a, b, c, destination, index = self._renamed(m, taken)
        a_scalar, b_scalar = (one.kind == OperandKind.SCALAR_REGISTER for one in (code.issue.a, code.issue.b))
        a_empty, b_empty, c_empty = Signal(), Signal(), Signal()
        scalars, indexed = self._scalar_empty, Signal()
        m.d.comb += indexed.eq(code.issue.indexed & ~scalars.bit_select(index, 1))
        m.d.comb += [
            empty.launch.eq(self.launch),
            empty.context.eq(code.issue.context),
            # What is asked of the flags does not go by way of ``row``: simulators take a signal for one thing.
            row.a.register.eq(a),
            row.b.register.eq(b),
            row.c.eq(c),
            row.destination.eq(destination),
            empty.a.eq(a),
            empty.b.eq(b),
            empty.c.eq(c),
            a_empty.eq(Mux(a_scalar, scalars.bit_select(a, 1), empty.a_empty)),
            b_empty.eq(Mux(b_scalar, scalars.bit_select(b, 1), empty.b_empty)),
            c_empty.eq(Mux(code.issue.c_scalar, scalars.bit_select(c, 1), empty.c_empty)),
            row.a.zero.eq(a_empty),
            row.b.zero.eq(code.issue.b.zero | b_empty),
            row.c_used.eq(code.issue.c_used & ~c_empty),
            row.indexed.eq(indexed),
            row.index.eq(index),
            row.scalar.eq(self.scalars.payload.value),
            empty.clear.eq(taken & clears & ~a_scalar),
            empty.clear_register.eq(a),
            # The partial results of a reduction are gone after it.
            empty.write.eq(taken & writes & (~code.issue.to_scalar | reduces)),
            empty.write_register.eq(Mux(reduces, c, destination)),
            empty.write_empty.eq(reduces),
            empty.write_all.eq(reduces & is_long(self.config, code.issue.row)),
        ]
        with m.If(code.extreme & c_empty & ~reduces):
            m.d.comb += row.op.eq(LaneOp.MOVE)
        with m.If(taken & clears & a_scalar):
            m.d.sync += scalars.bit_select(a, 1).eq(1)
        with m.If(taken & writes & code.issue.to_scalar):
            m.d.sync += scalars.bit_select(destination, 1).eq(0)
        with m.If(self.launch):
            m.d.sync += scalars.eq(~0)

    def _renamed(self, m: Module, taken: Value) -> list[Signal]:
        """The registers' own numbers in place of their names: of ``a``, ``b``, ``c``, the destination and the index."""
        code, config = self.i.payload, self.config
        row = code.issue
        names = (
            ("a", row.a.register, row.a.kind == OperandKind.SCALAR_REGISTER),
            ("b", row.b.register, row.b.kind == OperandKind.SCALAR_REGISTER),
            ("c", row.c, row.c_scalar),
            ("destination", row.destination, row.to_scalar),
            ("index", row.index, Const(1)),
        )
        renamed = [Signal.like(number, name=f"{name}_register") for name, number, _ in names]
        m.d.comb += [own.eq(number) for own, (_, number, _) in zip(renamed, names, strict=True)]
        turns = [Signal(range(config.rotating_registers), name=f"turns{n}") for n in range(config.context_count)]
        scalar_turn, mine = Signal(range(config.rotating_scalars)), Signal.like(turns[0])
        m.d.comb += mine.eq(Array(turns)[row.context])
        for context, turn in enumerate(turns):
            with m.If(taken & code.rotate & (row.context == context)):
                m.d.sync += turn.eq(turn + 1)
        with m.If(taken & code.rotate_scalars):
            m.d.sync += scalar_turn.eq(scalar_turn + 1)
        with m.If(self.launch):
            m.d.sync += [turn.eq(0) for turn in (*turns, scalar_turn)]
        for own, (_, number, scalar) in zip(renamed, names, strict=True):
            for kind, turn in ((~scalar, mine), (scalar, scalar_turn)):
                digits = len(turn)
                if digits:
                    with m.If(kind & ~number[digits:].any()):
                        m.d.comb += own.eq((number - turn)[:digits])
        return renamed

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
            self.issue.payload.eq(Mux(divides, divide.o.payload, self._row)),
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
