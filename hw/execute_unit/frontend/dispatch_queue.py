"""Hands rows, in order, to the lanes or to the store port."""

from amaranth import Const, Module, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
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

    A row for the lanes waits for the row that must first be stored from the register which it writes.

    Members
    -------
    i : ``In(stream.Signature(sent_layout(config)))``
        Rows.
    issue : ``Out(stream.Signature(issue_layout(config)))``
        Those for the lanes.
    store : ``Out(stream.Signature(store_layout(config)))``
        Those to store.
    held : ``In(1)``; held_register, held_context
        A row still waits to be stored from that register of that context.
    stored : ``In(scalars)``
        Scalar registers that still wait to be stored.
    reading, long, read_long : ``In(1)``; read_register
        As in ``StorePort``.
    finished : ``In(1)``; target
        A reduction ends, whose result is for this scalar register.
    reduced : ``Out(scalars)``
        Those for which the lanes have a reduction that has not ended.
    waits : ``Out(1)``
        A row waits in this cycle for an earlier store to start.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(sent_layout(config))),
                "issue": Out(stream.Signature(issue_layout(config))),
                "store": Out(stream.Signature(store_layout(config))),
                "held": In(1),
                "held_register": In(register_number(config)),
                "held_context": In(context_bits(config)),
                "stored": In(config.scalars),
                "reading": In(1),
                "long": In(1),
                "read_long": In(1),
                "read_register": In(register_number(config)),
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
        head, valid = skid.o.payload, skid.o.valid
        row, store, issue = head.issue, self.store, self.issue
        waits = self._waits_for_store(row)
        m.d.comb += [
            issue.payload.eq(row),
            issue.valid.eq(valid & ~head.stores & ~waits),
            store.valid.eq(valid & head.stores),
            store.payload.register.eq(row.a.register),
            store.payload.scalar.eq(row.a.kind == OperandKind.SCALAR_REGISTER),
            store.payload.context.eq(row.context),
            store.payload.zero.eq(row.a.zero),
            store.payload.row.eq(row.row),
            skid.o.ready.eq((store.valid & store.ready) | (issue.valid & issue.ready)),
            self.waits.eq((store.valid & ~store.ready) | (valid & ~head.stores & waits)),
            self.empty.eq(skid.empty),
        ]
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
        same = vector & (self.held_register == row.destination)
        same_context = (self.held_context == row.context) | is_long(self.config, row.row)
        waits |= (self.held & same & same_context) | (row.reduces & self.reading)
        if self.config.scalars:
            waits |= ~vector & self.stored.bit_select(row.target, 1)
        if self.config.context_count == 1:
            return waits
        ahead = self.long & (self.held_register == row.destination)
        within = self.read_long & (self.read_register == row.destination)
        return waits | (vector & (row.context != 0) & (ahead | within))
