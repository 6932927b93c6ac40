"""When the watchdog speaks, and what it says."""

import pytest
from amaranth.sim import Simulator

from daedal.hw.control.faults import watchdog
from daedal.hw.control.faults.watchdog import Watchdog

PATIENCE = 256
"""Cycles that it waits here."""


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(watchdog, "WATCHDOG_CYCLES", PATIENCE)


def cycles_until_it_speaks(outstanding: bool, *, progress_at: int | None = None, running: bool = True) -> list[object]:
    """The cycle (from 1) of each strobe, and its name; ``progress_at``: the cycle in which something moves."""
    dut, spoken = Watchdog(), []

    async def bench(ctx):
        ctx.set(dut.running, running)
        ctx.set(dut.outstanding, outstanding)
        for cycle in range(1, 2 * PATIENCE + 2):
            ctx.set(dut.progress, cycle == progress_at)
            await ctx.tick()
            spoken.extend((cycle, name) for name in ("hang", "silent") if ctx.get(getattr(dut, name)))
            if spoken:
                return

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return spoken


@pytest.mark.parametrize(("outstanding", "name"), [(False, "hang"), (True, "silent")])
@pytest.mark.parametrize("moves", [None, 1, 100, PATIENCE])
def test_it_speaks_after_so_many_cycles_without_progress(outstanding, name, moves):
    assert cycles_until_it_speaks(outstanding, progress_at=moves) == [((moves or 0) + PATIENCE, name)]


@pytest.mark.parametrize("outstanding", [False, True])
def test_it_does_not_watch_a_machine_at_rest(outstanding):
    assert cycles_until_it_speaks(outstanding, running=False) == []
