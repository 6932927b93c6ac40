"""cocotb bench of StoreUnit."""

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_layout, fault_layout, store_address_layout
from daedal.hw.isa.address_mapping import CLASSES, PLAIN, in_class, memory_address, place_bits
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from daedal.hw.isa.launch import STORE_GRANULE, Cause, Queue
from daedal.hw.memory.store.write_batcher import MARGIN, bursts_held, early_lines, lines_held
from tests.unit.harness import bench_config
from tests.unit.memories import Target, write_slave
from tests.unit.streams import Source, count_cycles, decode, reset, start, watch_handshake

SIZE = 1 << 16


class Bench:
    """Sends rows, keeps a picture of what memory must look like, and counts what the unit says it did."""

    def __init__(self, dut: Any, *, idle: float = 0.0, pause: float = 0.0, slave: bool = True) -> None:
        self.dut, self.config, self.random = dut, bench_config(), random.Random(5)
        layout = beat_layout(self.config)
        self.addresses = Source(dut, "addresses", store_address_layout(self.config), idle=idle)
        self.data = Source(dut, "data", layout, idle=idle)
        self.stream = Source(dut, "stream_data", layout, idle=idle)
        self.target = Target(SIZE, seed=9)
        self.picture = bytearray(self.target.bytes)
        if slave:
            write_slave(dut, "write", self.target, pause=pause)
        dut.flush.value = dut.halt.value = dut.early.value = 0
        dut.guard.value = 1
        self.allow(0, SIZE)
        self.bursts: list[tuple[int, int]] = []
        self.lines = self.bytes = self.acknowledged = self.beats = self.most_missing = 0
        cocotb.start_soon(self._count())
        for channel, payload in (("aw", ("awaddr", "awlen")), ("w", ("wdata", "wstrb", "wlast"))):
            watch_handshake(dut, f"write__{channel}", [f"write__{name}" for name in payload])

    async def _count(self) -> None:
        dut, data_here, missing = self.dut, 0, 0
        while True:
            await RisingEdge(dut.clk)
            if dut.rst.value:
                continue
            self.lines += int(dut.report__line.value)
            self.bytes += int(dut.report__bytes.value)
            self.acknowledged += int(dut.report__acknowledged.value)
            # Once a burst has been announced its lines come (two cycles later) whenever memory takes them.
            data_here += int(dut.write__wvalid.value and dut.write__wready.value)
            if dut.write__awvalid.value and dut.write__awready.value:
                self.bursts.append((int(dut.write__awaddr.value), int(dut.write__awlen.value) + 1))
            announced = sum(beats for _, beats in self.bursts)
            missing = missing + 1 if announced > data_here and not dut.write__wvalid.value else 0
            self.most_missing = max(self.most_missing, missing)

    def allow(self, start: int, end: int) -> None:
        """The store window is memory from ``start`` to ``end``."""
        bits = len(self.dut.window) // 2
        self.dut.window.value = start // STORE_GRANULE | (end // STORE_GRANULE - 1) % (1 << bits) << bits

    def row(self, address: int, size: int, *, stream: bool = False) -> list[dict[str, int]]:
        """Beats of a random row to go to ``address``, of the store stream in whole granules; the picture is changed."""
        content, bus = self.random.randbytes(size), self.config.bus_bytes
        for n in range(0, size, STORE_STEP):  # steps never go on into another granule
            at = memory_address(address + n, self.config)
            self.picture[at : at + STORE_STEP] = content[n : n + STORE_STEP]
        beats = []
        for first in range(0, size, bus):
            part = content[first : first + bus]
            junk = self.random.randbytes(bus - len(part))  # beyond the valid bytes there may be anything
            there = -(-len(part) // ROW_GRANULE) * ROW_GRANULE if stream else len(part)
            beats.append({"data": int.from_bytes(part + junk, "little"), "bytes": there,
                          "last": int(first + bus >= size)})  # fmt: skip
        self.beats += len(beats)
        return beats

    def send(self, rows: list[tuple[int, int]], *, streams: float = 0.0) -> cocotb.task.Task[None]:
        """Send rows given as (address, size), some of them through the store stream."""
        addresses: list[dict[str, int]] = []
        beats: tuple[list[Any], list[Any]] = ([], [])
        for address, size in rows:
            stream = self.random.random() < streams
            addresses.append({"address": address, "size": size, "stream": int(stream)})
            beats[stream].extend(self.row(address, size, stream=stream))

        async def all_() -> None:
            tasks = [self.addresses.start(addresses), self.data.start(beats[0]), self.stream.start(beats[1])]
            for task in tasks:
                await task

        return cocotb.start_soon(all_())

    async def finish(self, *, cycles: int = 20_000) -> None:
        """Wait until the unit is idle; memory must be like the picture."""
        await RisingEdge(self.dut.clk)
        self.dut.flush.value = 1
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if self.dut.report__idle.value:
                break
        assert self.dut.report__idle.value and self.dut.report__quiet.value
        assert not self.dut.fault__valid.value
        self.dut.flush.value = 0
        assert self.target.bytes == self.picture, self._difference()
        assert self.acknowledged == len(self.bursts)
        assert self.lines == sum(beats for _, beats in self.bursts)
        for address, beats in self.bursts:
            assert beats <= self.config.write_burst
            page = min(4096, self.config.page_bytes)
            assert address // page == (address + beats * self.config.bus_bytes - 1) // page
        assert self.most_missing <= 2, "a burst was announced before its lines were there"

    def _difference(self) -> str:
        first = next(n for n, (a, b) in enumerate(zip(self.target.bytes, self.picture, strict=True)) if a != b)
        return f"first difference at {first:#x}"

    def somewhere(self, size: int) -> int:
        return STORE_STEP * self.random.randrange((SIZE - size) // STORE_STEP)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], pause=[0.0, 0.5])
async def any_row_anywhere(dut, idle, pause):
    """Rows of all sizes at all steps, close together, so that many share lines and follow each other.

    Of all mapping classes, which may name the same memory: rows are written in order even so.
    """
    bench = Bench(dut, idle=idle, pause=pause)
    await start(dut)
    rows, address, mapping = [], 4096 - 64, PLAIN
    for _ in range(100):
        size = STORE_STEP * bench.random.choice((1, 1, 2, 2, 3, 4, 5, 8, 10, 16, 17, 32, 33, 66, 199, 200))
        address = bench.random.choice((address, address, address + 4, address - STORE_STEP, bench.somewhere(size)))
        address = max(0, min(address, SIZE - size))
        mapping = bench.random.choice((mapping, mapping, mapping, bench.random.randrange(CLASSES)))
        rows.append((in_class(address, mapping, bench.config), size))
        address += size
    await bench.send(rows, streams=0.3)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.8])
async def flush_may_be_on_all_the_time(dut, idle):
    """It tears no lines, however slowly the data of rows that were announced come."""
    bench = Bench(dut)
    bench.data.idle = idle
    await start(dut)
    dut.flush.value = 1
    await bench.send([(8 * n, 8) for n in range(40)])
    await bench.finish()
    assert bench.lines == 40 * 8 // bench.config.bus_bytes, "flush tore rows of one line apart"


@cocotb.test()
@cocotb.parametrize(elements=[1, 2, 3, 4])
async def short_rows_are_merged(dut, elements):
    """Rows packed one after the other: one or two cycles each, every line is written once, in full bursts."""
    bench = Bench(dut)
    await start(dut)
    size, bus = 4 * elements, bench.config.bus_bytes
    count = 192
    task = bench.send([(n * size, size) for n in range(count)])
    cycles = await count_cycles(dut, task)
    await bench.finish()
    assert bench.lines == -(-count * size // bus)
    pages = -(-bench.lines * bench.config.bus_bytes // bench.config.page_bytes)  # a burst ends with its page
    assert len(bench.bursts) <= -(-bench.lines // bench.config.write_burst) + 1 + pages
    beats = -(-size // bus)
    assert cycles <= 2 * count * beats + 8, f"{cycles} cycles for {count} rows"


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, CLASSES - 1])
async def long_aligned_rows_at_full_rate(dut, mapping):
    """A beat per cycle goes in, and the same number of lines comes out while they do."""
    bench = Bench(dut, slave=False)
    perfect_memory(dut)
    await start(dut)
    size, bus = 256, bench.config.bus_bytes
    count = 3 * lines_held(bench.config) * bus // size
    task = bench.send([(in_class(n * size % SIZE, mapping, bench.config), size) for n in range(count)])
    cycles = await count_cycles(dut, task)
    assert bench.beats / cycles >= 0.97, f"{bench.beats} beats in {cycles} cycles"
    dut.flush.value = 1
    for _ in range(lines_held(bench.config) + 120):
        await RisingEdge(dut.clk)
    assert bench.lines == bench.beats


@cocotb.test()
async def lines_go_out_together(dut):
    """Nothing is written before there is a batch; from then on reads are held back until its last line has gone out."""
    bench = Bench(dut, slave=False)
    perfect_memory(dut)
    await start(dut)
    bus, batch = bench.config.bus_bytes, bench.config.write_batch
    few = min(batch, bursts_held(bench.config) - MARGIN) // 2
    await bench.send([(2 * n * bus, bus) for n in range(few)])
    for _ in range(300):
        await RisingEdge(dut.clk)
        assert not dut.hold.value and not dut.write__awvalid.value, "a line is written alone"
    await bench.send([(4096 + n * bus, bus) for n in range(2 * batch)])
    held = 0
    for _ in range(4 * batch + 300):
        await RisingEdge(dut.clk)
        held += int(dut.hold.value)
        writing = dut.write__awvalid.value or dut.write__wvalid.value
        assert dut.hold.value or not writing, "reads may go while lines are written"
    assert not dut.hold.value and dut.report__quiet.value and bench.lines >= batch
    assert held <= bench.lines + 40, f"reads waited {held} cycles for {bench.lines} lines"
    dut.halt.value = 1
    dut.flush.value = 1
    for _ in range(20):
        await RisingEdge(dut.clk)
        assert not dut.hold.value, "held back while nothing is written"


@cocotb.test()
async def a_short_batch_is_written_early(dut):
    """While reads are not urgent fewer lines are enough; a burst that is not complete still waits."""
    bench = Bench(dut, slave=False)
    perfect_memory(dut)
    await start(dut)
    bus, few = bench.config.bus_bytes, early_lines(bench.config)
    assert few < bench.config.write_batch
    await bench.send([(2 * n * bus, bus) for n in range(few - 1)])
    for early in (0, 1):
        dut.early.value = early
        for _ in range(100):
            await RisingEdge(dut.clk)
            assert not dut.hold.value and not dut.write__awvalid.value
    dut.early.value = 0
    await bench.send([(2 * n * bus, bus) for n in range(few, few + 2)])
    for _ in range(100):
        await RisingEdge(dut.clk)
        assert not dut.hold.value and not dut.write__awvalid.value
    dut.early.value = 1
    await RisingEdge(dut.clk)
    dut.early.value = 0
    held = 0
    for _ in range(few + 100):
        await RisingEdge(dut.clk)
        held += int(dut.hold.value)
    assert few - 1 <= bench.lines <= few + 1 and held >= bench.lines and dut.report__quiet.value


@cocotb.test()
async def scattered_lines_at_full_rate(dut):
    """Rows of one line each, never next to each other."""
    bench = Bench(dut, slave=False)
    perfect_memory(dut)
    await start(dut)
    bus = bench.config.bus_bytes
    task = bench.send([(2 * n * bus, bus) for n in range(500)])
    cycles = await count_cycles(dut, task)
    assert cycles <= 500 * 1.25 + 10


@cocotb.test()
@cocotb.parametrize(together=[1, 3])
async def nothing_is_lost_while_the_port_is_stopped(dut, together):
    """Far more lines than can be held, in bursts of so many, while memory takes nothing: now and then, and for long."""
    bench = Bench(dut, slave=False)
    slave = write_slave(dut, "write", bench.target)
    await start(dut)
    bus, bursts = bench.config.bus_bytes, 2 * lines_held(bench.config) // together
    pitch = (together + 1) * bus
    task = bench.send([(n * pitch + k * bus, bus) for n in range(bursts) for k in range(together)])
    for cycles in (40, 7, 23, 3 * lines_held(bench.config)):
        slave.aw_channel.pause = slave.w_channel.pause = True
        for _ in range(cycles):
            await RisingEdge(dut.clk)
        slave.aw_channel.pause = slave.w_channel.pause = False
        for _ in range(8):
            await RisingEdge(dut.clk)
    await task
    await bench.finish()
    assert bench.lines == bursts * together


@cocotb.test()
async def a_wrong_length_is_a_fault(dut):
    """For each way to be wrong: too short, too long, another number of bytes; through both inputs."""
    bench = Bench(dut)
    await start(dut)
    bus = bench.config.bus_bytes
    for stream in (0, 1):
        for wrong in ({"bytes": bus, "last": 1}, {"bytes": bus - 4, "last": 0}, {"bytes": bus, "last": 0, "at": 1},
                      {"bytes": bus - 4, "last": 1, "at": 1}, {"bytes": bus - 2, "last": 1, "at": 1}):  # fmt: skip
            await reset(dut)
            source = (bench.data, bench.stream)[stream]
            more = bench.addresses.start([{"address": 0x48, "size": 2 * bus, "stream": stream}] * 6)
            beats = [{"data": 1, "bytes": bus, "last": 0}] * wrong.pop("at", 0) + [{"data": 2, **wrong}]
            await source.send(beats)
            for _ in range(4):
                await RisingEdge(dut.clk)
            assert dut.fault__valid.value
            fault = decode(fault_layout(bench.config), int(dut.fault__fault.value))
            assert fault.cause == Cause.FRAMING
            assert fault.queue == (Queue.STREAM if stream else Queue.STORE_DATA)
            assert fault.value == 2 * bus
            assert fault.address == 0x48 + (len(beats) - 1) * bus
            assert not dut.data__ready.value and not dut.stream_data__ready.value, "goes on after a fault"
            assert not dut.addresses__ready.value, "takes more addresses than wait inside"
            assert dut.report__quiet.value
            more.cancel()
            dut.addresses__valid.value = 0


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, CLASSES - 1])
async def a_memory_error_is_a_fault(dut, mapping):
    """Its address is the program's, whatever the mapping class."""
    bench = Bench(dut)
    await start(dut)
    bus, first = bench.config.bus_bytes, in_class(0x940, mapping, bench.config)
    bench.target.bad = {memory_address(first + bus, bench.config)}
    await bench.send([(0, 3 * bus), (first, 2 * bus)])
    dut.flush.value = 1
    for _ in range(100):
        await RisingEdge(dut.clk)
    assert dut.fault__valid.value
    fault = decode(fault_layout(bench.config), int(dut.fault__fault.value))
    assert (fault.cause, fault.address) == (Cause.MEMORY_ERROR, first)


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, CLASSES - 1], below=[0, 1], pause=[0.0, 0.5])
async def what_is_outside_of_the_window_is_not_written(dut, mapping, below, pause):
    """All before it is, and nothing behind it; the fault tells of the first line outside."""
    bench = Bench(dut, pause=pause)
    await start(dut)
    bus, config = bench.config.bus_bytes, bench.config
    for _ in range(6):
        await reset(dut)
        bench.picture = bytearray(bench.target.bytes)
        start_, end = sorted(bench.random.sample(range(STORE_GRANULE, SIZE - STORE_GRANULE, STORE_GRANULE), 2))
        bench.allow(start_, end)
        dut.flush.value = 0
        good = []
        for _ in range(bench.random.randrange(30)):
            size = 4 * bench.random.randrange(1, max(2, min(40, (end - start_) // 4)))
            good.append((start_ + 4 * bench.random.randrange((end - start_ - size) // 4 + 1), size))
        place = start_ - bus if below else end
        outside = program_address(place, mapping, config)
        task = bench.send(good)
        await task
        wanted = bytes(bench.picture)
        task = bench.send([(outside + 4, 4), (outside, bus), *good[:5]])
        dut.flush.value = 1
        for _ in range(1500):
            await RisingEdge(dut.clk)
            if dut.fault__valid.value:
                break
        fault = decode(fault_layout(config), int(dut.fault__fault.value))
        assert (dut.fault__valid.value, fault.cause, fault.address) == (1, Cause.STORE_WINDOW, outside)
        for _ in range(50):
            await RisingEdge(dut.clk)
        assert dut.report__quiet.value and not dut.write__awvalid.value
        assert bench.target.bytes == wanted, bench._difference()
        task.cancel()
        dut.addresses__valid.value = dut.data__valid.value = dut.stream_data__valid.value = 0


@cocotb.test()
async def a_row_that_leaves_the_window_is_cut(dut):
    """Its lines inside are written, in bursts that end with the window; without a guard all of them are."""
    bench = Bench(dut)
    await start(dut)
    end = 0x940
    bench.allow(0, end)
    before = bytes(bench.target.bytes)
    await bench.send([(end - 128, 256)])
    dut.flush.value = 1
    for _ in range(300):
        await RisingEdge(dut.clk)
    fault = decode(fault_layout(bench.config), int(dut.fault__fault.value))
    assert (dut.fault__valid.value, fault.cause, fault.address) == (1, Cause.STORE_WINDOW, end)
    assert bench.target.bytes == bench.picture[:end] + before[end:]
    dut.flush.value = 0
    await reset(dut)
    dut.guard.value = 0
    await bench.send([(end - 128, 256)])
    await bench.finish()


@cocotb.test()
async def an_empty_window_has_nothing(dut):
    bench = Bench(dut)
    await start(dut)
    bench.allow(64, 64)
    before = bytes(bench.target.bytes)
    for address in (0, 64, SIZE - 64):
        await bench.send([(address, 64)])
        dut.flush.value = 1
        for _ in range(100):
            await RisingEdge(dut.clk)
        fault = decode(fault_layout(bench.config), int(dut.fault__fault.value))
        assert (dut.fault__valid.value, fault.cause, fault.address) == (1, Cause.STORE_WINDOW, address)
        await reset(dut)
    assert bench.target.bytes == before


@cocotb.test()
async def halt_stops_and_becomes_quiet(dut):
    """With halt on nothing is taken, started bursts end; afterwards everything goes on."""
    bench = Bench(dut, pause=0.5)
    await start(dut)
    task = bench.send([(64 * n, 60) for n in range(200)])
    for _ in range(150):
        await RisingEdge(dut.clk)
    dut.halt.value = 1
    for _ in range(200):
        await RisingEdge(dut.clk)
    assert dut.report__quiet.value and not dut.report__idle.value
    sent, bursts = bench.data.sent, len(bench.bursts)
    for _ in range(100):
        await RisingEdge(dut.clk)
    assert (bench.data.sent, len(bench.bursts)) == (sent, bursts)
    dut.halt.value = 0
    await task
    await bench.finish()


def program_address(place: int, mapping: int, config: Config) -> int:
    """The address in this class of a place in memory."""
    masks, result = place_bits(mapping, config), 0
    for bit, mask in enumerate(masks):
        result |= ((place & mask).bit_count() & 1) << bit
    return in_class(result, mapping, config)


def perfect_memory(dut: Any) -> None:
    """Takes an address and a line in every cycle, acknowledges four cycles later."""

    async def run() -> None:
        dut.write__awready.value = dut.write__wready.value = 1
        dut.write__bvalid.value, dut.write__bresp.value, dut.write__bid.value = 0, 0, 0
        ends: list[int] = []
        cycle = 0
        while True:
            await RisingEdge(dut.clk)
            cycle += 1
            if dut.write__wvalid.value and dut.write__wlast.value:
                ends.append(cycle + 4)
            if dut.write__bvalid.value and dut.write__bready.value:
                ends.pop(0)
            dut.write__bvalid.value = bool(ends) and ends[0] <= cycle

    cocotb.start_soon(run())
