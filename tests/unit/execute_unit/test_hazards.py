"""Which rows must not add yet to what a row shortly before them wrote."""

import pytest
from amaranth.sim import Simulator

from daedal.hw.execute_unit.frontend.scoreboard import Scoreboard
from daedal.hw.execute_unit.latencies import latencies
from tests.unit.harness import ODD

TIMES = latencies(ODD)
REGISTER = 2


@pytest.mark.parametrize(
    ("context", "long", "scalar", "register", "waits"),
    [
        (1, 0, 0, REGISTER, True),
        (0, 0, 0, REGISTER, False),
        (0, 1, 0, REGISTER, True),
        (0, 0, 1, REGISTER, False),
        (1, 0, 0, REGISTER - 1, False),
        (0, 1, 0, REGISTER - 1, False),
    ],
    ids=["its own context", "another context", "long", "a scalar register", "another register", "long, another one"],
)
def test_what_adds_to_a_result_of_context_1(context: int, long: int, scalar: int, register: int, waits: bool) -> None:
    """A long row has beats of all contexts. It waits until the result can be added to, and no longer."""
    assert ODD.context_count > 1
    dut, found = Scoreboard(ODD), []

    async def bench(ctx):
        for name, value in (("c", register), ("c_scalar", scalar), ("context", context), ("long", long),
                            ("ends_to", REGISTER), ("destination", REGISTER), ("issued_context", 1)):  # fmt: skip
            ctx.set(getattr(dut, name), value)
        for cycle in range(TIMES.loop + 3):
            ends = cycle == 0
            for name in ("ends_near", "ends_waits", "issued"):
                ctx.set(getattr(dut, name), ends)
            ctx.set(dut.wait, (TIMES.read_after_write - 1) * ends)
            found.append(ctx.get(dut.c_waits))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [int(waits and cycle < TIMES.loop - 1) for cycle in range(TIMES.loop + 3)]
