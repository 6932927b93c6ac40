"""cocotb bench of RowGroups."""

import random
from collections import deque
from typing import Any

import cocotb
from amaranth.lib import data
from cocotb.triggers import RisingEdge

from tests.unit.harness import parameters
from tests.unit.streams import Sink, Source, count_cycles, start

COUNT = 600
LAYOUT = data.StructLayout({"number": 16, "key": 8})


def is_small() -> bool:
    """Whether the queue cannot hold the groups of the tests that write them out."""
    return parameters().get("depth", 0) < 8 or parameters()["keys"] < 4


def payloads(*, keys: int, seed: int = 5) -> list[dict[str, int]]:
    rng = random.Random(seed)
    return [{"number": n, "key": min(rng.randrange(keys), rng.randrange(keys))} for n in range(COUNT)]


class Bench:
    """A source that gives the key with the payload, and a sink."""

    def __init__(self, dut: Any, *, idle: float = 0.0, pause: float = 0.0) -> None:
        self.dut, self.depth, self.keys = dut, parameters()["depth"], parameters()["keys"]
        self.source, self.sink = Source(dut, "i", LAYOUT, idle=idle), Sink(dut, "o", LAYOUT, pause=pause)

    def got(self) -> list[dict[str, int]]:
        return [{"number": int(of["number"]), "key": int(of["key"])} for of in self.sink.got]

    async def fill(self, keys: str) -> None:
        """Send payloads with these keys, letters, while nothing leaves."""
        self.sink.pause = 1.0
        await self.source.send({"number": n, "key": ord(key) - ord("a")} for n, key in enumerate(keys))
        for _ in range(4):
            await RisingEdge(self.dut.clk)

    async def drain(self, count: int) -> str:
        """What leaves then, as letters with the payloads' numbers."""
        self.sink.pause, before = 0.0, len(self.sink.got)
        await self.sink.wait(before + count)
        return " ".join(f"{chr(ord('a') + of['key'])}{of['number']}" for of in self.got()[before:])


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5, 0.9])
async def loses_nothing_and_keeps_the_order_of_a_key(dut, idle, pause):
    bench = Bench(dut, idle=idle, pause=pause)
    await start(dut)
    sent = payloads(keys=bench.keys)
    cycles = await count_cycles(dut, bench.source.start(sent))
    await bench.sink.wait(COUNT)
    got = bench.got()
    for key in range(bench.keys):
        assert [of for of in got if of["key"] == key] == [of for of in sent if of["key"] == key]
    assert sorted(of["number"] for of in got) == list(range(COUNT))
    if not idle and not pause and bench.depth > 2:
        sweep = 1 << (max(bench.depth, bench.keys) - 1).bit_length()
        assert cycles <= sweep + COUNT + 4, "not one per cycle"


@cocotb.test(skip=is_small())
async def a_group_leaves_as_a_whole(dut):
    """Groups in the order of their first payloads; the first one is on its way before there is a second of its key."""
    bench = Bench(dut)
    await start(dut)
    for _ in range(2 * bench.depth // 8 + 1):  # until all places have been used again
        await bench.fill("abcbadbc")
        assert await bench.drain(8) == "a0 b1 b3 b6 c2 c7 a4 d5"


@cocotb.test(skip=is_small())
async def a_group_whose_turn_has_come_takes_no_more(dut):
    bench = Bench(dut)
    await start(dut)
    await bench.fill("abbc")
    bench.sink.pause = 0.0
    await bench.sink.wait(2)  # the second group has begun to leave
    bench.sink.pause = 1.0
    await bench.source.send([{"number": 9, "key": 1}])
    bench.sink.pause = 0.0
    await bench.sink.wait(5)
    assert [of["number"] for of in bench.got()] == [0, 1, 2, 3, 9]


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def one_key_keeps_no_other_from_leaving(dut, pause):
    bench = Bench(dut, pause=pause)
    await start(dut)
    others = set(range(20, COUNT, 3 * bench.depth))
    bench.source.start({"number": n, "key": int(n in others)} for n in range(COUNT))
    await bench.sink.wait(COUNT)
    order = [of["number"] for of in bench.got()]
    for other in others:  # two groups of the frequent key may go first, the one that is leaving and the one that waits
        assert sum(number > other for number in order[: order.index(other)]) < 2 * bench.depth


@cocotb.test()
async def takes_as_many_as_it_has_places(dut):
    bench = Bench(dut, pause=1.0)
    await start(dut)
    taken: deque[int] = deque()
    task = bench.source.start({"number": n, "key": n % bench.keys} for n in range(2 * bench.depth))
    for _ in range(2 * bench.depth + 10):
        await RisingEdge(dut.clk)
        taken.append(bench.source.sent)
    assert taken[-1] == bench.depth and not task.done()
    bench.sink.pause = 0.0
    await bench.sink.wait(2 * bench.depth)
