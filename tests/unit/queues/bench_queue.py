"""cocotb bench of Fifo."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.config.core import Config
from daedal.hw.interfaces import store_address_layout
from tests.unit.harness import parameters
from tests.unit.streams import Sink, Source, count_cycles, start

LAYOUT = store_address_layout(Config())
COUNT = 300


def payloads() -> list[dict[str, int]]:
    rng = random.Random(7)
    return [{"address": rng.getrandbits(40), "size": rng.getrandbits(20), "stream": n & 1} for n in range(COUNT)]


async def run(dut, idle: float, pause: float) -> int:
    """Send everything through; return the cycles it took."""
    await start(dut)
    source, sink = Source(dut, "i", LAYOUT, idle=idle), Sink(dut, "o", LAYOUT, pause=pause)
    sent = payloads()
    task = source.start(sent)
    cycles = await count_cycles(dut, task)
    got = await sink.wait(COUNT)
    assert [{k: g[k] for k in sent[0]} for g in got] == sent
    await RisingEdge(dut.clk)
    assert dut.level.value == 0 and not dut.o__valid.value, "not empty at the end"
    assert 1 <= int(dut.mark.value) <= parameters()["depth"]
    return cycles


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], pause=[0.0, 0.6])
async def keeps_order(dut, idle, pause):
    cycles = await run(dut, idle, pause)
    if not idle and not pause:
        assert cycles <= COUNT + 2, "not one per cycle when empty"


@cocotb.test()
async def full_rate_at_every_occupancy(dut):
    """Fill to an occupancy, then push and pop in every cycle; the queue must neither refuse nor run dry."""
    await start(dut)
    depth = parameters()["depth"]
    source = Source(dut, "i", LAYOUT)
    sink = Sink(dut, "o", LAYOUT, pause=1.0)
    sent = payloads()
    # As many as the latency keep it busy; a queue that is full must be popped first.
    for occupancy in {2, 3, 4, depth // 2, depth - 1} & set(range(min(4, depth - 1), depth)):
        sink.pause, before = 1.0, len(sink.got)
        await source.send(sent[:occupancy])
        for _ in range(4):
            await RisingEdge(dut.clk)
        assert dut.level.value == occupancy
        sink.pause = 0.0
        task = source.start(sent[occupancy:200])
        assert await count_cycles(dut, task) <= 200 - occupancy + 2
        await sink.wait(before + 200)


@cocotb.test()
async def mark_remembers_until_cleared(dut):
    await start(dut)
    depth = parameters()["depth"]
    source, sink = Source(dut, "i", LAYOUT), Sink(dut, "o", LAYOUT, pause=1.0)
    dut.clear.value = 0
    await source.send(payloads()[:depth])
    for _ in range(4):
        await RisingEdge(dut.clk)
    assert not dut.i__ready.value and dut.level.value == depth and dut.mark.value == depth
    sink.pause = 0.0
    await sink.wait(depth)
    for _ in range(2):
        await RisingEdge(dut.clk)
    assert (int(dut.level.value), int(dut.mark.value)) == (0, depth)
    dut.clear.value = 1
    await RisingEdge(dut.clk)
    dut.clear.value = 0
    await RisingEdge(dut.clk)
    assert dut.mark.value == 0
