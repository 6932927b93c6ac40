"""A sequential load of activations that run in turn: a stream of lines for each."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.interleaving.context_scheduler import first_of
from daedal.hw.access_unit.levels.bundles import LoadReturns, line_bits, load_request_layout, returned
from daedal.hw.config.core import Config
from daedal.hw.interfaces import context_entries, context_lines
from daedal.hw.lib.ram_style import BLOCK_RAM, DISTRIBUTED_RAM


class ContextPrefetcher(wiring.Component):
    """Fetches the lines from an activation's first to its last element, and no others, ahead of use.

    Every entry has places for ``context_lines(config)`` lines; entries with room ask in turn for one line each.
    Lines may come back in any order.

    Members
    -------
    enable, size
        Of the load: it is done; log2 of the element's bytes.
    enter, enter_last, enter_entry, address : ``In``
        An activation with iterations comes: the address of its first element, then, with ``enter_last``, the one after
        its last element.
    placed : ``In``
        Entries whose activation runs; others fill half of their places only, so that they do not crowd these out.
    look, entry, first : ``In``
        An iteration of that entry, or its first, is looked up: it is the one that starts next, unless another one is
        looked up before. Not in the cycle in which one of the same entry starts.
    clean : ``Out(1)``
        Activations may come: not for ``context_entries(config)`` cycles after a reset.
    hit : ``Out(1)``
        The line with the element of the iteration that is looked up is here, or none is needed.
    take, taken_entry, last : ``In``
        The iteration that was looked up last starts; its entry; it is its activation's last.
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
                "size": In(2),
                "enter": In(1),
                "enter_last": In(1),
                "enter_entry": In(entry),
                "address": In(config.address_bits),
                "placed": In(context_entries(config)),
                "look": In(1),
                "entry": In(entry),
                "first": In(1),
                "take": In(1),
                "taken_entry": In(entry),
                "last": In(1),
                "clean": Out(1),
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
        self._begins, self._ends = self.enter & ~self.enter_last, self.enter & self.enter_last
        go, chosen, consume = Signal(), Signal(range(self._entries)), Signal()
        place_bits = exact_log2(self._lines)
        mine, place = returned(m, self._config, self.returns, self._unit)
        sweep = Signal(range(self._entries + 1))
        entry = sweep[: exact_log2(self._entries)]
        m.d.comb += self.clean.eq(sweep[-1])
        with m.If(~self.clean):
            m.d.sync += sweep.eq(sweep + 1)
        # Places that have been asked for and done with, counted from reset on, with one bit more than there are places.
        head, tail, present = Signal(place_bits + 1), Signal(place_bits + 1), Signal(place_bits + 1)
        heads = self._ring(m, "head", len(head), ~self.clean | consume, Mux(self.clean, self.taken_entry, entry),
                           Mux(self.clean, present + 1, 0), self.entry, chosen)  # fmt: skip
        (asked,) = self._ring(m, "tail", len(tail), ~self.clean | go, Mux(self.clean, chosen, entry),
                              Mux(self.clean, tail + 1, 0), chosen)  # fmt: skip
        m.d.comb += [head.eq(heads[0]), tail.eq(asked)]
        with m.If(self.look):
            m.d.sync += present.eq(head)
        held = Signal(place_bits + 1)
        m.d.comb += held.eq(tail + 1 - heads[1])
        self._ask(m, go, chosen, tail[:place_bits], held, consume)
        self._consume(m, consume)
        here = self._here(m, mine, place, entry)
        m.d.comb += self.hit.eq(~self.enable | (here.bit_select(head[:place_bits], 1) ^ head[-1]))
        self._buffer(m, mine, place, Cat(present[:place_bits], self.taken_entry))
        flying = Signal(range(self._entries * self._lines + 1))
        m.d.sync += flying.eq(flying + go - mine)
        m.d.comb += self.busy.eq(flying != 0)
        return m

    def _here(self, m: Module, mine: Signal, place: Value, swept: Value) -> Value:
        """A bit for each place of ``entry``, which changes when a line comes: it is there if that makes it differ
        from the lap that the reader is in.
        """
        place_bits = exact_log2(self._lines)
        returning = place[place_bits:][: exact_log2(self._entries)]
        words = Signal(self._lines)
        before, here = self._ring(m, "here", self._lines, ~self.clean | mine, Mux(self.clean, returning, swept), words,
                                  returning, self.entry)  # fmt: skip
        with m.If(self.clean):
            m.d.comb += words.eq(before ^ (Value.cast(1) << place[:place_bits]))
        return here

    def _buffer(self, m: Module, write_enable: Signal, place: Value, address: Value) -> None:
        """The lines; a read one is registered behind the block RAM."""
        m.submodules.lines = lines = memory.Memory(
            shape=8 * self._config.bus_bytes, depth=self._entries * self._lines, init=[], attrs=BLOCK_RAM
        )
        write, read = lines.write_port(), lines.read_port(domain="sync")
        m.d.comb += [
            write.en.eq(write_enable),
            write.addr.eq(place),
            write.data.eq(self.returns.data),
            read.addr.eq(address),
        ]
        m.d.sync += self.line.eq(read.data)

    def _consume(self, m: Module, consume: Signal) -> None:
        """The byte of each entry's next element; a line is done with when that leaves it, or at the end."""
        width = len(self.offset)
        present, following, read = Signal(width), Signal(width + 1), Signal(width)
        took = self.take & self.enable
        (first,) = self._ring(
            m, "first_offset", width, self._begins, self.enter_entry, self.address[:width], self.entry
        )
        (later,) = self._ring(m, "offset", width, took, self.taken_entry, following[:width], self.entry)
        with m.If(self.look):
            m.d.sync += present.eq(Mux(self.first, first, later))
        m.d.comb += [
            following.eq(present + (Value.cast(1) << self.size)),
            consume.eq(took & (following[-1] | self.last)),
        ]
        m.d.sync += [read.eq(present), self.offset.eq(read)]

    def _ask(self, m: Module, go: Signal, chosen: Signal, tail: Value, held: Signal, consume: Signal) -> None:
        """Choose an entry in one cycle, ask for its next line in the following one, and find out what comes after that
        in the third; until then that entry is not chosen again.

        ``held``: the places in use of the chosen one, with the line that is asked for.
        """
        more, fresh, wants, room, some_room = (
            Signal(self._entries, name=name) for name in ("more", "fresh", "wants", "room", "some_room")
        )
        valid = Signal()
        waits = ((Value.cast(valid)) << chosen)[: self._entries]
        m.d.comb += wants.eq(more & (some_room | (room & self.placed)) & ~waits)
        after = wants & Cat(chosen < number for number in range(self._entries))
        later, lowest = first_of(m, after, "later"), first_of(m, wants, "lowest")
        m.d.comb += go.eq(valid & (~self.request.valid | self.request.ready))
        with m.If(~valid | go):
            m.d.sync += valid.eq(wants.any())
            with m.If(after.any()):
                m.d.sync += chosen.eq(later)
            with m.Else():
                m.d.sync += chosen.eq(lowest)
        request, asked = self.request.payload, Signal()
        asking = request.slot.entry[exact_log2(self._lines) :][: exact_log2(self._entries)]
        present, is_last = self._next_line(m, chosen, fresh.bit_select(chosen, 1), asked, asking)
        m.d.sync += asked.eq(go)
        with m.If(~self.request.valid | self.request.ready):
            m.d.sync += [
                self.request.valid.eq(valid),
                request.line.eq(present),
                request.beats.eq(1),
                request.slot.unit.eq(self._unit),
                request.slot.entry.eq(Cat(tail, chosen)),
            ]
        # An entry that has no context yet gives back no place, so its half is not looked at again after this.
        with m.If(go):
            m.d.sync += [
                more.bit_select(chosen, 1).eq(0),
                fresh.bit_select(chosen, 1).eq(0),
                room.bit_select(chosen, 1).eq(held != self._lines),
                some_room.bit_select(chosen, 1).eq(held < self._lines // 2),
            ]
        with m.If(asked & ~is_last):
            m.d.sync += more.bit_select(asking, 1).eq(1)
        with m.If(consume):
            m.d.sync += room.bit_select(self.taken_entry, 1).eq(1)
        with m.If(self._ends & self.enable):
            m.d.sync += [bits.bit_select(self.enter_entry, 1).eq(1) for bits in (more, fresh, room, some_room)]

    def _next_line(
        self, m: Module, chosen: Signal, fresh: Value, asked: Signal, asking: Value
    ) -> tuple[Signal, Signal]:
        """The line that the chosen entry asks for; and whether what entry ``asking`` has ``asked`` for is its last."""
        bits, bus_bits = line_bits(self._config), exact_log2(self._config.bus_bytes)
        chosen_line, following, is_last = Signal(bits), Signal(bits), Signal()
        present = self.request.payload.line
        line, entry = self.address[bus_bits:], self.enter_entry
        (first,) = self._ring(m, "first", bits, self._begins, entry, line, chosen)
        (end,) = self._ring(m, "end", bits, self._ends, entry, line, asking)
        (even,) = self._ring(m, "even", 1, self._ends, entry, self.address[:bus_bits] == 0, asking)
        (next_line,) = self._ring(m, "next", bits, asked, asking, following, chosen)
        m.d.comb += [
            chosen_line.eq(Mux(fresh, first, next_line)),
            following.eq(present + 1),
            is_last.eq(Mux(even, following, present) == end),
        ]
        return chosen_line, is_last

    def _ring(
        self, m: Module, name: str, width: int, enable: Value, entry: Value, data: Value, *read_entries: Value
    ) -> list[Value]:
        """A memory with a word for each entry; what it holds for each of ``read_entries``."""
        m.submodules[f"{name}_ring"] = ring = memory.Memory(
            shape=width, depth=self._entries, init=[], attrs=DISTRIBUTED_RAM
        )
        write, values = ring.write_port(), []
        m.d.comb += [write.en.eq(enable), write.addr.eq(entry), write.data.eq(data)]
        for read_entry in read_entries:
            read = ring.read_port(domain="comb")
            m.d.comb += read.addr.eq(read_entry)
            values.append(read.data)
        return values
