"""Reads the lines of an array ahead of use."""

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import LoadReturns, line_bits, load_request_layout, returned
from daedal.hw.config.core import Config
from daedal.hw.memory.address_map import burst_mask, line_class


class LineProgress(wiring.Signature):
    """How far a fetcher is, for the readers of its lines.

    ``active``: it has a place in an array; ``exhausted``: it has asked for all lines that it may; ``line``: low
    bits of the next line to ask for; ``got``: for each block of a burst's lines, the lines that are there,
    counted from the block's start. ``write``, ``position``: a line is stored in this cycle.
    """

    def __init__(self, config: Config) -> None:
        blocks = config.lookahead_lines // config.burst_lines
        super().__init__(
            {
                "active": Out(1),
                "exhausted": Out(1),
                "line": Out(range(2 * config.lookahead_lines)),
                "got": Out(data.ArrayLayout(range(config.burst_lines + 1), blocks)),
                "write": Out(1),
                "position": Out(range(config.lookahead_lines)),
            }
        )


class LinePrefetcher(wiring.Component):
    """Asks for lines in the order of addresses, a burst every two cycles, as long as there is room for them.

    Bursts start at a multiple of their length (but the first after a restart), so they cross neither a granule of the
    array's mapping class, which may make them shorter, nor 4 KiB. Of a block of ``burst_lines`` one burst is in flight
    at a time. A line's place in the buffer, and the entry in its tag, are low bits of its number: bursts may
    come back in any order. After a restart, a block still in flight for the old place is waited for before it is used
    again, so stale beats cannot do harm.

    Members
    -------
    running : ``In(1)``
        A nest runs; without, nothing is asked for.
    restart, target : ``In(1)``, ``In(line_bits)``
        Goes on from line ``target``.
    limit : ``In(address_bits)``
        Byte address after the array; lines from there on are not asked for, but the first after a restart.
    both : ``In(1)``
        Two readers share the buffer: the first two after a restart.
    read_line : ``In``
        Low bits of the number of the first line whose place is still in use.
    request : ``Out(stream.Signature(load_request_layout(config)))``
    returns : ``In(LoadReturns(config))``
    progress : ``Out(LineProgress(config))``
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, unit: int) -> None:
        super().__init__(
            {
                "running": In(1),
                "restart": In(1),
                "target": In(line_bits(config)),
                "limit": In(config.address_bits),
                "both": In(1),
                "read_line": In(range(2 * config.lookahead_lines)),
                "request": Out(stream.Signature(load_request_layout(config))),
                "returns": In(LoadReturns(config)),
                "progress": Out(LineProgress(config)),
                "busy": Out(1),
            }
        )
        self._config, self._unit = config, unit
        self._burst_bits = exact_log2(config.burst_lines)
        self._blocks = config.lookahead_lines // config.burst_lines

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bits = line_bits(self._config) + 1  # a line past the last address ends the array, it does not wrap
        line, forced, mask = Signal(bits), Signal(2), Signal(self._burst_bits)
        waiting = Signal(self._blocks)
        m.d.comb += [self.progress.line.eq(line), self.busy.eq(waiting.any())]
        self._ask(m, line, forced, mask, waiting)
        self._receive(m, waiting)
        self._restart(m, line, forced, mask)
        with m.If(~self.running):
            m.d.sync += self.progress.active.eq(0)
        return m

    def _ask(self, m: Module, line: Signal, forced: Signal, mask: Signal, waiting: Signal) -> None:
        """Find the next burst in one cycle, offer it from the next one on."""
        offset, block = line[: self._burst_bits], line[self._burst_bits :][: exact_log2(self._blocks)]
        room, full = Signal(), Signal(range(self._config.burst_lines + 1))
        held = Signal.like(self.read_line)
        left, part, some, fewer = Signal(len(line) + 1), Signal(), Signal(), Signal()
        bus_bits = exact_log2(self._config.bus_bytes)
        request = self.request.payload
        # Whole lines up to the limit, and whether it lies inside of a line, which is one more.
        m.d.sync += part.eq(self.limit[:bus_bits].any())
        m.d.comb += [
            held.eq(self.progress.line - self.read_line),
            full.eq((~offset & mask) + 1),
            room.eq(held + full <= self._config.lookahead_lines),
            left.eq(self.limit[bus_bits:] - line),
            some.eq(~left[-1] & (left.any() | part)),
            fewer.eq((left[: len(full)] < full) & ~left[len(full) :].any()),
        ]
        with m.If(~self.request.valid):
            m.d.sync += [
                self.progress.exhausted.eq(~some & ~forced.any()),
                self.request.valid.eq(
                    self.progress.active & (some | forced.any()) & room & ~waiting.bit_select(block, 1)
                ),
                request.line.eq(line),
                request.beats.eq(Mux(some, Mux(fewer, left[: len(full)] + part, full), 1)),
                request.slot.unit.eq(self._unit),
                request.slot.entry.eq(block),
            ]
        with m.Elif(self.request.ready):
            m.d.sync += [
                self.request.valid.eq(0),
                line.eq(line + request.beats),
                forced.eq((forced == 2) & (request.beats == 1)),
            ]

    def _receive(self, m: Module, waiting: Signal) -> None:
        """Count the lines of each block that have come."""
        mine, entry = returned(m, self._config, self.returns, self._unit)
        most = range(self._config.burst_lines + 1)
        stop, here, more = [Signal(most, name=f"stop{n}") for n in range(self._blocks)], Signal(most), Signal(most)
        request, accepted = self.request.payload, self.request.valid & self.request.ready
        block = entry[: exact_log2(self._blocks)]
        m.d.comb += [
            self.progress.write.eq(mine),
            here.eq(Value.cast(self.progress.got[block])),
            more.eq(here + 1),
            self.progress.position.eq(Cat(here[: self._burst_bits], block)),
        ]
        offset = request.line[: self._burst_bits]
        for number in range(self._blocks):
            got, begins = self.progress.got[number], Signal(name=f"begins{number}")
            m.d.comb += begins.eq(accepted & (request.slot.entry == number))
            with m.If((mine & (block == number)) | begins):
                m.d.sync += [
                    got.eq(Mux(begins, offset, more)),
                    waiting[number].eq(begins | (more != Array(stop)[block])),
                ]
            with m.If(begins):
                m.d.sync += stop[number].eq(offset + request.beats)

    def _restart(self, m: Module, line: Signal, forced: Signal, mask: Signal) -> None:
        with m.If(self.restart):
            m.d.sync += [
                self.progress.active.eq(1),
                self.progress.exhausted.eq(0),
                self.request.valid.eq(0),
                line.eq(self.target),
                mask.eq(burst_mask(line_class(self.target, self._config), self._config, self._config.burst_lines)),
                forced.eq(1 + self.both),
            ]
