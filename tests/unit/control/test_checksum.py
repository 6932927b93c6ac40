"""The checksum in hardware is that of the encodings, word by word."""

import random

from amaranth.sim import Simulator

from daedal.hw.control.checksum_unit import Checksum
from daedal.hw.isa.checksum import checksum, folded, next_sum


def test_sums_are_those_of_the_encodings():
    dut, rng = Checksum(), random.Random(3)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    ended = []

    async def bench(ctx):
        for _ in range(30):
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            assert ctx.get(dut.fits)
            words = [rng.getrandbits(64) for _ in range(rng.randrange(1, 12))]
            before = checksum([*words, 0])
            words.append(before)  # the lowest quarter is added as it is
            assert folded(before) == before
            for number, word in enumerate(words):
                ctx.set(dut.word, rng.getrandbits(64))
                await ctx.tick()  # not added
                ctx.set(dut.word, word)
                ctx.set(dut.add, 1)
                await ctx.tick()
                ctx.set(dut.add, 0)
                assert ctx.get(dut.fits) == (checksum(words[: number + 1]) == 0)
            assert ctx.get(dut.fits)
            for bit in range(64):  # one at a time, taken back by adding what is left of it
                ctx.set(dut.add, 1)
                ctx.set(dut.word, 1 << bit)
                await ctx.tick()
                assert not ctx.get(dut.fits)
                ctx.set(dut.word, next_sum(folded(1 << bit), 0))
                await ctx.tick()
                assert ctx.get(dut.fits)
                ctx.set(dut.add, 0)
            ctx.set(dut.add, 1)  # a program that does not end well leaves nothing behind
            ctx.set(dut.word, 1)
            await ctx.tick()
            ctx.set(dut.add, 0)
            assert not ctx.get(dut.fits)
        ended.append(True)

    simulator.add_testbench(bench)
    simulator.run()
    assert ended
