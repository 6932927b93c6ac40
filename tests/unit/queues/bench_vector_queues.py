"""cocotb bench of VectorQueues: a memory that returns reserved beats in any order."""

import random
from dataclasses import dataclass

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.interfaces import Client, beat_layout, return_layout, row_granules
from daedal.hw.isa.elements import ROW_GRANULE
from daedal.hw.isa.words import FetchQueue
from daedal.hw.queues.reorder_buffer import most_slots, reserve_layout
from tests.unit.harness import bench_config
from tests.unit.payload import Payload
from tests.unit.streams import Sink, start

RESERVE = Payload(reserve_layout())
NAMES = ("vector0", "vector1", "stream")


@dataclass
class Chunk:
    """Beats of one reservation that have not returned yet."""

    queue: int
    slot: int
    beats: list[dict[str, int]]


class Bench:
    """Reserves, remembers what must come out, and returns beats of random chunks."""

    def __init__(self, dut, *, idle: float = 0.0, pause: float = 0.0, seed: int = 1) -> None:
        self.dut, self.config, self.random, self.idle = dut, bench_config(), random.Random(seed), idle
        self.expected: list[list[dict[str, int]]] = [[], [], []]
        self.chunks: list[Chunk] = []
        self.layout = beat_layout(self.config)
        self.sinks = [Sink(dut, name, self.layout, pause=pause, seed=seed) for name in NAMES]
        self.beat = Payload(return_layout(self.config))
        dut.reserve__valid.value = 0
        dut.returns__valid.value = 0
        dut.clear.value = 0

    def make_beats(self, count: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
        """Beats of a row that begins somewhere in its first line: what must come out, and what its lines return."""
        bus, granules = self.config.bus_bytes, row_granules(self.config)
        begins = self.random.choice((0, self.random.randrange(granules)))
        size = (count - 1) * bus + ROW_GRANULE * self.random.randint(1, granules - begins)
        lines = self.random.randbytes(count * bus)
        row = lines[begins * ROW_GRANULE :][:size]
        out, returned = [], []
        for n in range(count):
            last, line = n == count - 1, lines[n * bus : (n + 1) * bus]
            part = row[n * bus : (n + 1) * bus]
            what = {"bytes": len(part), "last": int(last)}
            out.append({"data": int.from_bytes(part, "little"), **what})
            rotated = line[begins * ROW_GRANULE :] + line[: begins * ROW_GRANULE]
            own = (1 << granules - begins) - 1
            returned.append({"data": int.from_bytes(rotated, "little"), "own": own, "follows": int(n > 0), **what})
        return out, returned

    async def reserve(self, queue: int, count: int, *, patience: int = 5000) -> bool:
        """Reserve ``count`` slots; False if that was refused for ``patience`` cycles."""
        dut = self.dut
        dut.reserve__payload.value = RESERVE.pack({"queue": FetchQueue(queue), "beats": count})
        dut.reserve__valid.value = 1
        for _ in range(patience):
            await RisingEdge(dut.clk)
            if dut.reserve__ready.value:
                out, returned = self.make_beats(count)
                self.expected[queue] += out
                self.chunks.append(Chunk(queue, int(dut.slot.value), returned))
                dut.reserve__valid.value = 0
                return True
        dut.reserve__valid.value = 0
        return False

    async def give_back(self, *, in_order: bool = False) -> None:
        """Return beats for ever: one of a random chunk at a time, with other clients' beats in between."""
        dut = self.dut
        while True:
            dut.returns__valid.value = 0
            if self.chunks and self.random.random() >= self.idle:
                self.put(self.chunks[0] if in_order else self.random.choice(self.chunks))
            elif not in_order and self.random.random() < 0.3:
                self.put_other()
            await RisingEdge(dut.clk)

    def put(self, chunk: Chunk) -> None:
        beat = chunk.beats.pop(0)
        self.put_beat(Client(chunk.queue), chunk.slot, beat)
        chunk.slot = (chunk.slot + 1) % self.config.vector_beats
        if not chunk.beats:
            self.chunks.remove(chunk)

    def put_other(self) -> None:
        client = self.random.choice((Client.LOAD, Client.LOADER))
        self.put_beat(client, self.random.randrange(self.config.vector_beats), self.make_beats(1)[1][0])

    def put_beat(self, client: Client, slot: int, beat: dict[str, int]) -> None:
        value = {"client": client, "slot": slot, **beat}
        self.dut.returns__beat.value = self.beat.pack(value)
        self.dut.returns__valid.value = 1

    async def check_all(self) -> None:
        """Everything reserved comes out, in order, and nothing else; then the queues are empty."""
        for queue, (sink, expected) in enumerate(zip(self.sinks, self.expected, strict=True)):
            await sink.wait(len(expected))
            got = [{name: int(beat[name]) for name in ("data", "bytes", "last")} for beat in sink.got]
            for beat in got:
                beat["data"] %= 1 << 8 * beat["bytes"]  # what is behind a row's end is anything
            assert got == expected, f"queue {queue}: order or contents"
        for _ in range(5):
            await RisingEdge(self.dut.clk)
        assert self.dut.empty.value and self.dut.occupied.value == 0, "not empty at the end"
        assert [len(sink.got) for sink in self.sinks] == [len(e) for e in self.expected]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5])
async def any_order_in_and_order_out(dut, idle, pause):
    await start(dut)
    bench = Bench(dut, idle=idle, pause=pause)
    cocotb.start_soon(bench.give_back())
    for _ in range(120):
        assert await bench.reserve(bench.random.randrange(3), bench.random.randint(1, 16))
        await RisingEdge(dut.clk)
        assert not dut.empty.value or not bench.chunks
    await bench.check_all()


@cocotb.test()
@cocotb.parametrize(queue=[0, 1, 2])
async def one_beat_per_cycle(dut, queue):
    """Beats in order at full rate, for two rounds through the slots."""
    await start(dut)
    bench = Bench(dut)
    beats = 2 * bench.config.vector_beats
    chunk = max(1, bench.config.vector_beats // 8)
    assert await bench.reserve(queue, 1)
    cocotb.start_soon(bench.give_back(in_order=True))
    await bench.sinks[queue].wait(1)
    cycles = 0
    task = cocotb.start_soon(_reserve_many(bench, queue, beats // min(chunk, 16), min(chunk, 16)))
    while len(bench.sinks[queue].got) < 1 + beats // min(chunk, 16) * min(chunk, 16):
        await RisingEdge(dut.clk)
        cycles += 1
        assert cycles < 4 * beats
    await task
    assert cycles <= beats + 8, f"{cycles} cycles for {beats} beats"
    await bench.check_all()


async def _reserve_many(bench: Bench, queue: int, count: int, beats: int) -> None:
    for _ in range(count):
        assert await bench.reserve(queue, beats)


@cocotb.test()
async def limits_and_marks(dut):
    """Reservations stop exactly at the queue's size and at the budget, and go on when slots have drained."""
    await start(dut)
    bench = Bench(dut, pause=1.0)
    size, budget = bench.config.vector_beats, bench.config.reorder_beats
    reserved = [0, 0, 0]
    for queue in range(3):
        while await bench.reserve(queue, 1, patience=size + 8 if not sum(reserved) else 4):
            reserved[queue] += 1
    first = min(size, budget)
    second = min(size, budget - first)
    assert reserved == [first, second, min(size, budget - first - second)]
    assert [int(getattr(dut, f"mark{n}").value) for n in range(3)] == reserved
    assert int(dut.occupied.value) == sum((count > 0) << queue for queue, count in enumerate(reserved))
    assert not await bench.reserve(2, 16, patience=10)
    for sink in bench.sinks:
        sink.pause = 0.0
    cocotb.start_soon(bench.give_back())
    assert await bench.reserve(2, 16)
    await bench.check_all()
    dut.clear.value = 1
    await RisingEdge(dut.clk)
    dut.clear.value = 0
    await RisingEdge(dut.clk)
    assert [int(getattr(dut, f"mark{n}").value) for n in range(3)] == [0, 0, 0]


@cocotb.test()
@cocotb.parametrize(queue=[0, 1, 2])
async def rows_that_wait_for_the_execute_unit_are_many(dut, queue):
    """From most of the slots on, and no longer than they are; rows to be stored as they are do not count."""
    await start(dut)
    bench = Bench(dut, pause=1.0)
    most, slots, seen = most_slots(bench.config), min(bench.config.vector_beats, bench.config.reorder_beats), 0
    for _ in range(slots):
        assert await bench.reserve(queue, 1)
        assert not dut.plenty.value, "none of them has come"
    task = cocotb.start_soon(bench.give_back(in_order=True))
    while bench.chunks:
        await RisingEdge(dut.clk)
        seen += int(dut.plenty.value)
        assert not dut.plenty.value or slots - len(bench.chunks) >= most
    for _ in range(5):
        await RisingEdge(dut.clk)
    # Some are at the queue's output, beyond the slots.
    assert seen <= slots - most and bool(dut.plenty.value) == (queue < 2)
    bench.sinks[queue].pause = 0.0
    await bench.sinks[queue].wait(slots - most + 8)
    assert not dut.plenty.value
    task.cancel()


@cocotb.test()
async def reset_forgets_what_was_full(dut):
    """A reset in the middle of it all leaves nothing that looks like a returned beat."""
    await start(dut)
    bench = Bench(dut, pause=1.0)
    assert await bench.reserve(0, 16)
    task = cocotb.start_soon(bench.give_back())
    while bench.chunks:
        await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    task.cancel()
    dut.returns__valid.value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    bench.expected[0].clear()
    for sink in bench.sinks:
        sink.pause = 0.0
    cocotb.start_soon(bench.give_back())
    assert await bench.reserve(0, 16)
    assert await bench.reserve(1, 3)
    await bench.check_all()
