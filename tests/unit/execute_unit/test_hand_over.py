"""Which rows wait for a store that came before them."""

import pytest
from amaranth.sim import Simulator

from daedal.hw.execute_unit.frontend.dispatch_queue import DispatchQueue
from tests.unit.harness import ODD

REGISTER = 2


@pytest.mark.parametrize("state", ["pending", "reading"])
@pytest.mark.parametrize(
    ("reduces", "register", "waits"), [(1, REGISTER, True), (1, REGISTER - 1, False), (0, REGISTER, False)]
)
def test_partial_results_wait_for_a_store_of_their_register(
    state: str, reduces: int, register: int, waits: bool
) -> None:
    """Those of any context may be in a row that waits to be stored or is read: a reduction of another register may
    come, and a row of its own, behind whose beats the store is read.
    """
    dut, found = DispatchQueue(ODD), []

    async def bench(ctx):
        ctx.set(getattr(dut, state), 1)
        ctx.set(dut.held_register if state == "pending" else dut.read_register, REGISTER)
        ctx.set(dut.i.payload.issue.destination, register)
        ctx.set(dut.i.payload.issue.reduces, reduces)
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        for cycle in range(6):
            found.append(ctx.get(dut.issue.valid))
            ctx.set(getattr(dut, state), cycle < 3)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [not waits] * 4 + [True] * 2
