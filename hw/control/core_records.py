"""What a launch's record says: its words for the record writer, and what the counters count."""

from typing import TYPE_CHECKING

from amaranth import Module, Mux, Signal

from daedal.hw.isa.launch import Cause, Counter, RecordHead, RecordWord, State

if TYPE_CHECKING:
    from daedal.hw.core import Core

ACCESS_STALLS = (
    Counter.STALL_TOKEN_FULL,
    Counter.STALL_SCALAR_FULL,
    Counter.STALL_STORE_ADDRESS_FULL,
    Counter.STALL_VECTOR_FULL,
    Counter.STALL_PORT_BUSY,
    Counter.STALL_LOAD,
)
EXECUTE_STALLS = (
    Counter.STALL_TOKEN_EMPTY,
    Counter.STALL_VECTOR_EMPTY,
    Counter.STALL_SCALAR_EMPTY,
    Counter.STALL_STORE_FULL,
    Counter.STALL_HAZARD,
)


def write_records(m: Module, core: "Core") -> None:
    """Give the record writer the words of the present launch's record, and the way to memory while it writes."""
    writer, controller, store, statistics = core.writer, core.controller, core.store, core.statistics
    # The loader is reset after a fault; where the record goes must be known all the same.
    record, launch, known, opened = Signal(core.config.address_bits), Signal(32), Signal(), Signal()
    read = ~(core.fabric.error & (core.fabric.error_side == core.loader.side))
    with m.If(core.loader.begin | core.soft_reset):
        m.d.sync += opened.eq(0)
    with m.Elif(core.loader.opened & read):
        m.d.sync += opened.eq(1)
    # So must be what the present launch may write, while the loader goes on to the next one.
    with m.If((controller.running & ~core.ahead) | controller.cancelling):
        m.d.sync += [
            record.eq(core.loader.record), launch.eq(core.loader.number), store.window.eq(core.loader.window),
            known.eq(opened | (core.loader.opened & read)),
        ]  # fmt: skip
    m.d.comb += [
        writer.start.eq(controller.record_start),
        writer.address.eq(record),
        controller.has_record.eq(known),
    ]
    m.d.sync += controller.record_done.eq(writer.done)  # a cycle late: it comes by way of the store unit
    phase, late = controller.record_phase, Signal()  # the payloads' selector has a register of its own
    m.d.sync += late.eq(phase)
    m.d.comb += store.guard.eq(~late)
    for source, kept, target in (
        (core.address, writer.store_address, store.addresses),
        (core.rows_to_store, writer.store_data, store.data),
    ):
        m.d.comb += [
            target.valid.eq(Mux(phase, kept.valid & late, source.valid & ~late)),
            target.payload.eq(Mux(late, kept.payload.as_value(), source.payload.as_value())),
            kept.ready.eq(target.ready & phase & late),
            source.ready.eq(target.ready & ~phase & ~late),
        ]
    head = Signal(RecordHead)
    cancelled = controller.state == State.CANCELLED
    m.d.comb += [
        head.state.eq(controller.state),
        head.cause.eq(Mux(cancelled, Cause.NONE, core.fault.cause)),
        head.nest.eq(core.fault_nest),
        head.level.eq(core.fault.level),
        head.queue.eq(core.fault.queue),
        head.launch.eq(launch),
    ]
    number, late = writer.number, Signal(64)
    m.d.comb += [
        statistics.ask.eq(writer.ask),
        statistics.number.eq(number - RecordWord.COUNTERS.value),
        core.words.asked.eq(number),
    ]
    with m.If(number == RecordWord.HEAD.value):
        m.d.sync += late.eq(head)
    with m.Else():
        m.d.sync += late.eq(Mux(number >= RecordWord.COUNTERS.value, statistics.value, core.words.told))
    m.d.comb += writer.word.eq(late)


def join_statistics(m: Module, core: "Core") -> None:
    """Give the counters what they count, and say which launch it belongs to."""
    statistics, access, execute, store = core.statistics, core.access, core.execute, core.store
    counted = {
        Counter.ROWS: access.row,
        Counter.LOOKUPS: access.lookup,
        Counter.BUNDLES: access.bundle,
        Counter.TOKENS: access.token,
        Counter.LINES_READ: core.fabric.beat,
        Counter.LINES_WRITTEN: store.line,
        Counter.BYTES_WRITTEN: store.bytes,
        Counter.LANE_BEATS: execute.lane_beat,
        Counter.BOUNDS_WARNINGS: access.replaced,
        **{c: getattr(access, c.name.lower()) for c in ACCESS_STALLS},
        **{c: getattr(execute, c.name.lower()) for c in EXECUTE_STALLS},
    }
    marks = {
        Counter.MARK_TOKEN: core.tokens.mark,
        Counter.MARK_SCALAR: core.scalars.mark,
        Counter.MARK_VECTOR0: core.vectors.mark0,
        Counter.MARK_VECTOR1: core.vectors.mark1,
        Counter.MARK_STREAM: core.vectors.mark2,
        Counter.MARK_STORE_ADDRESS: core.addresses.mark,
        Counter.MARK_STORE_DATA: execute.mark_store_data,
    }
    for counter, strobe in counted.items():
        m.d.comb += getattr(statistics, f"count_{counter.name.lower()}").eq(strobe)
    for counter, mark in marks.items():
        m.d.comb += getattr(statistics, counter.name.lower()).eq(mark)
    controller, port = core.controller, core.port
    m.d.comb += [
        statistics.rung.eq(port.rung & (core.launches.level == 0)),
        statistics.begin.eq(core.loader.begin),
        statistics.begin_side.eq(~core.loader.side),
        statistics.cancel.eq(controller.cancel),
        statistics.take.eq(controller.take),
        statistics.side.eq(controller.side),
        statistics.stop.eq(~controller.running & ~controller.idle),
        statistics.flip.eq(controller.flip),
        statistics.forget.eq(core.soft_reset),
        statistics.acknowledged.eq(controller.running & core.write.bvalid & core.write.bready),
        statistics.drained.eq(controller.draining & core.store.idle),
        statistics.side_read.eq(core.fabric.returns.beat.side),
        statistics.side_access.eq(access.side),
        statistics.side_execute.eq(controller.execute_side),
        statistics.side_store.eq(controller.side),
    ]
