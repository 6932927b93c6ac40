"""Divisions by counts, which wait beside the other rows until the lanes can do them."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import COUNT_BITS, Factor
from daedal.hw.execute_unit.fpu.float_reciprocal import Reciprocal
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import (
    is_long,
    issue_layout,
    register_number,
    row_layout,
    sent_layout,
    store_layout,
)
from daedal.hw.interfaces import context_bits
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.up_down_counter import up_down


class Quotients(wiring.Component):
    """Holds divisions, at most one of each context, and sends them to the lanes in order, between other rows.

    The dividend is what the row before has made, which takes ``read_after_write`` cycles: rows of other bags go on
    meanwhile, and so do those of the same context, as long as they do not write the dividend's register. The quotient
    goes into that register, and is stored from there. A dividend that is its own quotient, because the count is 1 or 0
    or the register empty, is stored at once. A division whose quotient stays in a register holds up all rows behind it.

    Members
    -------
    i : ``In(stream.Signature(sent_layout(config)))``
        Divisions, with the count in ``issue.scalar``.
    busy : ``In(1)``
        The lanes have a row that came before them, and that is not at its end in this cycle.
    issue : ``Out(stream.Signature(issue_layout(config)))``; factor : ``Out(Factor)``
        Rows for the lanes, and the reciprocal for each.
    store : ``Out(stream.Signature(store_layout(config)))``; apart : ``Out(1)``
        Rows to store; whether what is issued now need not be waited for.
    other : ``In(issue_layout(config))``; waits : ``Out(1)``
        A row that came behind all that are held; whether it must not be issued yet.
    streaming : ``In(1)``
        As in ``ExecuteUnit``: what pops a row must not be issued before what is held.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(sent_layout(config))),
                "busy": In(1),
                "issue": Out(stream.Signature(issue_layout(config))),
                "factor": Out(Factor),
                "store": Out(stream.Signature(store_layout(config))),
                "apart": Out(1),
                "other": In(issue_layout(config)),
                "waits": Out(1),
                "streaming": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, row = self.config, self.i.payload.issue
        # No more than one of each context is held.
        m.submodules.held = held = Fifo(self._layout(), depth=max(2, config.context_count))
        one, few, pending, ripe = held.o.payload, Signal(), Signal(), Signal()
        push, pop, taken = Signal(), held.o.valid & held.o.ready, self.issue.valid & self.issue.ready
        issued, after, holds = Signal(), Signal(), Signal()
        m.d.comb += [
            few.eq(~row.scalar[1:COUNT_BITS].any() | row.a.zero),
            push.eq(self.i.valid & self.i.ready),
            held.i.valid.eq(push),
            held.i.payload.register.eq(row.a.register), held.i.payload.destination.eq(row.destination),
            held.i.payload.zero.eq(row.a.zero), held.i.payload.moves.eq(few),
            held.i.payload.stores.eq(self.i.payload.stores), held.i.payload.context.eq(row.context),
            held.i.payload.row.eq(row.row), held.i.payload.count.eq(row.scalar),
            self.i.ready.eq(~holds & ~pending),
            # The row before the last one may still be under way.
            self.store.valid.eq(
                held.o.valid & one.stores & Mux(one.moves, ~(pending & (held.level == 1)), issued)
            ),
            self.apart.eq(~after),
            held.o.ready.eq(Mux(one.stores, self.store.valid & self.store.ready, taken)),
        ]  # fmt: skip
        m.d.sync += [issued.eq((issued | taken) & ~pop), after.eq(taken | (after & self.busy))]
        self._ripen(m, push, ~(few & self.i.payload.stores), taken, pending, ripe)
        known = self._reciprocal(m, held.o, taken, pop)
        offers = Signal()
        m.d.sync += offers.eq(held.o.valid & ripe & known & ~(one.stores & one.moves) & ~issued & ~taken)
        m.d.comb += self.issue.valid.eq(offers)
        m.d.comb += holds.eq(self._hold(m, push, pop, one))
        self._rows(m, one)
        return m

    def _layout(self) -> data.StructLayout:
        """A division; ``moves``: the quotient is the dividend."""
        register = register_number(self.config)
        return data.StructLayout(
            {
                "register": register, "destination": register, "zero": 1, "moves": 1, "stores": 1,
                "context": context_bits(self.config), "row": row_layout(self.config), "count": COUNT_BITS,
            }
        )  # fmt: skip

    def _ripen(self, m: Module, push: Value, passes: Value, taken: Value, pending: Signal, ripe: Signal) -> None:
        """Find out when the results are there of what was issued before a division that ``passes`` the lanes: some
        cycles after the last beat. ``pending``: that beat is still to come for the division that came last.
        """
        waited, ready = (
            Signal(latencies(self.config).read_after_write - 3),
            Signal(range(max(2, self.config.context_count) + 1)),
        )
        asks, passed = pending | push, Signal()
        with m.If(push):
            m.d.sync += passed.eq(passes)
        ends = ~self.busy & Mux(pending, passed, push & passes)
        m.d.sync += [pending.eq(asks & self.busy), waited.eq(Cat(ends, waited))]
        up_down(m, ready, up=waited[-1], down=taken)
        m.d.comb += ripe.eq(ready.any())

    def _reciprocal(self, m: Module, held: stream.Interface, taken: Value, pop: Value) -> Value:
        """Ask for the reciprocal of the first division's count. Returns whether it is there, or not wanted."""
        m.submodules.reciprocal = reciprocal = Reciprocal()
        asked = Signal()
        m.d.comb += [
            reciprocal.i.payload.eq(held.payload.count),
            reciprocal.i.valid.eq(held.valid & ~held.payload.moves & ~asked),
            reciprocal.o.ready.eq(taken & ~held.payload.moves),
            self.factor.eq(reciprocal.o.payload),
        ]
        m.d.sync += asked.eq((asked | (reciprocal.i.valid & reciprocal.i.ready)) & ~pop)
        return reciprocal.o.valid | held.payload.moves

    def _hold(self, m: Module, push: Value, pop: Value, one: data.View) -> Value:
        """What is held, by contexts, and for what it holds up other rows. Returns whether the next one must wait."""
        contexts, other, new = self.config.context_count, self.other, self.i.payload.issue
        held, long, blocks = Signal(contexts), Signal(), Signal()
        registers = [Signal(register_number(self.config), name=f"register{n}") for n in range(contexts)]
        for n, register in enumerate(registers):
            with m.If(pop & (one.context == n)):
                m.d.sync += held[n].eq(0)
            with m.If(push & (new.context == n)):
                m.d.sync += [held[n].eq(1), register.eq(new.a.register)]
        with m.If(push & (new.context == 0)):
            m.d.sync += long.eq(is_long(self.config, new.row))
        with m.If(push & ~self.i.payload.stores):
            m.d.sync += blocks.eq(1)
        with m.If(pop & ~one.stores):
            m.d.sync += blocks.eq(0)
        writes = ~other.to_scalar & (Array(registers)[other.context] == other.destination)
        pops = (other.a.kind == OperandKind.QUEUE) | (other.b.kind == OperandKind.QUEUE)
        others: Value = pops & self.streaming & held.any()
        if contexts > 1:
            # A long row has beats of all contexts.
            others |= (is_long(self.config, other.row) & held[1:].any()) | ((other.context != 0) & held[0] & long)
        m.d.comb += [
            self.empty.eq(~held.any()),
            self.waits.eq(
                (held.bit_select(other.context, 1) & writes) | others | (other.reduces & held.any()) | blocks
            ),
        ]
        between = (is_long(self.config, new.row) & held.any()) | (held[0] & long)
        return held.bit_select(new.context, 1) | blocks | (between if contexts > 1 else 0)

    def _rows(self, m: Module, one: data.View) -> None:
        """The rows of the first division: for the lanes, and to store."""
        row, store = self.issue.payload, self.store.payload
        m.d.comb += [
            row.op.eq(Mux(one.moves, LaneOp.MOVE, LaneOp.MUL)),
            row.a.kind.eq(OperandKind.REGISTER), row.a.register.eq(one.register), row.a.zero.eq(one.zero),
            row.b.kind.eq(OperandKind.SCALAR), row.b.zero.eq(0), row.divides.eq(~one.moves),
            row.destination.eq(one.destination), row.target.eq(one.destination),
            row.writes.eq(1), row.partial.eq(one.stores), row.context.eq(one.context), row.row.eq(one.row),
            store.register.eq(one.register), store.zero.eq(one.zero),
            store.context.eq(one.context), store.row.eq(one.row),
        ]  # fmt: skip
