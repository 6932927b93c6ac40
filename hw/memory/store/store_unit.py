"""The store unit: rows from the execute unit and the store stream to memory."""

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import FaultPort, beat_stream, store_address_layout
from daedal.hw.isa.elements import STORE_STEP
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.memory.address_map import memory_line, program_value
from daedal.hw.memory.axi import WriteMaster
from daedal.hw.memory.store.line_merger import LineMerger
from daedal.hw.memory.store.row_reader import RowReader
from daedal.hw.memory.store.store_layouts import window_layout
from daedal.hw.memory.store.write_batcher import WriteBatcher
from daedal.hw.reports import StoreReport


class StoreUnit(wiring.Component):
    """Writes rows to any address that is a multiple of a step, merged into lines and lines into bursts.

    One beat per cycle in, one line per cycle out; a row that fits one line takes one cycle, one that starts in
    the middle of a line and goes on into the next takes one more. Rows are written in order; of rows that touch
    the same line, those that follow each other are written together. Lines are mapped before they are gathered, so
    bursts are of lines that follow each other in memory.

    Lines outside of the launch's window are not written: bursts before them are, and then it is a fault.

    After a fault, and while ``halt`` is on, no burst is started, and from the cycle after on nothing more is taken.

    Members
    -------
    addresses : ``In(stream.Signature(store_address_layout(config)))``
        Where rows go; address and size are multiples of STORE_STEP, the size is not 0.
    data, stream_data : ``In(beat_stream(config))``
        Rows from the execute unit, and from the store stream for addresses with ``stream``. Rows of the
        stream have whole granules: what is behind the size that is to be stored is dropped.
    window : ``In(window_layout(config))``, guard : ``In(1)``
        All that may be written, while ``guard`` is on.
    write : ``Out(WriteMaster(config))``
        The memory port.
    hold : ``Out(1)``
        A batch of lines is being written: reads are to wait.
    early : ``In(1)``
        Rows that were read wait for the execute unit, or nothing is read: nothing is lost by a short batch now.
    mixed : ``In(1)``
        Memory loses no time between reads and writes: write as soon as there is a burst, hold no reads back.
    flush : ``In(1)``
        No more addresses will come for now: when none is left and its row complete, write what is gathered. So
        it may be on while rows are still coming. Without it lines are written a batch at a time.
    halt : ``In(1)``
        Take no new work, finish the bursts that have been started.
    taking : ``Out(1)``
        A row is not complete: more of its data are to come.
    report : ``Out(StoreReport(config))``
    fault : ``Out(FaultPort(config))``
        FRAMING: a row is not as long as its address says; ``queue`` is STORE_DATA or STREAM, ``value`` the bytes
        expected, ``address`` that of the beat. MEMORY_ERROR: ``address`` is that of the burst.
        STORE_WINDOW: ``address`` is that of the first line outside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "addresses": In(stream.Signature(store_address_layout(config))),
                "data": In(beat_stream(config)),
                "stream_data": In(beat_stream(config)),
                "window": In(window_layout(config)),
                "guard": In(1),
                "write": Out(WriteMaster(config)),
                "hold": Out(1),
                "early": In(1),
                "mixed": In(1),
                "flush": In(1),
                "halt": In(1),
                "taking": Out(1),
                "report": Out(StoreReport(config)),
                "fault": Out(FaultPort(config)),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.rows = rows = RowReader(self._config)
        m.submodules.merger = merger = LineMerger(self._config)
        m.submodules.batcher = batcher = WriteBatcher(self._config)
        connect(m, flipped(self.addresses), rows.addresses)
        connect(m, flipped(self.data), rows.data)
        connect(m, flipped(self.stream_data), rows.stream_data)
        connect(m, batcher.write, flipped(self.write))
        release, line, line_valid = Signal(), Signal.like(merger.line), Signal()
        m.d.sync += [
            line.eq(merger.line),
            line.line.eq(memory_line(merger.line.line, self._config)),
            line_valid.eq(merger.line_valid),
            # A cycle late: much waits for it, up to the queue of store addresses.
            rows.go.eq(batcher.room & ~self.halt & ~self.fault.valid),
        ]
        m.d.comb += [
            release.eq(self.flush & ~(self.addresses.valid | rows.active)),
            merger.piece.eq(rows.piece),
            merger.valid.eq(rows.valid),
            merger.release.eq(release),
            batcher.line.eq(line),
            batcher.valid.eq(line_valid),
            batcher.window.eq(self.window),
            batcher.guard.eq(self.guard),
            batcher.release.eq(release & merger.empty & ~line_valid),
            batcher.early.eq(self.early),
            batcher.mixed.eq(self.mixed),
            batcher.halt.eq(self.halt | self.fault.valid),
            self.taking.eq(rows.active),
            self.report.idle.eq(~rows.active & merger.empty & ~line_valid & batcher.empty),
            self.hold.eq(batcher.hold),
            self.report.quiet.eq(batcher.quiet),
            self.report.acknowledged.eq(batcher.acknowledged),
            self.report.line.eq(batcher.written),
        ]
        strobed = sum((bit for bit in self.write.wstrb[::STORE_STEP]), Const(0, 1))
        m.d.comb += self.report.bytes.eq(Mux(self.report.line, strobed << exact_log2(STORE_STEP), 0))
        self._report(m, rows, batcher)
        return m

    def _report(self, m: Module, rows: RowReader, batcher: WriteBatcher) -> None:
        fault, error = self.fault.fault, program_value(batcher.error_address, self._config)
        with m.If(~self.fault.valid):
            m.d.sync += self.fault.valid.eq(rows.misframed | batcher.error | batcher.refused)
            with m.If(batcher.error | batcher.refused):
                cause = Mux(batcher.refused, Cause.STORE_WINDOW, Cause.MEMORY_ERROR)
                m.d.sync += [fault.cause.eq(cause), fault.address.eq(error)]
            with m.Elif(rows.misframed):
                m.d.sync += [
                    fault.cause.eq(Cause.FRAMING),
                    fault.queue.eq(Mux(rows.misframed_stream, Queue.STREAM, Queue.STORE_DATA)),
                    fault.value.eq(rows.misframed_size),
                    fault.address.eq(rows.misframed_address),
                ]
