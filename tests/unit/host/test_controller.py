"""What the controller does after a fault while memory still owes answers."""

from dataclasses import replace

import pytest
from amaranth.sim import Simulator

from daedal.hw.config import PRESETS
from daedal.hw.host.controller import QUIET_CYCLES, SETTLE_CYCLES, Controller

CONFIG = replace(PRESETS["edge"], watchdog=256)
ANSWERS = 10


@pytest.mark.parametrize(
    ("between", "written"), [(CONFIG.watchdog // 2, True), (CONFIG.watchdog - 1, True), (CONFIG.watchdog + 2, False)]
)
def test_a_fault_waits_for_memory_as_long_as_it_answers(between: int, written: bool) -> None:
    """Many answers may be owed, each after a long time; the record is lost only when the next one does not come."""
    dut = Controller(CONFIG)
    seen = {"record_start": 0, "ended": 0}

    async def watch(ctx):
        async for _, _, *values in ctx.tick().sample(*(getattr(dut, name) for name in seen)):
            for name, value in zip(seen, values, strict=True):
                seen[name] += value

    async def bench(ctx):
        ctx.set(dut.has_record, 1)
        ctx.set(dut.ahead, 1)
        await ctx.tick()
        ctx.set(dut.ahead, 0)
        await ctx.tick()
        ctx.set(dut.fault, 1)
        await ctx.tick()
        for _ in range(ANSWERS):
            await ctx.tick().repeat(between - 1)
            ctx.set(dut.answered, 1)
            await ctx.tick()
            ctx.set(dut.answered, 0)
        assert not written or not any(seen.values())  # answers are still owed
        ctx.set(dut.quiet, 1)
        await ctx.tick().repeat(QUIET_CYCLES + SETTLE_CYCLES + 20)
        assert seen == {"record_start": int(written), "ended": int(not written)}

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(watch, background=True)
    sim.add_testbench(bench)
    sim.run()
