"""A few lines of each array that a serial level loads from, and those that come next."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.access_unit.levels.bundles import LoadReturns, line_bits, load_request_layout, returned
from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM, DISTRIBUTED_RAM

LINES = 4
"""Places for the lines of each load slot, a power of two: a line's place is low bits of its number."""

LINE_BITS = 2


class LineCache(wiring.Component):
    """Finds one line at a time, and asks memory for it if it is not there, and for the lines after it.

    Each load slot has places for ``LINES`` lines. Slots 2k and 2k+1 look into each other's places too, so that no line
    of an array that both read is read twice. A line that is there takes 2 cycles; meanwhile and in the next 3 the last
    one that has a place beside it is looked for. While a line comes, so do all that have a place beside it.

    Members
    -------
    running : ``In(1)``
        A nest runs; without, all lines are forgotten and none is asked for.
    ask, slot, line : ``In(1)``, ``In(range(max(2, slots)))``, ``In(line_bits(config))``
        This line is wanted for this slot; taken if ``free``.
    free : ``Out(1)``
    touch : ``In(1)``
        With ``ask``: the line, and those after it, are only likely to be wanted; it is not waited for.
    settled : ``Out(1)``
        No more lines are to be asked for ahead.
    ahead, end : ``In(1)``, ``In(address_bits)``
        In the cycle after: whether the lines after it will be wanted, and the byte address after the array; lines from
        there on are not asked for ahead.
    there : ``Out(1)``
        Strobe: the line that was asked for is there.
    data : ``Out(8 * bus_bytes)``
        The line, from the next cycle on, until another one is asked for.
    request : ``Out(stream.Signature(load_request_layout(config)))``
    returns : ``In(LoadReturns(config))``
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, unit: int, slots: int) -> None:
        super().__init__(
            {
                "running": In(1),
                "ask": In(1),
                "slot": In(range(max(2, slots))),
                "line": In(line_bits(config)),
                "free": Out(1),
                "touch": In(1),
                "settled": Out(1),
                "ahead": In(1),
                "end": In(config.address_bits),
                "there": Out(1),
                "data": Out(8 * config.bus_bytes),
                "request": Out(stream.Signature(load_request_layout(config))),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._unit, self._slots = config, unit, slots
        self._places = LINES << ceil_log2(slots)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._line = Signal(line_bits(self._config) + 1)
        """The line that is looked for; one past the last address is no line."""
        self._slot = Signal.like(self.slot)
        self._wanted, self._more = Signal(), Signal(range(LINES))
        """A line is waited for; so many lines from this one on are to come ahead of use."""
        self._awaits, self._awaited = Signal(), Signal(LINE_BITS)
        """What is waited for was not there: it comes to this place."""
        self._valid, self._flying = Signal(self._places), Signal(self._places)
        self._issue = Signal()
        """It is asked for."""
        known, here = self._look_up(m)
        asked, hit, ahead, end = Signal(), Signal(), Signal(), Signal.like(self.end)
        comes = ~self._flying.bit_select(Cat(self._awaited, self._slot)[: ceil_log2(self._places)], 1)
        m.d.comb += [
            self.free.eq(~self._wanted & ~self.request.valid),
            self.there.eq(self._wanted & Mux(self._awaits, comes, here)),
            self.settled.eq(self._more == 0),
            self.busy.eq(self._flying.any()),
        ]
        m.d.sync += [asked.eq(self.ask & self.free), hit.eq(self.there & ~self._awaits)]
        with m.If(asked):
            m.d.sync += [end.eq(self.end), ahead.eq(self.ahead)]
        beyond = Cat(Const(0, len(end) - len(self.line)), self._line) >= end
        goes_on, stops = self._decide(m, known, beyond, asked | hit)
        with m.If(self.ask & self.free):
            m.d.sync += [
                self._line.eq(self.line), self._slot.eq(self.slot), self._wanted.eq(~self.touch),
                self._more.eq(Mux(self.touch, LINES - 1, 0)),
            ]  # fmt: skip
        with m.Elif(hit | goes_on):
            # Those between have been asked for when the lines before this one were.
            m.d.sync += self._line.eq(self._line + Mux(hit, LINES - 1, 1))
            with m.If(hit):
                m.d.sync += self._more.eq(ahead)
            with m.Elif(self._wanted & ~self._awaits):
                m.d.sync += self._more.eq(Mux(ahead, LINES - 1, 0))
            with m.Else():
                m.d.sync += self._more.eq(self._more - 1)
        with m.Elif(stops):
            m.d.sync += self._more.eq(0)
        with m.If(self.there):
            m.d.sync += [self._wanted.eq(0), self._awaits.eq(0)]
        with m.If(self._issue & self._wanted & ~self._awaits):
            m.d.sync += [self._awaits.eq(1), self._awaited.eq(self._line)]
        self._send(m)
        return m

    def _decide(self, m: Module, known: Value, beyond: Value, changes: Value) -> tuple[Value, Value]:
        """Whether to ask for the line, from registers: a cycle after it was looked up.

        Returns whether to go on to the next one, or to look ahead no further. ``changes``: what is looked up does.
        """
        looked, is_known, is_beyond, own_flies = (Signal(name=n) for n in ("looked", "is_known", "is_beyond", "flies"))
        idle, ahead, goes_on, fresh = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            idle.eq(looked & ~self.request.valid),
            ahead.eq((~self._wanted | self._awaits) & (self._more != 0)),
            fresh.eq(~is_known & ~own_flies),
            self._issue.eq(
                self.running & idle & fresh & ((self._wanted & ~self._awaits) | (ahead & ~is_beyond))
            ),
            goes_on.eq(self._issue | (idle & ahead & is_known & ~is_beyond)),
        ]  # fmt: skip
        m.d.sync += [
            looked.eq(~((self.ask & self.free) | changes | goes_on)),
            is_known.eq(known),
            is_beyond.eq(beyond),
            own_flies.eq(self._flying.bit_select(self._place(self._slot), 1)),
        ]
        return goes_on, idle & ahead & (is_beyond | (own_flies & ~is_known))

    def _place(self, slot: Value) -> Value:
        """The place of the line that is looked for, among those of ``slot``."""
        return Cat(self._line[:LINE_BITS], slot)[: ceil_log2(self._places)]

    def _look_up(self, m: Module) -> tuple[Value, Value]:
        """Whether one of the places has, or awaits, the line; and whether it is there. Reads it if it is."""
        m.submodules.lines = lines = memory.Memory(
            shape=8 * self._config.bus_bytes, depth=self._places, init=[], attrs=BLOCK_RAM
        )
        write, read = lines.write_port(), lines.read_port(domain="sync")
        mine, entry = returned(m, self._config, self.returns, self._unit)
        place = entry[: ceil_log2(self._places)]
        known, here = [], []
        for odd in range(min(2, self._slots)):
            slot = Cat(Const(odd, 1), self._slot[1:])
            tag = self._tag(m, odd)
            same = Signal(name=f"same{odd}")
            m.d.comb += same.eq((tag == self._line) & self._valid.bit_select(self._place(slot), 1))
            known.append(same)
            here.append(same & ~self._flying.bit_select(self._place(slot), 1))
        m.d.comb += [
            write.en.eq(mine),
            write.addr.eq(place),
            write.data.eq(self.returns.data),
            read.en.eq(self._wanted),
            read.addr.eq(
                Mux(
                    self._awaits,
                    Cat(self._awaited, self._slot)[: ceil_log2(self._places)],
                    self._place(Cat(known[1] if len(known) > 1 else Const(0, 1), self._slot[1:])),
                )
            ),
            self.data.eq(read.data),
        ]
        with m.If(mine):
            m.d.sync += self._flying.bit_select(place, 1).eq(0)
        return Cat(known).any(), Cat(here).any()

    def _tag(self, m: Module, odd: int) -> Value:
        """The number of the line that is, or will be, in the place among those of even, or odd, slots."""
        m.submodules[f"tags{odd}"] = tags = memory.Memory(
            shape=len(self._line), depth=self._places, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = tags.write_port(), tags.read_port(domain="comb")
        place = Cat(self._line[:LINE_BITS], self._slot[1:])
        m.d.comb += [
            write.en.eq(self._issue & (self._slot[0] == odd)), write.addr.eq(place), write.data.eq(self._line),
            read.addr.eq(place),
        ]  # fmt: skip
        return read.data

    def _send(self, m: Module) -> None:
        request = self.request.payload
        sent = Signal(line_bits(self._config), reset_less=True)
        m.d.comb += [request.line.eq(sent), request.beats.eq(1), request.slot.unit.eq(self._unit)]
        with m.If(self.request.ready):
            m.d.sync += self.request.valid.eq(0)
        with m.If(~self.running):
            m.d.sync += [self._valid.eq(0), self._wanted.eq(0), self._awaits.eq(0), self._more.eq(0)]
        with m.Elif(self._issue):
            m.d.sync += [
                self.request.valid.eq(1),
                sent.eq(self._line),
                request.slot.entry.eq(self._place(self._slot)),
                self._valid.bit_select(self._place(self._slot), 1).eq(1),
                self._flying.bit_select(self._place(self._slot), 1).eq(1),
            ]
