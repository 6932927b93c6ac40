"""The event unit: from bundles to tokens, scalars, store addresses and row fetches."""

from amaranth.hdl import Elaboratable, Module, Mux, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.events.bounds_warnings import BoundsWarnings
from daedal.hw.access_unit.events.bundle_store import BundleStore
from daedal.hw.access_unit.events.row_fetch import RowFetch
from daedal.hw.access_unit.events.step_issue import StepIssue
from daedal.hw.access_unit.events.step_pipeline import StepPipeline
from daedal.hw.access_unit.events.step_sequencer import StepSequencer
from daedal.hw.access_unit.levels.serial.serial_steps import SerialSteps
from daedal.hw.config.core import Config
from daedal.hw.interfaces import (
    ConfigBus,
    FaultPort,
    bundle_layout,
    read_request_layout,
    scalar_layout,
    slot_bits,
    store_address_layout,
    token_layout,
)
from daedal.hw.isa.launch import Cause
from daedal.hw.queues.reorder_buffer import reserve_layout

STROBES = ("row", "token", "stall_scalar_full", "stall_store_address_full", "stall_token_full",
           "stall_vector_full", "stall_port_busy")  # fmt: skip


class EventUnit(wiring.Component):
    """Does the steps of all events of all bundles, in order: a step per cycle, a bundle without steps per cycle.

    If all levels are serial, steps take as long as ``SerialSteps`` says.

    Members
    -------
    config_bus, halt, tokens, scalars, store_addresses, requests, reserve, slot, fault, strobes
        As in ``AccessUnit``; ``requests`` are those of rows.
    i : ``In(stream.Signature(bundle_layout(config)))``
    deal : ``In(1)``
        Bundles are dealt to contexts.
    requests_taken : ``In(1)``
        The requests that were handed out have left the access unit; a fault waits for that.
    order_values : ``In(64).array(levels)``
        As in ``StepIssue``.
    check_values, warns : ``In(64).array(levels)``, ``In(levels)``
        As ``values`` and ``warns`` in ``BoundsWarnings``.
    replaced, warning, warned_value : ``Out(range(levels + 1))``, ``Out(1)``, ``Out(64)``
        As ``count``, ``warning`` and ``value`` there.
    empty : ``Out(1)``
        Nothing inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "halt": In(1),
                "deal": In(1),
                "requests_taken": In(1),
                "i": In(stream.Signature(bundle_layout(config))),
                "order_values": In(64).array(config.levels),
                "check_values": In(64).array(config.levels),
                "warns": In(config.levels),
                "replaced": Out(range(config.levels + 1)),
                "warning": Out(1),
                "warned_value": Out(64),
                "tokens": Out(stream.Signature(token_layout())),
                "scalars": Out(stream.Signature(scalar_layout(config))),
                "store_addresses": Out(stream.Signature(store_address_layout(config))),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "reserve": Out(stream.Signature(reserve_layout())),
                "slot": In(slot_bits(config)),
                "fault": Out(FaultPort(config)),
                "empty": Out(1),
                **{name: Out(1) for name in STROBES},
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.sequencer = sequencer = StepSequencer(self._config)
        m.submodules.pipeline = pipeline = (SerialSteps if self._config.is_serial else StepPipeline)(self._config)
        m.submodules.issue = issue = StepIssue(self._config)
        m.submodules.rows = rows = RowFetch(self._config)
        for unit in (sequencer, pipeline):
            connect(m, flipped(self.config_bus), unit.config_bus)
        connect(m, flipped(self.i), sequencer.i)
        m.submodules.bundles = bundles = BundleStore(self._config)
        m.d.comb += [
            sequencer.deal.eq(self.deal),
            bundles.write.eq(self.i.valid & self.i.ready),
            bundles.write_entry.eq(sequencer.i_entry),
            bundles.registers.eq(self.i.payload.registers),
            bundles.entry.eq(Mux(issue.stopped, issue.entry, pipeline.entry)),
            pipeline.registers.eq(bundles.kept),
            issue.registers.eq(bundles.kept),
            pipeline.valid.eq(sequencer.o.valid & sequencer.o.ready),
            pipeline.i.eq(sequencer.o.payload),
            sequencer.o.ready.eq(issue.room & pipeline.ready),
            sequencer.stop.eq(issue.stopped),
            issue.valid.eq(pipeline.o_valid),
            issue.i.eq(pipeline.o),
        ]
        connect(m, issue.rows, rows.rows)
        for name in ("tokens", "scalars", "store_addresses", "fault"):
            connect(m, getattr(issue, name), flipped(getattr(self, name)))
        for name in ("requests", "reserve"):
            connect(m, getattr(rows, name), flipped(getattr(self, name)))
        m.d.comb += [to.eq(of) for to, of in zip(issue.order_values, self.order_values, strict=True)]
        self._replacements(m, issue)
        m.d.comb += [
            rows.slot.eq(self.slot),
            rows.halt.eq(self.halt),
            issue.halt.eq(self.halt),
            issue.rows_empty.eq(rows.empty & self.requests_taken),
            self.empty.eq(sequencer.empty & pipeline.empty & issue.empty & rows.empty),
        ]
        self._strobes(m, sequencer.o.valid, issue, rows)
        return m

    def _replacements(self, m: Module, issue: StepIssue) -> None:
        m.submodules.replacements = replacements = BoundsWarnings(self._config)
        flags = self.i.payload.flags
        m.d.comb += [
            replacements.bundle.eq(self.i.valid & self.i.ready & (flags.cause == Cause.NONE)),
            replacements.replaced.eq(flags.replaced),
            replacements.warns.eq(self.warns),
            *(to.eq(of) for to, of in zip(replacements.values, self.check_values, strict=True)),
            replacements.level.eq(issue.fault.fault.level),
            issue.check_value.eq(replacements.value),
            self.replaced.eq(replacements.count),
            self.warning.eq(replacements.warning),
            self.warned_value.eq(replacements.value),
        ]

    def _strobes(self, m: Module, waits: Value, issue: StepIssue, rows: RowFetch) -> None:
        sources: dict[str, Value] = {
            "row": issue.row,
            "token": issue.token,
            "stall_scalar_full": waits & issue.scalar_full,
            "stall_store_address_full": waits & issue.store_full,
            "stall_token_full": waits & issue.token_full,
            "stall_vector_full": rows.no_slot,
            "stall_port_busy": rows.no_port,
        }
        m.d.comb += [getattr(self, name).eq(source) for name, source in sources.items()]
