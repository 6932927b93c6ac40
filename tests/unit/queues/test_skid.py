# amaranth: UnusedElaboratable=no
"""What a skid promises: order, no loss, one per cycle, outputs that do not depend on inputs."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.queues.skid_buffer import SkidBuffer

COUNT = 200


def run(idle: float, pause: float) -> tuple[list[int], int]:
    """What comes out when 0, 1, … go in, with shares of cycles in which nothing is offered or taken; and the cycles."""
    skid, rng, got = SkidBuffer(16), random.Random(3), []
    cycles = 0

    async def bench(ctx):
        nonlocal cycles
        sent = 0
        while len(got) < COUNT:
            assert cycles < 20 * COUNT, "it hangs"
            ctx.set(skid.i.valid, sent < COUNT and (ctx.get(skid.i.valid) or rng.random() >= idle))
            ctx.set(skid.i.payload, sent)
            ready = ctx.get(skid.i.ready)
            ctx.set(skid.o.ready, rng.random() >= pause)
            assert ctx.get(skid.i.ready) == ready, "ready depends on ready"
            if ctx.get(skid.o.valid) and ctx.get(skid.o.ready):
                got.append(ctx.get(skid.o.payload))
            offered = ctx.get(skid.i.valid) and ready
            await ctx.tick()
            sent, cycles = sent + bool(offered), cycles + 1
        assert ctx.get(skid.empty)

    simulator = Simulator(skid)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got, cycles


@pytest.mark.parametrize("idle", [0.0, 0.5])
@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_order_and_rate(idle, pause):
    got, cycles = run(idle, pause)
    assert got == list(range(COUNT))
    if not idle and not pause:
        assert cycles <= COUNT + 1, "not one per cycle"
