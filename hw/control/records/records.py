"""The completion record of each launch: what it says, what is counted for it, and its way to memory."""

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.control.faults.faults import KeptFault
from daedal.hw.control.launch_ports import LaunchState, RecordStatus
from daedal.hw.control.records.record_writer import RecordWriter
from daedal.hw.control.records.statistics import MARK_BITS, Statistics
from daedal.hw.interfaces import beat_layout, store_address_layout
from daedal.hw.isa.launch import Cause, Counter, RecordHead, RecordWord, State
from daedal.hw.memory.store.store_layouts import window_layout
from daedal.hw.reports import (
    ACCESS_STALLS,
    EXECUTE_STALLS,
    AccessReport,
    ExecuteReport,
    FabricReport,
    LoaderReport,
    StoreReport,
)

QUEUE_MARKS = ("token", "scalar", "vector0", "vector1", "stream", "store_address")


class QueueMarks(wiring.Signature):
    """High-water marks of the queues, one ``Out(16)`` for each of QUEUE_MARKS, since the execute unit went on to the
    launch that it is at.
    """

    def __init__(self) -> None:
        super().__init__({name: Out(MARK_BITS) for name in QUEUE_MARKS})


class Records(wiring.Component):
    """Writes the present launch's completion record through the store unit, which is the units' at all other times.

    Adds no latency to what units store. A record goes out at ``launch.record_start``; after a fault it is written as
    well, if it is known where to. If the store unit refuses it, it is lost, and ``status.done`` may never come.

    Members
    -------
    launch : ``In(LaunchState())``
    ahead : ``In(1)``
        The launch that the loader is at is not the present one.
    rung : ``In(1)``
        Strobe: the doorbell is rung for a launch that finds the queue empty.
    reset : ``In(1)``
        Units are reset, and the record writer with them; what is known of the present launch stays.
    loader, access, execute, fabric, store : ``In`` of the unit's report
    marks : ``In(QueueMarks())``
    fault : ``In(KeptFault())``
    addresses, data : ``In`` streams, as ``StoreUnit`` takes them
        Of the present launch; not taken while ``launch.record_phase`` is on, nor in the cycle after.
    store_addresses, store_data : ``Out`` streams
        To the store unit.
    window, guard : ``Out(window_layout(config))``, ``Out(1)``
        What the present launch may write, while ``guard`` is on: a record may be anywhere.
    status : ``Out(RecordStatus())``
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        addresses, data = stream.Signature(store_address_layout(config)), stream.Signature(beat_layout(config))
        super().__init__(
            {
                "launch": In(LaunchState()),
                "ahead": In(1),
                "rung": In(1),
                "reset": In(1),
                "loader": In(LoaderReport(config)),
                "access": In(AccessReport(config)),
                "execute": In(ExecuteReport(config)),
                "fabric": In(FabricReport(config)),
                "store": In(StoreReport(config)),
                "marks": In(QueueMarks()),
                "fault": In(KeptFault()),
                "addresses": In(addresses),
                "data": In(data),
                "store_addresses": Out(addresses),
                "store_data": Out(data),
                "window": Out(window_layout(config)),
                "guard": Out(1),
                "status": Out(RecordStatus()),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        writer = RecordWriter(self._config)
        m.submodules.writer = ResetInserter(self.reset)(writer)
        m.submodules.statistics = statistics = Statistics(self._config)
        number = self._follow_launch(m, writer)
        m.d.comb += writer.start.eq(self.launch.record_start)
        m.d.sync += self.status.done.eq(writer.done)  # a cycle late: it comes by way of the store unit
        self._share_store_unit(m, writer)
        self._word(m, writer, statistics, number)
        self._count(m, statistics)
        self._say_whose(m, statistics)
        return m

    def _follow_launch(self, m: Module, writer: RecordWriter) -> Signal:
        """Keep what the record needs of the present launch while the loader is reset, or goes on to the next one.

        Returns the launch's number.
        """
        loader, launch = self.loader, self.launch
        record, number, opened = Signal(self._config.address_bits), Signal(32), Signal()
        read = ~(self.fabric.error & (self.fabric.error_side == loader.side))
        with m.If(loader.begin | self.reset):
            m.d.sync += opened.eq(0)
        with m.Elif(loader.opened & read):
            m.d.sync += opened.eq(1)
        with m.If((launch.running & ~self.ahead) | launch.cancelling):
            m.d.sync += [
                record.eq(loader.record),
                number.eq(loader.number),
                self.window.eq(loader.window),
                self.status.known.eq(opened | (loader.opened & read)),
            ]
        m.d.comb += writer.address.eq(record)
        return number

    def _share_store_unit(self, m: Module, writer: RecordWriter) -> None:
        phase, late = self.launch.record_phase, Signal()  # the payloads' selector has a register of its own
        m.d.sync += late.eq(phase)
        m.d.comb += self.guard.eq(~late)
        for source, kept, target in (
            (self.addresses, writer.store_address, self.store_addresses),
            (self.data, writer.store_data, self.store_data),
        ):
            m.d.comb += [
                target.valid.eq(Mux(phase, kept.valid & late, source.valid & ~late)),
                target.payload.eq(Mux(late, kept.payload.as_value(), source.payload.as_value())),
                kept.ready.eq(target.ready & phase & late),
                source.ready.eq(target.ready & ~phase & ~late),
            ]

    def _word(self, m: Module, writer: RecordWriter, statistics: Statistics, launch: Signal) -> None:
        """The word that the writer asks for, two cycles later."""
        fault, number = self.fault, writer.number
        head, word = Signal(RecordHead), Signal(64)
        cancelled = self.launch.state == State.CANCELLED
        m.d.comb += [
            head.state.eq(self.launch.state),
            head.cause.eq(Mux(cancelled, Cause.NONE, fault.cause)),
            head.nest.eq(fault.nest),
            head.level.eq(fault.level),
            head.queue.eq(fault.queue),
            head.launch.eq(launch),
            statistics.ask.eq(writer.ask),
            statistics.number.eq(number - RecordWord.COUNTERS.value),
            fault.asked.eq(number),
            writer.word.eq(word),
        ]
        with m.If(number == RecordWord.HEAD.value):
            m.d.sync += word.eq(head)
        with m.Else():
            m.d.sync += word.eq(Mux(number >= RecordWord.COUNTERS.value, statistics.value, fault.told))

    def _count(self, m: Module, statistics: Statistics) -> None:
        """Give the counters what they count."""
        access, execute, store = self.access, self.execute, self.store
        counted = {
            Counter.ROWS: access.row,
            Counter.LOOKUPS: access.lookup,
            Counter.BUNDLES: access.bundle,
            Counter.TOKENS: access.token,
            Counter.LINES_READ: self.fabric.beat,
            Counter.LINES_WRITTEN: store.line,
            Counter.BYTES_WRITTEN: store.bytes,
            Counter.LANE_BEATS: execute.lane_beat,
            Counter.BOUNDS_WARNINGS: access.replaced,
            **{Counter[name.upper()]: getattr(access, name) for name in ACCESS_STALLS},
            **{Counter[name.upper()]: getattr(execute, name) for name in EXECUTE_STALLS},
        }
        marks = {Counter[f"MARK_{name.upper()}"]: getattr(self.marks, name) for name in QUEUE_MARKS}
        marks[Counter.MARK_STORE_DATA] = execute.mark_store_data
        for counter, strobe in counted.items():
            m.d.comb += getattr(statistics, f"count_{counter.name.lower()}").eq(strobe)
        for counter, mark in marks.items():
            m.d.comb += getattr(statistics, counter.name.lower()).eq(mark)

    def _say_whose(self, m: Module, statistics: Statistics) -> None:
        """Tell the counters which launch is the one that they count for."""
        launch, store = self.launch, self.store
        m.d.comb += [
            statistics.rung.eq(self.rung),
            statistics.begin.eq(self.loader.begin),
            statistics.begin_side.eq(~self.loader.side),
            statistics.cancel.eq(launch.cancel),
            statistics.take.eq(launch.take),
            statistics.side.eq(launch.side),
            statistics.stop.eq(~launch.running & ~launch.idle),
            statistics.flip.eq(launch.flip),
            statistics.forget.eq(self.reset),
            statistics.acknowledged.eq(launch.running & store.acknowledged),
            statistics.drained.eq(launch.draining & store.idle),
            statistics.side_read.eq(self.fabric.beat_side),
            statistics.side_access.eq(self.access.side),
            statistics.side_execute.eq(launch.execute_side),
            statistics.side_store.eq(launch.side),
        ]
