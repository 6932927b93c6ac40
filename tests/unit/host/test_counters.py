"""Counters: exact totals however fast things happen; a clear begins anew."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.host.counters import CounterBank


@pytest.mark.parametrize("steps", [[1], [1, 1, 1], [1, 16, 1, 64, 1], [1] * 19])
def test_totals_are_exact(steps):
    dut, rng, checked = CounterBank(steps), random.Random(3), []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for length in (1, 7, 400):
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            totals = [0] * len(steps)
            for _ in range(length):
                enabled = rng.random() < 0.9
                ctx.set(dut.enable, enabled)
                for k, step in enumerate(steps):
                    value = step if rng.random() < 0.5 else rng.randrange(step + 1)
                    ctx.set(getattr(dut, f"increment{k}"), value)
                    totals[k] += value if enabled else 0
                await ctx.tick()
            ctx.set(dut.enable, 0)
            await ctx.tick().repeat(70)
            for k, total in enumerate(totals):
                ctx.set(dut.address, k)
                await ctx.tick()
                assert ctx.get(dut.total) == total
            checked.append(length)

    simulator.add_testbench(bench)
    simulator.run()
    assert checked == [1, 7, 400]
