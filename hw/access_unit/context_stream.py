"""A sequential load of activations that run in turn: a stream of lines for each."""

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.bundles import LoadReturns, line_bits, load_request_layout, returned
from daedal.hw.access_unit.context_schedule import first_of
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.interfaces import context_entries, context_lines


class ContextStream(wiring.Component):
    """Fetches the lines from an activation's first to its last element, and no others, ahead of use.

    Every entry has places for ``context_lines(config)`` lines; entries with room ask in turn for one line each.
    Lines may come back in any order.

    Members
    -------
    enable, walks, size
        Of the load: it is done; its index is the induction variable; log2 of the element's bytes.
    enter, enter_entry, enter_first, enter_end : ``In``
        An activation with iterations comes: the address of its first element and the one after the last element
        (any in the first one's if the load does not walk).
    placed : ``In``
        Entries whose activation runs; others fill half of their places only, so that they do not crowd these out.
    entry, last, take : ``In``
        The entry whose turn it is, for its last time; its iteration starts. An entry can start two cycles after it
        last did, no sooner.
    hit : ``Out(1)``
        The line with that entry's element is here, or none is needed.
    line, offset : ``Out(8 * bus_bytes)``, ``Out``
        Line, and byte in it, of the element of the iteration that started two cycles ago.
    request : ``Out(stream.Signature(load_request_layout(config)))``
    returns : ``In(LoadReturns(config))``
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, unit: int) -> None:
        entry = range(context_entries(config))
        super().__init__(
            {
                "enable": In(1),
                "walks": In(1),
                "size": In(2),
                "enter": In(1),
                "enter_entry": In(entry),
                "enter_first": In(ADDRESS_BITS),
                "enter_end": In(ADDRESS_BITS),
                "placed": In(context_entries(config)),
                "entry": In(entry),
                "last": In(1),
                "take": In(1),
                "hit": Out(1),
                "line": Out(8 * config.bus_bytes),
                "offset": Out(exact_log2(config.bus_bytes)),
                "request": Out(stream.Signature(load_request_layout(config))),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._unit = config, unit
        self._entries, self._lines = context_entries(config), context_lines(config)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        heads, tails = (
            [Signal(range(self._lines), name=f"{name}{n}") for n in range(self._entries)] for name in ("head", "tail")
        )
        held = [Signal(range(self._lines + 1), name=f"held{n}") for n in range(self._entries)]
        here = [Signal(self._lines, name=f"here{n}") for n in range(self._entries)]
        ready, asked, consume = Signal(self._entries), Signal(self._entries), Signal(self._entries)
        mine, place = returned(m, self._config, self.returns, self._unit)
        place_bits = exact_log2(self._lines)
        returning, line = place[place_bits:], place[:place_bits]
        for n in range(self._entries):
            m.d.sync += [
                ready[n].eq(here[n].bit_select(heads[n], 1)),
                heads[n].eq(heads[n] + consume[n]),
                tails[n].eq(tails[n] + asked[n]),
                held[n].eq(held[n] + asked[n] - consume[n]),
            ]
            with m.If(consume[n]):
                m.d.sync += here[n].bit_select(heads[n], 1).eq(0)
            with m.If(mine & (returning == n)):
                m.d.sync += here[n].bit_select(line, 1).eq(1)
        self._ask(m, held, tails, asked)
        self._consume(m, heads, consume)
        m.d.comb += self.hit.eq(~self.enable | ready.bit_select(self.entry, 1))
        self._buffer(m, mine, place, Cat(Array(heads)[self.entry], self.entry))
        flying = Signal(range(self._entries * self._lines + 1))
        m.d.sync += flying.eq(flying + asked.any() - mine)
        m.d.comb += self.busy.eq(flying != 0)
        return m

    def _buffer(self, m: Module, write_enable: Signal, place: Value, address: Value) -> None:
        """The lines; a read one is registered behind the block RAM."""
        m.submodules.lines = lines = memory.Memory(
            shape=8 * self._config.bus_bytes, depth=self._entries * self._lines, init=[], attrs={"ram_style": "block"}
        )
        write, read = lines.write_port(), lines.read_port(domain="sync")
        m.d.comb += [
            write.en.eq(write_enable),
            write.addr.eq(place),
            write.data.eq(self.returns.data),
            read.addr.eq(address),
        ]
        m.d.sync += self.line.eq(read.data)

    def _consume(self, m: Module, heads: list[Signal], consume: Signal) -> None:
        """The byte of each entry's next element; a line is done with when that leaves it, or at the end."""
        width = len(self.offset)
        offsets = [Signal(width, name=f"offset{n}") for n in range(self._entries)]
        present, following, read = Signal(width), Signal(width + 1), Signal(width)
        m.d.comb += [
            present.eq(Array(offsets)[self.entry]),
            following.eq(present + (self.walks << self.size)),
        ]
        m.d.sync += [read.eq(present), self.offset.eq(read)]
        for n, offset in enumerate(offsets):
            mine = Signal(name=f"mine{n}")
            m.d.comb += [
                mine.eq(self.take & self.enable & (self.entry == n)),
                consume[n].eq(mine & (following[-1] | self.last)),
            ]
            with m.If(mine):
                m.d.sync += offset.eq(following)
            with m.If(self.enter & (self.enter_entry == n)):
                m.d.sync += offset.eq(self.enter_first)

    def _ask(self, m: Module, held: list[Signal], tails: list[Signal], asked: Signal) -> None:
        """Choose an entry in one cycle, ask for its next line in the following one."""
        more, fresh, wants = Signal(self._entries), Signal(self._entries), Signal(self._entries)
        chosen, valid, go = Signal(range(self._entries)), Signal(), Signal()
        bits, bus_bits = line_bits(self._config), exact_log2(self._config.bus_bytes)
        for n in range(self._entries):
            room = Mux(self.placed[n], held[n] != self._lines, held[n] < self._lines // 2)
            m.d.comb += wants[n].eq(more[n] & room & ~(valid & (chosen == n)))
        after = wants & ~((Value.cast(2) << chosen) - 1)[: self._entries]
        later, lowest = first_of(m, after, "later"), first_of(m, wants, "lowest")
        m.d.comb += go.eq(valid & (~self.request.valid | self.request.ready))
        with m.If(~valid | go):
            m.d.sync += valid.eq(wants.any())
            with m.If(after.any()):
                m.d.sync += chosen.eq(later)
            with m.Else():
                m.d.sync += chosen.eq(lowest)
        first = self._ring(m, "first", bits, self.enter, self.enter_entry, self.enter_first[bus_bits:], chosen)
        end = self._ring(m, "end", ADDRESS_BITS - bus_bits, self.enter, self.enter_entry, self.enter_end[bus_bits:],
                         chosen)  # fmt: skip
        even = self._ring(m, "even", 1, self.enter, self.enter_entry, self.enter_end[:bus_bits] == 0, chosen)
        present, following, is_last = Signal(bits), Signal(bits), Signal()
        next_line = self._ring(m, "next", bits, go, chosen, following, chosen)
        with m.If(fresh.bit_select(chosen, 1)):
            m.d.comb += present.eq(first)
        with m.Else():
            m.d.comb += present.eq(next_line)
        m.d.comb += [
            following.eq(present + 1),
            is_last.eq((even & (following == end)) | (~even & (present == end))),
        ]
        request = self.request.payload
        with m.If(~self.request.valid | self.request.ready):
            m.d.sync += [
                self.request.valid.eq(valid),
                request.line.eq(present),
                request.beats.eq(1),
                request.slot.unit.eq(self._unit),
                request.slot.entry.eq(Cat(Array(tails)[chosen], chosen)),
            ]
        for n in range(self._entries):
            m.d.comb += asked[n].eq(go & (chosen == n))
            with m.If(asked[n]):
                m.d.sync += [more[n].eq(~is_last), fresh[n].eq(0)]
            with m.If(self.enter & self.enable & (self.enter_entry == n)):
                m.d.sync += [more[n].eq(1), fresh[n].eq(1)]

    def _ring(
        self, m: Module, name: str, width: int, enable: Value, entry: Value, data: Value, read_entry: Value
    ) -> Value:
        m.submodules[f"{name}_ring"] = ring = memory.Memory(shape=width, depth=self._entries, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [write.en.eq(enable), write.addr.eq(entry), write.data.eq(data), read.addr.eq(read_entry)]
        return read.data
