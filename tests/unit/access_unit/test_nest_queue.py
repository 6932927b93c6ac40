"""The words of nests to come: in order, behind the nest before, never more than one nest ahead of the last unit."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.access_unit.nest_queue import AHEAD, DEPTH, MARGIN, NestQueue


class Bench:
    """Sends nests of random words; the unit and the last unit take random times."""

    def __init__(self, seed: int, *, hurry: bool, registered: bool) -> None:
        self.dut, self.random, self.hurry = NestQueue(registered=registered), random.Random(seed), hurry
        self.settled = 1 if registered else 2
        self.sent: list = []
        self.got: list = []
        self.over = 0
        self.finished = False

    def script(self) -> list:
        """What comes: words, clears, and starts with number and side."""
        items: list = []
        for nest in range(25):
            side = nest // 3 % 2
            items += [("word", self.random.getrandbits(40), side) for _ in range(self.random.choice([0, 3, 40, 90]))]
            items += [("run", nest, side), ("clear", 0, side)]
        return items

    async def send(self, ctx):
        dut, bus = self.dut, self.dut.config_bus
        for kind, value, side in self.script():
            while not ctx.get(dut.room) or (not self.hurry and self.random.random() < 0.2):
                await ctx.tick()
            ctx.set(bus.side, side)
            ctx.set(bus.word.value, value)
            ctx.set(bus.valid, kind == "word")
            ctx.set(dut.mine, 1)
            ctx.set(bus.clear, kind == "clear")
            ctx.set(dut.start, kind == "run")
            ctx.set(dut.nest, value if kind == "run" else 0)
            await ctx.tick()
            self.sent.append((kind, value, side))
            ctx.set(bus.valid, 0)
            ctx.set(bus.clear, 0)
            ctx.set(dut.start, 0)
            if self.random.random() < 0.1:  # a word for another unit
                ctx.set(bus.valid, 1)
                ctx.set(dut.mine, 0)
                await ctx.tick()
                ctx.set(bus.valid, 0)

    async def unit(self, ctx):
        """Runs nests; sees that no word comes meanwhile, and that words have settled when one starts."""
        dut, running, quiet, begun = self.dut, 0, 0, 0
        late: list[int] = []
        for cycle in range(8000):
            ctx.set(dut.done, running == 1)
            late = [at for at in late if at > cycle or self.finish(ctx)]
            _, _, valid, clear, value, go, busy, side, number = await ctx.tick().sample(
                dut.held.valid, dut.held.clear, dut.held.word.value, dut.go, dut.busy, dut.side, dut.number
            )
            assert not ((valid or clear) and running)
            quiet = 0 if valid or clear else quiet + 1
            if valid or clear:
                self.got.append(("word", value, ctx.get(dut.held.side)) if valid else ("clear", 0, ctx.get(dut.side)))
            if running == 1:
                late.append(cycle + self.random.choice([1, 30]))
            running = max(running - 1, 0)
            if go:
                assert busy and quiet >= self.settled, "words must have settled"
                self.got.append(("run", number, side))
                begun += 1
                assert begun - self.over <= AHEAD, "no more than one nest ahead"
                running = 2 if self.hurry else self.random.choice([2, 9, 40])
            if number == 24 and self.over == 25:
                self.finished = True
                return

    def finish(self, ctx) -> bool:
        """The last unit is through with one more nest."""
        self.over += 1
        ctx.set(self.dut.over, self.over % 4)
        return False


@pytest.mark.parametrize("hurry", [False, True])
@pytest.mark.parametrize(("seed", "registered"), [(0, False), (1, True), (2, False), (3, True)])
def test_words_wait_for_their_nest(seed, hurry, registered):
    bench = Bench(seed, hurry=hurry, registered=registered)
    simulator = Simulator(bench.dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench.send, background=True)
    simulator.add_testbench(bench.unit)
    simulator.run()
    assert bench.finished
    runs = [item for item in bench.got if item[0] == "run"]
    assert [item[:2] for item in bench.got][: len(bench.sent)] == [item[:2] for item in bench.sent][: len(bench.got)]
    assert runs == [item for item in bench.sent if item[0] == "run"]


def test_room_leaves_a_margin():
    dut, levels = NestQueue(), []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        ctx.set(dut.start, 1)  # the first one starts; the others wait behind it
        await ctx.tick()
        for _ in range(2 * DEPTH):
            ctx.set(dut.start, ctx.get(dut.room))
            levels.append(ctx.get(dut.room))
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    assert DEPTH - MARGIN <= sum(levels) <= DEPTH
