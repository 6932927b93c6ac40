"""The reading side of a sequential load's buffer."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.bundles import line_bits
from daedal.hw.access_unit.line_fetcher import LineProgress
from daedal.hw.config import Config


class LineReader(wiring.Component):
    """Keeps the present line of an array and the next one at hand; moves on by a line when the next one is used.

    One line per cycle. A wanted line further ahead is reached by skipping lines, one in two cycles; any other asks
    for a restart.

    Members
    -------
    running : ``In(1)``
        A nest runs; without, all lines are forgotten.
    need, target : ``In(1)``, ``In(line_bits)``
        The line wanted, steady until ``take`` or not wanted any more.
    hit, second : ``Out(1)``
        It is at hand (or none is needed), and it is the next one, not the present one.
    take : ``In(1)``
        It is used (only with ``hit``).
    present, next : ``Out(8 * bus_bytes)``
        The lines at hand.
    miss : ``Out(1)``
        The wanted line will not come without a restart.
    restart, start : ``In(1)``, ``In(line_bits)``
        The fetcher goes on from line ``start``.
    progress : ``In(LineProgress(config))``
        Of the fetcher that fills this buffer.
    data : ``In(8 * bus_bytes)``
        The line that is stored when ``progress.write``.
    read_line : ``Out``
        Low bits of the number of the next line to be taken from the buffer.
    """

    def __init__(self, config: Config) -> None:
        bits = 8 * config.bus_bytes
        super().__init__(
            {
                "running": In(1),
                "need": In(1),
                "target": In(line_bits(config)),
                "hit": Out(1),
                "second": Out(1),
                "take": In(1),
                "present": Out(bits),
                "next": Out(bits),
                "miss": Out(1),
                "restart": In(1),
                "start": In(line_bits(config)),
                "progress": In(LineProgress(config)),
                "data": In(bits),
                "read_line": Out(range(2 * config.lookahead_lines)),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        place, after = Signal(line_bits(self._config)), Signal(line_bits(self._config))
        full = Signal(3)  # the present line, the next one, the one at the memory's output
        skip, pop = Signal(), Signal()
        self._lookup(m, place, after, full)
        self._decide(m, place, full, skip)
        m.d.comb += pop.eq((self.take & self.need & self.second) | skip)
        self._advance(m, full, pop)
        with m.If(pop):
            m.d.sync += [place.eq(after), after.eq(after + 1)]
        with m.If(self.restart):
            m.d.sync += [place.eq(self.start), after.eq(self.start + 1), self.read_line.eq(self.start)]
        with m.If(self.restart | ~self.running):
            m.d.sync += full.eq(0)
        return m

    def _lookup(self, m: Module, place: Signal, after: Signal, full: Signal) -> None:
        m.d.comb += [
            self.second.eq(full[0] & full[1] & (self.target == after)),
            self.hit.eq(~self.need | (full[0] & (self.target == place)) | self.second),
        ]

    def _decide(self, m: Module, place: Signal, full: Signal, skip: Signal) -> None:
        """A line that is not at hand: wait for it, skip towards it, or restart. A decision takes two cycles."""
        decide = Signal()
        ahead = Signal(line_bits(self._config))
        asked = Signal.like(self.read_line)
        m.d.sync += [
            decide.eq(self.need & ~self.hit & ~decide & ~self.restart & self.running),
            ahead.eq(self.target - place),
            asked.eq(self.progress.line - place[: len(asked)]),
        ]
        coming = Signal()
        within = ahead < self._config.lookahead_lines
        m.d.comb += [
            coming.eq(self.progress.active & within & ((ahead < asked) | ~self.progress.exhausted)),
            skip.eq(decide & coming & (ahead > 1) & full[0]),
            self.miss.eq(decide & ~coming),
        ]

    def _advance(self, m: Module, full: Signal, pop: Signal) -> None:
        m.submodules.lines = lines = memory.Memory(
            shape=8 * self._config.bus_bytes, depth=self._config.lookahead_lines, init=[]
        )
        write, read = lines.write_port(), lines.read_port(domain="sync")
        to_present, to_next, fetch, there = Signal(), Signal(), Signal(), Signal()
        burst_bits = exact_log2(self._config.burst_lines)
        position = self.read_line[:-1]
        got = Value.cast(self.progress.got[position[burst_bits:]])
        m.d.comb += [
            write.en.eq(self.progress.write),
            write.addr.eq(self.progress.position),
            write.data.eq(self.data),
            there.eq(self.progress.active & (self.read_line != self.progress.line) & (got > position[:burst_bits])),
            to_present.eq(~full[0] | pop),
            to_next.eq(~full[1] | to_present),
            fetch.eq(~full[2] | to_next),
            read.en.eq(fetch),
            read.addr.eq(position),
        ]
        with m.If(to_present):
            m.d.sync += [self.present.eq(self.next), full[0].eq(full[1])]
        with m.If(to_next):
            m.d.sync += [self.next.eq(read.data), full[1].eq(full[2])]
        with m.If(fetch):
            m.d.sync += [full[2].eq(there), self.read_line.eq(self.read_line + there)]
