"""The reading side of a sequential load's buffer."""

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import line_bits
from daedal.hw.access_unit.loads.line_prefetcher import LineProgress
from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM


class LineBuffer(wiring.Component):
    """Keeps the present line of an array and the next one at hand; moves on by a line when the next one is used.

    One line per cycle. A wanted line further ahead is reached by skipping lines, one in two cycles; any other asks
    for a restart. How far a wanted line is from the one before is found out in the cycle in which it is loaded.

    Members
    -------
    running : ``In(1)``
        A nest runs; without, all lines are forgotten.
    entering, target : ``In(1)``, ``In(line_bits)``
        Whether the next iteration wants a line, and which. From the cycle after ``ready`` on it is in ``wanted``.
    ready : ``In(1)``
        The next iteration comes, if there is one. Known late: it depends on all readers' ``hit``.
    hit : ``Out(1)``
        The wanted line is at hand, or none is wanted. A register.
    take : ``In(1)``
        The present iteration leaves (only with ``hit``, and with ``ready``).
    present : ``Out(8 * bus_bytes)``
        In the cycle after that: the line.
    miss : ``Out(1)``
        The wanted line will not come without a restart.
    restart, start : ``In(1)``, ``In``
        The fetcher goes on from line ``start`` (low bits), which is the wanted line or the one before.
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
                "entering": In(1),
                "ready": In(1),
                "target": In(line_bits(config)),
                "wanted": Out(line_bits(config)),
                "hit": Out(1, init=1),
                "take": In(1),
                "present": Out(bits),
                "miss": Out(1),
                "restart": In(1),
                "start": In(range(2 * config.lookahead_lines)),
                "progress": In(LineProgress(config)),
                "data": In(bits),
                "read_line": Out(range(2 * config.lookahead_lines)),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        full = Signal(3)  # the present line, the next one, the one at the memory's output
        need, second, skip, pop = Signal(), Signal(), Signal(), Signal()
        with m.If(self.ready):
            m.d.sync += need.eq(self.entering)
        self._lookup(m, full, need, second, skip)
        m.d.comb += pop.eq((self.take & need & second) | skip)
        self._advance(m, full, pop)
        with m.If(self.restart):
            m.d.sync += self.read_line.eq(self.start)
        with m.If(self.restart | ~self.running):
            m.d.sync += full.eq(0)
        return m

    def _lookup(self, m: Module, full: Signal, need: Signal, second: Signal, skip: Signal) -> None:
        """Where the wanted line is: ``ahead`` lines after the present one, or elsewhere if ``far``.

        ``need``: one is wanted; ``second``: it is the next one, and at hand.
        """
        ahead, far = Signal(range(self._config.lookahead_lines)), Signal()
        same, following = Signal(), Signal()  # ahead is 0, 1
        apart = Signal(line_bits(self._config))
        m.d.comb += [
            apart.eq(self.target - self.wanted),
            second.eq(following & full[0] & full[1]),
        ]
        usable = self.running & ~self.restart
        comes = usable & self._at_hand(full, need & second, apart == 0, apart == 1)
        stays = usable & self._at_hand(full, skip, same, Mux(skip, ahead == 2, following))
        m.d.sync += self.hit.eq(Mux(self.ready, ~self.entering | comes, ~need | stays))
        with m.If(self.ready & self.entering):
            m.d.sync += [
                self.wanted.eq(self.target),
                ahead.eq(apart),
                far.eq(apart[len(ahead) :].any()),
                same.eq(apart == 0),
                following.eq(apart == 1),
            ]
        with m.Elif(self.restart):
            later = self.wanted[0] ^ self.start[0]
            m.d.sync += [ahead.eq(later), far.eq(0), same.eq(~later), following.eq(later)]
        with m.Elif(skip):
            m.d.sync += [ahead.eq(ahead - 1), following.eq(ahead == 2)]
        self._decide(m, ahead, far, full, need, skip)

    def _at_hand(self, full: Signal, pop: Value, same: Value, following: Value) -> Value:
        """Whether, after a cycle with ``pop`` or not, a line is there: the ``same`` as now or the ``following`` one."""
        moved = ~full[0] | pop
        present, later = Mux(moved, full[1], full[0]), Mux(moved | ~full[1], full[2], full[1])
        return present & (same | (following & later))

    def _decide(self, m: Module, ahead: Signal, far: Signal, full: Signal, need: Signal, skip: Signal) -> None:
        """A line that is not at hand: wait for it, skip towards it, or restart. A decision takes two cycles.

        It is made from what was known in the first one: lines that have gone since count as asked for once more.
        """
        decide, decided, coming, skips = Signal(), Signal(), Signal(), Signal()
        asked = Signal.like(self.read_line)  # lines asked for, from the present one on
        held = full[0] + full[1] + full[2]
        beyond: Value = ahead[1:].any() if len(ahead) > 1 else Const(0)  # more than one line ahead
        m.d.comb += [
            decide.eq(need & ~self.hit & ~decided & ~self.restart & self.running),
            coming.eq(self.progress.active & ~far & ((ahead < asked) | ~self.progress.exhausted)),
            skip.eq(skips & full[0]),
        ]
        m.d.sync += [
            decided.eq(decide),
            skips.eq(decide & coming & beyond),
            self.miss.eq(decide & ~coming),
            asked.eq(self.progress.line - self.read_line + held),
        ]

    def _advance(self, m: Module, full: Signal, pop: Signal) -> None:
        m.submodules.lines = lines = memory.Memory(
            shape=8 * self._config.bus_bytes, depth=self._config.lookahead_lines, init=[], attrs=BLOCK_RAM
        )
        write, read = lines.write_port(), lines.read_port(domain="sync")
        to_present, to_next, fetch, there = Signal(), Signal(), Signal(), Signal()
        next_line = Signal.like(self.present)
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
            fetch.eq(~full.all() | pop),  # not by way of the other two, which reach all bits of a line
            read.en.eq(fetch),
            read.addr.eq(position),
        ]
        with m.If(to_present):
            m.d.sync += [self.present.eq(next_line), full[0].eq(full[1])]
        with m.If(to_next):
            m.d.sync += [next_line.eq(read.data), full[1].eq(full[2])]
        with m.If(fetch):
            m.d.sync += [full[2].eq(there), self.read_line.eq(self.read_line + there)]
