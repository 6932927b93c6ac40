"""What instructions mean, given those before them: registers behind names that rotate, empty registers, kept rows."""

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.stage_layouts import Kind, decoded_layout, is_long
from daedal.hw.execute_unit.vector.row_store import KeptCount
from daedal.hw.interfaces import context_bits
from daedal.hw.isa.instructions import OperandKind


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


class Rename(wiring.Component):
    """Completes decoded instructions with what depends on those before them only, and not on when they run.

    One instruction per cycle, never stalls; ``o`` is combinational on registers, a cycle after ``i``.

    Members
    -------
    launch : ``In(1)``
        All registers become empty, no rows are kept, names are those of the registers; only while nothing is here.
    valid : ``In(1)``; i : ``In(decoded_layout(config))``
        An instruction.
    o : ``Out(decoded_layout(config))``; o_valid : ``Out(1)``
        The same, complete but for its scalar.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        layout = decoded_layout(config)
        super().__init__({"launch": In(1), "valid": In(1), "i": In(layout), "o": Out(layout), "o_valid": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.empty = self._empty = EmptyFlags(self.config)
        m.submodules.names = names = Names(self.config)
        self._scalar_empty = Signal(self.config.scalars, init=~0)
        self._code = Signal(decoded_layout(self.config))
        m.d.comb += [names.launch.eq(self.launch), names.valid.eq(self.valid), names.i.eq(self.i)]
        m.d.sync += [self.o_valid.eq(self.valid), self._code.eq(names.o), self._code.kind.eq(self._what(m))]
        self._kind = self._code.kind
        self._complete(m)
        self._name_scalars(m)
        return m

    def _name_scalars(self, m: Module) -> None:
        """A bit for each scalar register that the instruction names."""
        row = self._code.issue
        named = [
            (row.a.register, row.a.kind == OperandKind.SCALAR_REGISTER),
            (row.b.register, row.b.kind == OperandKind.SCALAR_REGISTER),
            (row.c, row.c_scalar), (row.destination, row.to_scalar), (row.index, row.indexed),
        ]  # fmt: skip
        for n in range(self.config.scalars):
            m.d.comb += self.o.scalars[n].eq(Cat((number == n) & scalar for number, scalar in named).any())
        m.d.comb += [self.o.issue.target.eq(row.destination)]

    def _what(self, m: Module) -> Signal:
        """What to do with the next instruction: nothing, if it is for a row that is kept and too few are."""
        code, kind = self.i, Signal(Kind)
        m.d.comb += kind.eq(code.kind)
        if self.config.kept_beats:
            m.submodules.kept = kept = KeptCount(self.config)
            taken = self.valid & (code.kind != Kind.NOTHING) & ~(code.issue.kept & ~kept.enough)
            m.d.comb += [
                kept.launch.eq(self.launch), kept.beyond.eq(code.beyond_kept),
                kept.keep.eq(taken & code.issue.keeps), kept.drop.eq(taken & code.issue.kept),
            ]  # fmt: skip
            with m.If(code.issue.kept & ~kept.enough):
                m.d.comb += kind.eq(Kind.NOTHING)
        with m.If(code.bad_token | code.illegal | code.bad_length):
            m.d.comb += kind.eq(Kind.FAULT)
        return kind

    def _complete(self, m: Module) -> None:
        """The instruction's row, with what the empty flags say; they change at once."""
        empty, code, row = self._empty, self._code, self.o.issue
        reduces = self._kind == Kind.REDUCE
        writes = Value.cast(self._kind).matches(Kind.LANES, Kind.REDUCE) & ~code.stores
        clears = code.clear & (self._kind != Kind.NOTHING)
        taken = self.o_valid
        a, b, c = code.issue.a.register, code.issue.b.register, code.issue.c
        destination, index = code.issue.destination, code.issue.index
        a_scalar, b_scalar = (one.kind == OperandKind.SCALAR_REGISTER for one in (code.issue.a, code.issue.b))
        a_empty, b_empty, c_empty = Signal(), Signal(), Signal()
        scalars = self._scalar_empty
        m.d.comb += [
            self.o.eq(code),
            self.o.kind.eq(self._kind),
            empty.launch.eq(self.launch),
            empty.context.eq(code.issue.context),
            empty.a.eq(a),
            empty.b.eq(b),
            empty.c.eq(c),
            a_empty.eq(Mux(a_scalar, scalars.bit_select(a, 1), empty.a_empty)),
            b_empty.eq(Mux(b_scalar, scalars.bit_select(b, 1), empty.b_empty)),
            c_empty.eq(Mux(code.issue.c_scalar, scalars.bit_select(c, 1), empty.c_empty)),
            row.a.zero.eq(a_empty),
            row.b.zero.eq(code.issue.b.zero | b_empty),
            row.c_used.eq(code.issue.c_used & ~c_empty),
            row.indexed.eq(code.issue.indexed & ~scalars.bit_select(index, 1)),
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


class Names(wiring.Component):
    """The registers' own numbers in place of their names, which rotate; combinational.

    Members
    -------
    launch : ``In(1)``
        Names are those of the registers again.
    valid : ``In(1)``; i : ``In(decoded_layout(config))``
        An instruction: it rotates the names of those after it.
    o : ``Out(decoded_layout(config))``
        The same with numbers.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        layout = decoded_layout(config)
        super().__init__({"launch": In(1), "valid": In(1), "i": In(layout), "o": Out(layout)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        row = self.o.issue
        m.d.comb += self.o.eq(self.i)
        places = (row.a.register, row.b.register, row.c, row.destination, row.index)
        m.d.comb += [place.eq(number) for place, number in zip(places, self._renamed(m, self.valid), strict=True)]
        return m

    def _renamed(self, m: Module, taken: Value) -> list[Signal]:
        """The registers' own numbers in place of their names: of ``a``, ``b``, ``c``, the destination and the index."""
        code, config = self.i, self.config
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
