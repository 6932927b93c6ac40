"""The store unit: every element that was asked for is written, with its value, and no other; later stores win. Nothing
outside of the store window is written.
"""

import pytest
from amaranth import Cat, Module, Mux, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable
from amaranth.utils import exact_log2

from daedal.hw.isa.elements import ROW_GRANULE
from daedal.hw.isa.launch import Cause
from daedal.hw.memory.store import store_layouts, write_batcher
from daedal.hw.memory.store.store_unit import StoreUnit
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.skid_buffer import SkidBuffer
from tests.formal.narrow import TINY, narrow
from tests.formal.sat.prover import Result, examine
from tests.formal.streams import StreamContract, channels, inputs

CONFIG = narrow(**{**vars(TINY), "write_burst": 1, "write_batch": 1})
LINE_BITS, GRANULE_BITS = exact_log2(CONFIG.bus_bytes), exact_log2(ROW_GRANULE)
PLACE_BITS = 3
"""Element numbers that rows begin at: four lines of two elements."""

COUNT = 4
"""Bits of counters that must not wrap."""

VALUE_BITS = 1
"""Of each element; the rest is 0."""


class Spec(Elaboratable):
    """Rows of one to three elements at any place; ``chosen`` is an arbitrary element of memory.

    Rows come with as many beats as they need, from the execute unit. ``guarded``: an arbitrary window is watched, and
    not that all comes. ``fault``, a mistake: ``value``, ``stray`` or ``wide``.
    """

    def __init__(self, fault: str = "", *, guarded: bool = False) -> None:
        self.unit, self._fault, self._guarded = StoreUnit(CONFIG), fault, guarded
        self.twice, self.refused = Signal(name="twice"), Signal(name="refused")
        self.ports = [*inputs(self.unit), self.twice, self.refused]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        for channel in channels(unit):
            if not channel.produced:
                m.submodules[f"contract_{channel.name}"] = contract = StreamContract(len(channel.payload), assumed=True)
                m.d.comb += [
                    contract.watched.valid.eq(channel.valid),
                    contract.watched.payload.eq(channel.payload),
                    contract.ready.eq(channel.ready),
                ]
        chosen = AnyConst(PLACE_BITS + 1)
        m.d.comb += [Assume(~unit.halt), Assume(~unit.write.bresp[1])]
        asked, wanted, requests = self._requests(m, chosen)
        if self._guarded:
            self._window(m)
        else:
            m.d.comb += Assume(~unit.guard)
            self._writes(m, chosen, asked, wanted, requests)
        return m

    def _window(self, m: Module) -> None:
        """What is written begins inside of the window: bursts have one line."""
        unit, bus = self.unit, self.unit.write
        first, last = AnyConst(PLACE_BITS), AnyConst(PLACE_BITS)
        line = bus.awaddr[LINE_BITS:]
        m.d.comb += [
            Assume(unit.guard),
            Assume((unit.window.first == first) & (unit.window.last == last)),
            Assert(~bus.awvalid | ((line >= first) & (line + (self._fault == "wide") <= last)), "outside"),
            self.refused.eq(unit.fault.valid & (unit.fault.fault.cause == Cause.STORE_WINDOW) & (first != 0)),
        ]

    def _requests(self, m: Module, chosen: object) -> tuple[Signal, Signal, Signal]:
        """How often ``chosen`` was asked for, the value asked for last, and rows that are not complete."""
        unit = self.unit
        address, beat = unit.addresses.payload, unit.data.payload
        place, left = Signal(PLACE_BITS + 2), Signal(2)  # of the present row: the next element, and how many
        asked, wanted = Signal(COUNT), Signal(VALUE_BITS)
        begin, take = unit.addresses.valid & unit.addresses.ready, unit.data.valid & unit.data.ready
        size = address.size >> GRANULE_BITS
        # As in the unit, two addresses can wait behind the row that is written.
        m.submodules.waiting = waiting = SkidBuffer(len(size) + PLACE_BITS + 2)
        m.d.comb += [
            waiting.i.valid.eq(begin),
            waiting.i.payload.eq(Cat(address.address[GRANULE_BITS:][: PLACE_BITS + 2], size)),
            Assume(waiting.i.ready | ~begin),
            waiting.o.ready.eq((left == 0) | (take & (left <= 2))),
        ]
        m.d.comb += [
            Assume(~address.stream),
            Assume((address.size[:GRANULE_BITS] == 0) & (size != 0) & (size <= 3)),
            Assume(~address.address[:GRANULE_BITS].any() & ~address.address[GRANULE_BITS + PLACE_BITS :].any()),
        ]
        count = Mux(left > 2, 2, left)
        with m.If(unit.data.valid):
            m.d.comb += Assume(~beat.data.word_select(0, 32)[VALUE_BITS:].any())
            m.d.comb += Assume(~beat.data.word_select(1, 32)[VALUE_BITS:].any())
        with m.If(take):
            m.d.comb += [Assume(beat.bytes == count << GRANULE_BITS), Assume(beat.last == (left <= 2))]
            m.d.sync += [place.eq(place + count), left.eq(left - count)]
            for n in range(2):
                with m.If((count > n) & (place + n == chosen)):
                    m.d.sync += [asked.eq(asked + 1), wanted.eq(beat.data.word_select(n, 32)[:VALUE_BITS])]
        with m.If(waiting.o.valid & waiting.o.ready):
            row = waiting.o.payload
            m.d.sync += [place.eq(row[: PLACE_BITS + 2]), left.eq(row[PLACE_BITS + 2 :])]
        return asked, wanted, left | ~waiting.empty

    def _writes(self, m: Module, chosen: object, asked: Signal, wanted: Signal, left: Signal) -> None:
        """What memory sees of ``chosen``. With bursts of one line, lines follow their addresses one by one."""
        unit, bus = self.unit, self.unit.write
        lines = [Signal(PLACE_BITS + 2, name=f"line{n}") for n in range(1 << COUNT)]
        announced, taken, before = Signal(COUNT), Signal(COUNT), Signal()
        m.d.sync += before.eq(bus.awvalid & ~bus.awready)
        with m.If(bus.awvalid & ~before):
            m.d.sync += announced.eq(announced + 1)
            for n, line in enumerate(lines):
                with m.If(announced == n):
                    m.d.sync += line.eq(bus.awaddr >> LINE_BITS)
        written, value = Signal(COUNT), Signal(VALUE_BITS)
        line = Signal(PLACE_BITS + 2)
        for n, held in enumerate(lines):
            with m.If(taken == n):
                m.d.comb += line.eq(held)
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += taken.eq(taken + 1)
            for n in range(CONFIG.line_granules):
                strobes = bus.wstrb.word_select(n, ROW_GRANULE)
                m.d.comb += Assert(strobes.all() | ~strobes.any(), "part of an element")
                hit = strobes[0] & ((line << 1) + n == chosen)
                with m.If(hit):
                    m.d.comb += Assert(written + (self._fault == "stray") < asked, "written more often than asked for")
                    m.d.sync += [written.eq(written + 1), value.eq(bus.wdata.word_select(n, 32))]
        complete = unit.report.idle & (left == 0)
        with m.If(complete):
            m.d.comb += [
                Assert((asked == 0) == (written == 0), "lost"),
                Assert((written == 0) | (value ^ (self._fault == "value") == wanted), "not the last value"),
            ]
        m.d.comb += self.twice.eq(complete & (asked == 2))


DEPTH = 17


def prove(monkeypatch: pytest.MonkeyPatch, depth: int, fault: str = "", *, guarded: bool = False) -> Result:
    for name in ("lines_held", "bursts_held"):
        monkeypatch.setattr(write_batcher, name, lambda _: 16)
    monkeypatch.setattr(store_layouts, "STORE_GRANULE", CONFIG.bus_bytes)  # else all lines are in one piece
    spec = Spec(fault, guarded=guarded)
    return examine(spec, spec.ports, depth, goals=[] if fault else ["refused" if guarded else "twice"])


@pytest.mark.slow
def test_what_is_asked_for_is_written(monkeypatch):
    assert prove(monkeypatch, DEPTH)


@pytest.mark.slow
def test_nothing_outside_of_the_window_is_written(monkeypatch):
    assert prove(monkeypatch, DEPTH, guarded=True)


@pytest.mark.parametrize("fault", ["value", "stray", "wide"])
def test_the_proof_can_fail(monkeypatch, fault):
    assert not prove(monkeypatch, DEPTH - 1, fault, guarded=fault == "wide").holds


class Unrefused(Fifo):
    """A queue that whoever writes into it does not ask for room."""

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.queue = super().elaborate(platform)
        m.d.comb += Assert(self.i.ready | ~self.i.valid, "lost")
        return m


class Rows(Elaboratable):
    """Any rows at any rate, and memory takes what it likes. ``stops``: a beat waits."""

    def __init__(self) -> None:
        self.unit, self.stops = StoreUnit(CONFIG), Signal(name="stops")
        self.ports = [*inputs(self.unit), self.stops]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += [Assume(~unit.halt), self.stops.eq(unit.data.valid & unit.taking & ~unit.data.ready)]
        return m


NEEDED = {"lines_held": 8, "bursts_held": 9}
"""Lines that come, and bursts that begin, after the batcher has no more room than that, at most."""


@pytest.mark.parametrize("enough", [True, False])
@pytest.mark.parametrize("short", NEEDED)
def test_lines_on_their_way_have_room(monkeypatch, enough, short):
    """In the queues of lines and of bursts, each when it is the first one to be full."""
    margin = NEEDED[short] if enough else NEEDED[short] - 1
    assert max(NEEDED.values()) <= write_batcher.MARGIN
    for name in ("lines_held", "bursts_held"):
        monkeypatch.setattr(write_batcher, name, lambda _, name=name: margin + 1 if name == short else 32)
    monkeypatch.setattr(write_batcher, "MARGIN", margin)
    monkeypatch.setattr(write_batcher, "Fifo", Unrefused)
    spec = Rows()
    result = examine(spec, spec.ports, 22, goals=["stops"])
    assert result.holds == enough and not result.missed
