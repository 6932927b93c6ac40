"""The first fault of a launch, or else the first value that it replaced, is in its record."""

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.faults.faults import Faults
from daedal.hw.isa.launch import Cause, RecordWord

CONFIG = PRESETS["edge"]
TAKE = 10
WORD = 100
"""The words that a fault's source has are this and their numbers."""


def told(ctx, dut: Faults, number: int = RecordWord.VALUE.value) -> int:
    """This word of the present launch's record."""
    ctx.set(dut.kept.asked, number)
    value: int = ctx.get(dut.kept.told)
    return value


@pytest.mark.parametrize("cycle", range(TAKE - 3, TAKE + 4))
@pytest.mark.parametrize("second", [None, 1, 5])
def test_a_warning_in_any_cycle(cycle: int, second: int | None) -> None:
    """A warning ``cycle`` cycles after the launch begins, which becomes the present one in cycle ``TAKE``; perhaps
    a second one later, which is not told.
    """
    dut = Faults(CONFIG)

    async def bench(ctx):
        ctx.set(dut.access.side, 1)  # the next launch's; the present one's is 0
        for now in range(TAKE + 12):
            ctx.set(dut.loader.begin, now == 0)
            ctx.set(dut.access.warning, now == cycle or (second is not None and now == cycle + second))
            ctx.set(dut.access.warned_value, 77 if now == cycle else 99)
            ctx.set(dut.launch.taken, now == TAKE + 1)
            await ctx.tick()
            ctx.set(dut.loader.side, 1)
            ctx.set(dut.launch.side, now >= TAKE)
        assert told(ctx, dut) == 77

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("side", [0, 1])
def test_a_reset_forgets_what_came_early(side: int) -> None:
    """A launch warns on side 1 before it is the present one; after a reset, the next one begins on ``side``."""
    dut = Faults(CONFIG)

    async def strobe(ctx, signal):
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    async def bench(ctx):
        ctx.set(dut.access.side, 1)
        ctx.set(dut.access.warned_value, 77)
        await strobe(ctx, dut.access.warning)
        await strobe(ctx, dut.launch.taken)
        ctx.set(dut.launch.side, 1)
        await ctx.tick()
        assert told(ctx, dut) == 77
        await strobe(ctx, dut.reset)
        ctx.set(dut.loader.side, 1 - side)
        await strobe(ctx, dut.loader.begin)
        ctx.set(dut.launch.side, side)
        await strobe(ctx, dut.launch.taken)
        assert told(ctx, dut) == 0

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("gap", [1, 2, 5])
def test_the_first_fault_is_kept(gap: int) -> None:
    """With the nest that ran when it was found; neither a fault ``gap`` cycles later, nor the next nest, nor a warning
    takes its place, and the next launch begins without it.
    """
    dut = Faults(CONFIG)

    def kept(ctx) -> tuple[int, ...]:
        return tuple(map(ctx.get, (dut.caught.valid, dut.kept.cause, dut.kept.level, dut.kept.nest)))

    async def bench(ctx):
        fault = dut.access_fault.fault
        last = RecordWord.REGISTER0.value + CONFIG.registers - 1
        ctx.set(dut.launch.running, 1)
        ctx.set(fault.cause, Cause.INDEX)
        ctx.set(fault.value, WORD + RecordWord.VALUE.value)
        ctx.set(fault.address, WORD + RecordWord.ADDRESS.value)
        for k in range(CONFIG.registers):
            ctx.set(fault.registers[k], WORD + RecordWord.REGISTER0.value + k)
        for now in range(gap + 3):
            ctx.set(dut.access.begins, now in (0, 1, 2))
            ctx.set(dut.access.number, 7 + now)
            ctx.set(dut.access_fault.valid, now >= 1)
            ctx.set(fault.level, now)
            ctx.set(dut.store_fault.valid, now >= 1 + gap)
            ctx.set(dut.access.warning, now == 2)
            ctx.set(dut.access.warned_value, 77)
            await ctx.tick()
        await ctx.tick().repeat(last)
        assert kept(ctx) == (1, Cause.INDEX, 1, 7)
        for number in range(RecordWord.VALUE.value, last + 1):
            assert told(ctx, dut, number) == (0 if number == RecordWord.RESERVED.value else WORD + number)
        ctx.set(dut.launch.running, 0)
        ctx.set(dut.launch.taken, 1)
        await ctx.tick()
        ctx.set(dut.launch.side, 1)
        assert kept(ctx) == (0, Cause.NONE, 0, 0)
        assert not any(told(ctx, dut, number) for number in range(RecordWord.ADDRESS.value, last + 1))
        assert told(ctx, dut) == 0, "neither the fault's value, nor a warning that came after it"

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
