"""What memory and control ports owe by AXI4 and by Daedal's own rules; stability is part of the streams' contract."""

from typing import Any

import pytest
from amaranth import Cat, Module, Mux, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable, Value
from amaranth.utils import exact_log2

from daedal.hw.access_unit.events.row_fetch import RowSplit
from daedal.hw.access_unit.loads.line_prefetcher import LinePrefetcher
from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.control.word_reader import WordReader
from daedal.hw.isa.address_mapping import CLASSES, granule_bytes
from daedal.hw.memory.axi import BOUNDARY, Burst, beat_size
from daedal.hw.memory.fabric.fabric import ReadFabric
from daedal.hw.memory.fabric.read_port import ReadPort
from daedal.hw.memory.store import write_batcher
from daedal.hw.memory.store.write_batcher import WriteBatcher
from tests.formal.narrow import GROUPED, TINY, narrow
from tests.formal.sat.prover import Result, examine, within
from tests.formal.streams import inputs

CONFIG = narrow(**{**vars(TINY), "write_burst": 2, "write_batch": 2})
LINE_BITS = exact_log2(CONFIG.bus_bytes)
COUNT = 4
LINE_NUMBER_BITS = 11
"""Of the lines that are written: enough for some multiples of 4 KiB."""


def legal_burst(line: Value, beats: Value, *, block: int = BOUNDARY) -> Value:
    """One to MAX_BURST lines from line number ``line`` that do not cross a multiple of ``block`` bytes."""
    lines = block // CONFIG.bus_bytes
    place = line[: exact_log2(lines)]
    return (beats != 0) & (beats <= MAX_BURST) & (place + beats <= lines)


def inside_granule(line: Value, beats: Value) -> Value:
    """A legal burst that stays in a granule of its address's mapping class."""
    mapping = line[CONFIG.place_bits - LINE_BITS :]
    legal = [legal_burst(line, beats, block=granule_bytes(c, CONFIG)) for c in range(CLASSES)]
    return Cat(*legal).bit_select(mapping, 1)


class Source(Elaboratable):
    """A unit that asks for lines, in whatever surroundings: each request is a legal burst, inside of a granule."""

    def __init__(self, unit: Any, request: Any, *, most: int = BOUNDARY) -> None:
        self.unit, self._request, self._most = unit, request, most
        self.some, self.long = Signal(name="some"), Signal(name="long")
        self.ports = [*inputs(unit), self.some, self.long]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = self.unit
        valid, line, beats = self._request(m, self.unit)
        m.d.comb += [self.some.eq(valid), self.long.eq(valid & (beats > 1))]
        with m.If(valid):
            m.d.comb += Assert(inside_granule(line, beats) & legal_burst(line, beats, block=self._most))
        return m


def _chunk(m: Module, unit: RowSplit) -> tuple[Value, Value, Value]:
    m.d.comb += Assume(unit.i.payload.size != 0)
    return unit.o.valid, unit.o.payload.line, unit.o.payload.beats


def _load(m: Module, unit: LinePrefetcher) -> tuple[Value, Value, Value]:
    return unit.request.valid, unit.request.payload.line, unit.request.payload.beats


def _words(m: Module, unit: WordReader) -> tuple[Value, Value, Value]:
    m.d.comb += Assume(~unit.address[:LINE_BITS].any())
    request = unit.requests.payload
    return unit.requests.valid, request.address[LINE_BITS:], request.beats


SOURCES = {
    "row-split": (lambda: RowSplit(CONFIG), _chunk),
    "line-fetcher": (lambda: LinePrefetcher(CONFIG, 0), _load),
    "line-reader": (lambda: WordReader(CONFIG), _words),
}


def prove_source(name: str, *, most: int = BOUNDARY) -> Result:
    make, request = SOURCES[name]
    spec = Source(make(), request, most=most)
    return examine(spec, spec.ports, 9, goals=["some", "long"], abstract=True)


@pytest.mark.parametrize("name", SOURCES)
def test_read_bursts_are_legal(name):
    assert prove_source(name)


def test_the_proof_of_bursts_can_fail():
    """Half a granule is crossed."""
    assert not prove_source("row-split", most=CONFIG.bus_bytes).holds


class Asks(Elaboratable):
    """A read port: each burst on it is one that it was asked for, and legal. ``fault`` plants a mistake."""

    def __init__(self, config: Config, *, fault: bool = False) -> None:
        self.unit, self._fault = ReadPort(config, 0), fault
        self.asked = Signal(name="asked")
        self.ports = [*inputs(self.unit), self.asked]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        bus, request = unit.bus, unit.requests.payload
        with m.If(unit.requests.valid):
            m.d.comb += Assume(legal_burst(request.line, request.beats))
        owed = Signal(3)
        m.d.sync += owed.eq(owed + (unit.requests.valid & unit.requests.ready) - (bus.arvalid & bus.arready))
        offered = Signal()
        m.d.sync += offered.eq(bus.arvalid & ~bus.arready)
        with m.If(bus.arvalid):
            m.d.comb += [
                Assert(offered | ~unit.hold, "a burst is begun while reads are held back"),
                Assert(owed != 0, "a burst that nobody asked for"),
                Assert(bus.arlen + self._fault < MAX_BURST),
                Assert(legal_burst(bus.araddr[LINE_BITS:], bus.arlen + 1)),
                Assert(~bus.araddr[:LINE_BITS].any()),
                Assert((bus.arburst == Burst.INCR) & (bus.arsize == beat_size(CONFIG)) & (bus.arid == 0)),
            ]
        m.d.comb += self.asked.eq(bus.arvalid & (bus.arlen != 0))
        return m


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("config", [CONFIG, GROUPED], ids=["in-order", "groups"])
def test_read_bursts_are_those_asked_for(config, fault):
    spec = Asks(config, fault=fault)
    assert bool(examine(spec, spec.ports, 8, goals=["asked"])) is not fault


class Returns(Elaboratable):
    """The fabric takes every beat within ``wait`` cycles. Memory sends beats for bursts on their way only."""

    def __init__(self, *, wait: int) -> None:
        self.unit, self._wait = ReadFabric(CONFIG), wait
        self.returned = Signal(name="returned")
        self.ports = [*inputs(self.unit), self.returned]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        for number in range(CONFIG.ports):
            bus, flying, waiting = getattr(unit, f"read{number}"), Signal(range(16)), Signal()
            m.d.sync += [
                flying.eq(flying + (bus.arvalid & bus.arready) - (bus.rvalid & bus.rready & bus.rlast)),
                waiting.eq(bus.rvalid & ~bus.rready),
            ]
            m.d.comb += [Assume(~bus.rvalid | (flying != 0)), Assume(~waiting | bus.rvalid)]
            within(m, bus.rvalid, bus.rready, self._wait)
        m.d.comb += self.returned.eq(unit.returns.valid)
        return m


def prove_returns(*, wait: int) -> Result:
    spec = Returns(wait=wait)
    return examine(spec, spec.ports, 10, goals=["returned"], abstract=True)


def test_no_beat_waits_for_a_consumer():
    """It waits for the bus that all ports share, at most a cycle for each of them."""
    assert prove_returns(wait=CONFIG.ports)


def test_the_proof_of_returns_can_fail():
    assert not prove_returns(wait=0).holds


class Writes(Elaboratable):
    """The write port behind the store unit's merger, for any lines: every rule of bursts, data and acknowledgements.

    An arbitrary burst is followed: ``begin`` is the number of its first line among all. ``fault`` plants a mistake.
    """

    def __init__(self, *, fault: bool = False) -> None:
        self.unit, self._fault = WriteBatcher(CONFIG), fault
        self.done = Signal(name="done")
        self.ports = [*inputs(self.unit), self.done]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        bus = unit.write
        announced, written, bursts, chosen = Signal(COUNT), Signal(COUNT), Signal(COUNT), AnyConst(COUNT)
        begin, beats, known = Signal(COUNT), Signal(COUNT), Signal()
        new, before = Signal(), Signal()  # an address that was not there in the cycle before
        m.d.sync += before.eq(bus.awvalid & ~bus.awready)
        m.d.comb += new.eq(bus.awvalid & ~before)
        with m.If(new):
            m.d.sync += [announced.eq(announced + bus.awlen + 1), bursts.eq(bursts + 1)]
            with m.If(bursts == chosen):
                m.d.sync += [begin.eq(announced), beats.eq(bus.awlen + 1), known.eq(1)]
        owed = Signal(COUNT)
        m.d.comb += owed.eq(Mux(new, announced + bus.awlen + 1, announced) - written)
        with m.If(bus.wvalid):
            m.d.comb += Assert(owed != 0, "a line without an address")
            with m.If(known & ((written - begin)[:COUNT] < beats)):
                m.d.comb += Assert(bus.wlast == ((written - begin)[:COUNT] + 1 + self._fault == beats))
            with m.If(bus.wready):
                m.d.sync += written.eq(written + 1)
        within(m, owed != 0, bus.wvalid, 3)
        self._addresses(m, bus)
        self._acknowledge(m, bus)
        m.d.comb += [Assume(~unit.valid | unit.room), Assume(~unit.line.line[LINE_NUMBER_BITS:].any())]
        m.d.comb += self.done.eq(known & (beats == 2) & bus.bvalid & bus.bready & (written == begin + 2))
        return m

    def _addresses(self, m: Module, bus: Any) -> None:
        with m.If(bus.awvalid):
            m.d.comb += [
                Assert(bus.awlen < CONFIG.write_burst),
                Assert(legal_burst(bus.awaddr[LINE_BITS:], bus.awlen + 1)),
                Assert(~bus.awaddr[:LINE_BITS].any()),
                Assert((bus.awburst == Burst.INCR) & (bus.awsize == beat_size(CONFIG)) & (bus.awid == 0)),
            ]

    def _acknowledge(self, m: Module, bus: Any) -> None:
        """Memory acknowledges what it has taken, and is heard."""
        addresses, lasts, answers = Signal(COUNT), Signal(COUNT), Signal(COUNT)
        m.d.sync += [
            addresses.eq(addresses + (bus.awvalid & bus.awready)),
            lasts.eq(lasts + (bus.wvalid & bus.wready & bus.wlast)),
            answers.eq(answers + (bus.bvalid & bus.bready)),
        ]
        m.d.comb += Assume(~bus.bvalid | ((answers != addresses) & (answers != lasts)))
        within(m, bus.bvalid, bus.bready, 1)


def prove_writes(monkeypatch, *, fault: bool = False) -> Result:
    for name in ("lines_held", "bursts_held"):
        monkeypatch.setattr(write_batcher, name, lambda _: 6)
    monkeypatch.setattr(write_batcher, "MARGIN", 3)
    spec = Writes(fault=fault)
    return examine(spec, spec.ports, 11, goals=["done"])


def test_write_port(monkeypatch):
    assert prove_writes(monkeypatch)


def test_the_proof_of_writes_can_fail(monkeypatch):
    assert not prove_writes(monkeypatch, fault=True).holds


class Control(Elaboratable):
    """The AXI4-Lite slave: an answer for each request, one at a time, and never an error."""

    def __init__(self) -> None:
        self.unit = ControlRegisters(CONFIG)
        self.both = Signal(name="both")
        self.ports = [*inputs(self.unit), self.both]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = self.unit
        bus = self.unit.bus
        writes, reads = Signal(), Signal()  # taken, not answered
        aw, w, b = (getattr(bus, f"{x}valid") & getattr(bus, f"{x}ready") for x in ("aw", "w", "b"))
        ar, r = bus.arvalid & bus.arready, bus.rvalid & bus.rready
        m.d.sync += [writes.eq((writes | aw) & ~b), reads.eq((reads | ar) & ~r)]
        m.d.comb += [
            Assert(aw == w, "address and data are taken together"),
            Assert(~bus.bvalid | writes),
            Assert(~bus.rvalid | reads),
            Assert(~(aw & writes) & ~(ar & reads)),
            Assert((bus.bresp == 0) & (bus.rresp == 0)),
            self.both.eq(b & r),
        ]
        within(m, writes, bus.bvalid, 0)
        within(m, reads, bus.rvalid, 0)
        within(m, bus.awvalid & bus.wvalid, bus.awready | bus.bvalid, 0)
        within(m, bus.arvalid, bus.arready | bus.rvalid, 0)
        return m


def test_control_port():
    """By induction: for ever."""
    spec = Control()
    assert examine(spec, spec.ports, 6, induction=3, goals=["both"])
