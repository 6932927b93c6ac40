"""Counters: exact totals however fast things happen; a clear begins anew."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.control.records.counters import CounterBank


@pytest.mark.parametrize("side", range(2))
@pytest.mark.parametrize("steps", [[1], [1, 1, 1], [1, 16, 1, 64, 1], [1] * 19])
def test_totals_are_exact(steps, side):
    """Those of one side; the other one counts for ever, at the most."""
    dut, rng, checked = CounterBank(steps), random.Random(3), []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for length in (1, 7, 400):
            ctx.set(dut.clear, 1 << side)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            totals = [0] * len(steps)
            for _ in range(length):
                enabled = rng.random() < 0.9
                ctx.set(dut.enable, enabled << side | 2 - side)
                for k, step in enumerate(steps):
                    mine = rng.random() < 0.9
                    ctx.set(getattr(dut, f"side{k}"), side if mine else 1 - side)
                    value = step if rng.random() < 0.5 else rng.randrange(step + 1)
                    ctx.set(getattr(dut, f"increment{k}"), value)
                    totals[k] += value if enabled and mine else 0
                await ctx.tick()
            ctx.set(dut.enable, 2 - side)
            await ctx.tick().repeat(max(4 * len(steps), 8))
            for k, total in enumerate(totals):
                ctx.set(dut.address, k)
                ctx.set(dut.asked_side, side)
                ctx.set(dut.ask, 1)
                await ctx.tick()
                assert ctx.get(dut.total) == total
                ctx.set(dut.ask, 0)
                await ctx.tick().repeat(2)
            checked.append(length)

    simulator.add_testbench(bench)
    simulator.run()
    assert checked == [1, 7, 400]
