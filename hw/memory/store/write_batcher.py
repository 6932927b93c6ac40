"""The back of the store unit: gathers lines and writes them in bursts."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.lib.below import below
from daedal.hw.memory.axi import BOUNDARY, WriteMaster
from daedal.hw.memory.store.store_layouts import burst_layout, is_outside, line_layout, window_layout
from daedal.hw.memory.store.write_port import WritePort
from daedal.hw.queues.fifo import Fifo

MARGIN = 12
"""Lines that may still come after ``room`` has fallen: the pipeline in front holds no more."""


def lines_held(config: Config) -> int:
    """Lines that can be held: a power of two, with room for a batch and what still comes while it is begun."""
    return 1 << (config.write_batch + 2 * MARGIN - 1).bit_length()


def bursts_held(config: Config) -> int:
    """Bursts that can wait; when there are nearly so many, they are written."""
    return max(lines_held(config) // 2, 2 * MARGIN)


def early_lines(config: Config) -> int:
    """Lines of a batch that is written while nothing is read, or the execute unit has rows for longer than it takes."""
    return min(config.write_batch, config.vector_beats // 4)


class WriteBatcher(wiring.Component):
    """Gathers lines, and when there is a batch of them (``write_batch``) writes what it has, in bursts.

    Takes and writes a line per cycle. Lines of one mapping class that follow each other in memory make one burst of at
    most ``write_burst`` lines that crosses neither 4 KiB nor a page. A burst starts when all its lines are here.

    Members
    -------
    line : ``In(line_layout(config))``, valid : ``In(1)``
        A line to write, taken in this cycle; its number is that of memory, below the mapping class.
    window : ``In(window_layout(config))``, guard : ``In(1)``
        While ``guard`` is on, a line outside of this window is not written, nor is any behind it.
    room : ``Out(1)``
        There is room for more than ``MARGIN`` lines.
    release : ``In(1)``
        Write what is here, do not wait for more.
    early : ``In(1)``
        Reads are not urgent: a shorter batch, of ``early_lines``, is enough.
    mixed : ``In(1)``
        Memory loses no time between reads and writes: write as soon as there is a burst, hold no reads back.
    halt : ``In(1)``
        Start no more bursts.
    write : ``Out(WriteMaster(config))``
        The memory port.
    hold : ``Out(1)``
        Reads are to wait: a batch is being written. All that it takes is here, so nothing
        that this waits for waits for a read.
    empty : ``Out(1)``
        Nothing is here and everything is acknowledged.
    quiet, acknowledged, written, error, refused, error_address
        As of ``WritePort``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "line": In(line_layout(config)),
                "valid": In(1),
                "window": In(window_layout(config)),
                "guard": In(1),
                "room": Out(1, init=1),
                "release": In(1),
                "early": In(1),
                "mixed": In(1),
                "halt": In(1),
                "write": Out(WriteMaster(config)),
                "hold": Out(1),
                "empty": Out(1),
                "quiet": Out(1),
                "acknowledged": Out(1),
                "written": Out(1),
                "error": Out(1),
                "refused": Out(1),
                "error_address": Out(config.address_bits),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self._config
        words = data.StructLayout({"data": 8 * config.bus_bytes, "mask": config.line_steps})
        most_lines, most_bursts = lines_held(config), bursts_held(config)
        m.submodules.lines = lines = Fifo(words, depth=most_lines)
        m.submodules.bursts = bursts = Fifo(burst_layout(config), depth=most_bursts)
        m.submodules.run = run = _Run(config)
        m.submodules.port = port = WritePort(config)
        drain = Signal()
        m.d.comb += [
            lines.i.payload.data.eq(self.line.data),
            lines.i.payload.mask.eq(self.line.mask),
            lines.i.valid.eq(self.valid),
            run.line.eq(self.line.line),
            run.outside.eq(self.guard & is_outside(self.line.line, self.window, config)),
            run.valid.eq(self.valid),
            run.release.eq(self.release),
            port.bursts.payload.eq(bursts.o.payload),
            port.bursts.valid.eq(bursts.o.valid & drain & ~self.halt),
            bursts.o.ready.eq(port.bursts.ready & drain & ~self.halt),
            self.empty.eq((lines.level == 0) & (bursts.level == 0) & run.empty & port.quiet & ~self.valid),
        ]
        connect(m, run.o, bursts.i)
        connect(m, lines.o, port.lines)
        connect(m, port.write, flipped(self.write))
        for name in ("quiet", "acknowledged", "written", "error", "refused", "error_address"):
            m.d.comb += getattr(self, name).eq(getattr(port, name))
        m.d.comb += self.hold.eq(((drain & bursts.o.valid) | port.sending) & ~self.halt & ~self.mixed)
        sizes = (config.write_batch, config.write_burst, early_lines(config))
        batch, burst, early = (~below(lines.level, size) for size in sizes)
        enough = batch | (self.mixed & burst) | (self.early & early)
        m.d.sync += self.room.eq(below(lines.level, most_lines - MARGIN) & below(bursts.level, most_bursts - MARGIN))
        with m.If(enough | self.release | ~self.room):
            m.d.sync += drain.eq(1)
        with m.Elif(bursts.level == 0):
            m.d.sync += drain.eq(0)
        return m


class _Run(wiring.Component):
    """Counts lines that follow each other, a cycle after they came.

    Members: ``line`` is another line's number in cycles with ``valid``, and ``outside`` says that it must not be
    written: lines of a burst are alike in that; ``o`` is a complete burst, valid for one cycle (it must be ready); a
    burst is also complete when ``release`` is on. ``empty``: no line is counted, and none came in the cycle before.
    """

    def __init__(self, config: Config) -> None:
        line = burst_layout(config)["line"].shape
        super().__init__(
            {
                "line": In(line),
                "outside": In(1),
                "valid": In(1),
                "release": In(1),
                "o": Out(stream.Signature(burst_layout(config))),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        burst, next_line = self.o.payload, Signal.like(self.line)
        run, line, valid, idle = Signal.like(burst), Signal.like(self.line), Signal(), Signal()
        outside = Signal()
        m.d.sync += [line.eq(self.line), valid.eq(self.valid), outside.eq(self.outside)]
        page = exact_log2(min(BOUNDARY, self._config.page_bytes)) - exact_log2(self._config.bus_bytes)
        full, joins = Signal(), Signal()
        m.d.comb += [
            burst.eq(run),
            full.eq(run.beats == self._config.write_burst),
            idle.eq(run.beats == 0),
            joins.eq(~idle & ~full & (line == next_line) & line[:page].any() & (outside == run.outside)),
            self.empty.eq(idle & ~valid),
            self.o.valid.eq(~idle & Mux(valid, ~joins, full | self.release)),
        ]
        with m.If(valid):
            m.d.sync += [next_line.eq(line + 1), run.beats.eq(Mux(joins, run.beats + 1, 1))]
            with m.If(~joins):
                m.d.sync += [run.line.eq(line), run.outside.eq(outside)]
        with m.Elif(self.o.valid):
            m.d.sync += run.beats.eq(0)
        return m
