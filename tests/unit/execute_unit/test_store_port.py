"""Stores of scalars that wait for reductions, and what is issued meanwhile."""

import pytest
from amaranth.sim import Simulator

from daedal.hw.execute_unit.vector.store_port import SCALARS_AHEAD, StorePort
from tests.unit.harness import ODD

LONG = 60
"""Cycles in which all that can be stored is."""


@pytest.mark.parametrize("later", [1, 2, 3])
@pytest.mark.parametrize("earlier", [1, 2, 3, 4])
def test_scalars_wait_for_rows_before_them_and_no_others(earlier: int, later: int) -> None:
    """Some wait for a reduction when a row begins to be issued, others come behind that row.

    When the reduction ends the first ones are stored, for the row's operands may wait for them; the others wait until
    the row is issued to the end.
    """
    assert earlier + later < min(SCALARS_AHEAD, ODD.scalars)
    dut, stored = StorePort(ODD), []

    async def read(ctx):
        """Registers hold their numbers."""
        async for _, _, address in ctx.tick().sample(dut.read_address):
            ctx.set(dut.read_data, address)

    async def take(ctx):
        ctx.set(dut.o.ready, 1)
        async for _, _, valid, beat in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                stored.append(beat.data % (1 << (len(dut.read_address) - 1)))

    async def send(ctx, register):
        ctx.set(dut.i.payload.register, register)
        ctx.set(dut.i.payload.scalar, 1)
        ctx.set(dut.i.valid, 1)
        await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def bench(ctx):
        ctx.set(dut.reduced, 1)
        for register in range(earlier):
            await send(ctx, register)
        await ctx.tick().repeat(4)
        ctx.set(dut.issuing, 1)
        for register in range(earlier, earlier + later):
            await send(ctx, register)
        await ctx.tick().repeat(LONG)
        assert stored == []
        ctx.set(dut.reduced, 0)
        await ctx.tick().repeat(LONG)
        assert stored == list(range(earlier)), "what the row does not come before waits for it, or the other way round"
        ctx.set(dut.issuing, 0)
        await ctx.tick()
        ctx.set(dut.issuing, 1)  # another row, which came behind all of them
        await ctx.tick().repeat(LONG)
        assert stored == list(range(earlier + later))
        assert ctx.get(dut.idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for background in (read, take):
        simulator.add_testbench(background, background=True)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(stored) == earlier + later
