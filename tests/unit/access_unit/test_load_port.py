"""The loads' way to memory, when memory takes nothing for a long time."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.access_unit.loads.load_port import DEPTH, LoadPort
from daedal.hw.config.core import PRESETS

UNITS, EACH = 3, 40


@pytest.mark.parametrize("busy", [0.0, 0.5, 0.99])
def test_no_request_is_lost(busy: float) -> None:
    """Each unit's requests come out in its order, and none twice."""
    dut, rng = LoadPort(PRESETS["edge"], UNITS), random.Random(1)
    got: list[int] = []

    def offering(number):
        async def offer(ctx):
            unit = dut.units[number]
            for k in range(EACH):
                ctx.set(unit.payload.line, EACH * number + k)
                ctx.set(unit.payload.beats, 1)
                ctx.set(unit.valid, 1)
                await ctx.tick().until(unit.ready)
            ctx.set(unit.valid, 0)

        return offer

    async def take(ctx):
        await ctx.tick().repeat(4 * DEPTH)  # nothing is taken until everything is full
        while len(got) < UNITS * EACH:
            ready = int(rng.random() >= busy)
            ctx.set(dut.requests.ready, ready)
            assert ctx.get(dut.pending) == 0b01, "requests are owed, of side 0"
            _, _, valid, address = await ctx.tick().sample(dut.requests.valid, dut.requests.payload.address)
            if ready and valid:
                got.append(address // PRESETS["edge"].bus_bytes)
        await ctx.tick()
        assert ctx.get(dut.pending) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for number in range(UNITS):
        simulator.add_testbench(offering(number))
    simulator.add_testbench(take)
    simulator.run_until(1e-6 * 40_000)
    for number in range(UNITS):
        own = range(EACH * number, EACH * (number + 1))
        assert [line for line in got if line in own] == list(own)
