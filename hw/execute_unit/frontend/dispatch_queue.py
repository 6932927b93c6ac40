"""Hands rows, in order, to the lanes or to the store port."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import Factor
from daedal.hw.execute_unit.frontend.quotients import Quotients
from daedal.hw.execute_unit.stage_layouts import (
    is_long,
    issue_layout,
    register_number,
    sent_layout,
    store_layout,
)
from daedal.hw.interfaces import context_bits
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.queues.skid_buffer import SkidBuffer


class DispatchQueue(wiring.Component):
    """Registers between Dispatch and what takes its rows: each side's ``ready`` goes no further than here.

    A row for the lanes waits for the row that must first be stored from the register which it writes. Divisions step
    aside and come back later, before others (``Quotients``); then those have to wait that would change what they read,
    and stores, which stay in their order.

    Members
    -------
    i : ``In(stream.Signature(sent_layout(config)))``
        Rows.
    issue : ``Out(stream.Signature(issue_layout(config)))``; factor : ``Out(Factor)``
        Those for the lanes, and the reciprocal for one that divides.
    issuing : ``In(1)``
        The lanes have a row that is not at its end in this cycle.
    store : ``Out(stream.Signature(store_layout(config)))``; apart : ``Out(1)``
        Those to store; whether it came before the row that the lanes have now.
    held : ``In(1)``; held_register, held_context
        A row still waits to be stored from that register of that context.
    stored : ``In(scalars)``
        Scalar registers that still wait to be stored.
    pending, reading, long, read_long : ``In(1)``; read_register
        As in ``StorePort``.
    streaming : ``In(1)``
        As in ``ExecuteUnit``.
    finished : ``In(1)``; target
        A reduction ends, whose result is for this scalar register.
    reduced : ``Out(scalars)``
        Those for which the lanes have a reduction that has not ended.
    waits : ``Out(1)``
        A row waits in this cycle for an earlier store to start, or for a division.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(sent_layout(config))),
                "issue": Out(stream.Signature(issue_layout(config))),
                "factor": Out(Factor),
                "issuing": In(1),
                "store": Out(stream.Signature(store_layout(config))),
                "apart": Out(1),
                "held": In(1),
                "held_register": In(register_number(config)),
                "held_context": In(context_bits(config)),
                "stored": In(config.scalars),
                "pending": In(1),
                "reading": In(1),
                "long": In(1),
                "read_long": In(1),
                "read_register": In(register_number(config)),
                "streaming": In(1),
                "finished": In(1),
                "target": In(range(config.scalars)),
                "reduced": Out(config.scalars),
                "waits": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.skid = skid = SkidBuffer(sent_layout(self.config))
        connect(m, flipped(self.i), skid.i)
        m.submodules.quotients = quotients = Quotients(self.config)
        head, valid, returns = skid.o.payload, skid.o.valid, quotients.issue.valid
        row, others, store, issue = Signal(issue_layout(self.config)), head.issue, self.store, self.issue
        waits = self._waits_for_store(row)
        rows, divides, stores, offered = Signal(), valid & others.divides, Signal(), Signal()
        # A row that is offered came before any that the store stream has only now.
        m.d.sync += offered.eq(rows & ~returns & ~waits & ~issue.ready)
        m.d.comb += [
            quotients.i.payload.eq(head), quotients.i.valid.eq(divides),
            quotients.other.eq(others), quotients.streaming.eq(self.streaming & ~offered),
            quotients.busy.eq(self.issuing), self.factor.eq(quotients.factor),
            row.eq(Mux(returns, quotients.issue.payload, others)),
            rows.eq(valid & ~head.stores & ~others.divides & ~quotients.waits),
            stores.eq(valid & head.stores & ~others.divides & quotients.empty),
            issue.payload.eq(row),
            issue.valid.eq((returns | rows) & ~waits),
            quotients.issue.ready.eq(issue.ready & ~waits),
            store.valid.eq(stores | quotients.store.valid),
            store.payload.register.eq(others.a.register),
            store.payload.scalar.eq(others.a.kind == OperandKind.SCALAR_REGISTER),
            store.payload.context.eq(others.context),
            store.payload.zero.eq(others.a.zero),
            store.payload.row.eq(others.row),
            quotients.store.ready.eq(store.ready), self.apart.eq(quotients.store.valid & quotients.apart),
            skid.o.ready.eq(
                (stores & store.ready) | (rows & ~returns & issue.ready & ~waits) | (divides & quotients.i.ready)
            ),
            self.waits.eq(valid & ~skid.o.ready & ~(rows & ~waits)),
            self.empty.eq(skid.empty & quotients.empty),
        ]  # fmt: skip
        with m.If(quotients.store.valid):
            m.d.comb += store.payload.eq(quotients.store.payload)
        if self.config.scalars:
            with m.If(self.finished):
                m.d.sync += self.reduced.bit_select(self.target, 1).eq(0)
            with m.If(issue.valid & issue.ready & row.reduces):
                m.d.sync += self.reduced.bit_select(row.target, 1).eq(1)
        return m

    def _waits_for_store(self, row: Value) -> Value:
        """Whether a row that must first be stored, or read to its end, is where this one writes.

        A row longer than a context's share lies in the beats of other contexts too. Those it has in common with a row
        of its own context are read before that can write them, once the store has started. Partial results may be in
        any of them.
        """
        vector, waits = ~row.to_scalar & ~row.reduces, Const(0)
        same, same_read = (one == row.destination for one in (self.held_register, self.read_register))
        same_context = (self.held_context == row.context) | is_long(self.config, row.row)
        waits |= self.held & vector & same & same_context
        waits |= row.reduces & ((self.pending & same) | (self.reading & same_read))
        if self.config.scalars:
            waits |= ~vector & self.stored.bit_select(row.target, 1)
        if self.config.context_count == 1:
            return waits
        return waits | (vector & (row.context != 0) & ((self.long & same) | (self.read_long & same_read)))
