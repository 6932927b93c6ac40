"""Whose fault is whose: two launches are at work, and each unit says which one it means."""

from itertools import product
from random import Random

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS, Config
from daedal.hw.control.faults import watchdog
from daedal.hw.control.faults.faults import Faults
from daedal.hw.isa.launch import Cause, Queue

CONFIG = PRESETS["edge"]
UNITS = ("execute", "access", "fabric", "loader")
"""In the order in which one is believed before the next if both have a fault in one cycle."""

CAUSES = {"execute": Cause.FRAMING, "access": Cause.INDEX, "fabric": Cause.MEMORY_ERROR, "loader": Cause.PROGRAM}


class Bench:
    """The component, and how units report to it."""

    def __init__(self, config: Config = CONFIG) -> None:
        self.dut = Faults(config)

    def report(self, ctx, unit: str, side: int) -> None:
        """A unit has a fault from now on."""
        dut = self.dut
        if unit in ("execute", "access"):
            port = getattr(dut, f"{unit}_fault")
            ctx.set(port.valid, 1)
            ctx.set(port.fault.cause, CAUSES[unit])
        where = {"execute": dut.launch.execute_side, "access": dut.access.side, "fabric": dut.fabric.error_side,
                 "loader": dut.loader.side}[unit]  # fmt: skip
        ctx.set(where, side)
        if unit == "fabric":
            ctx.set(dut.fabric.error, 1)
        if unit == "loader":
            ctx.set(dut.loader.illegal, 1)

    async def next_launch(self, ctx) -> None:
        """That of side 1 becomes the present one."""
        launch = self.dut.launch
        ctx.set(launch.side, 1)
        ctx.set(self.dut.ahead, 0)
        ctx.set(launch.taken, 1)
        await ctx.tick()
        ctx.set(launch.taken, 0)
        await ctx.tick().repeat(4)

    def run(self, bench) -> None:
        async def whole(ctx):
            dut = self.dut
            ctx.set(dut.launch.running, 1)
            ctx.set(dut.ahead, 1)
            for side in (dut.access.side, dut.loader.side, dut.fabric.error_side):
                ctx.set(side, 1)
            await ctx.tick().repeat(3)
            await bench(ctx)
            done.append(True)

        done: list[bool] = []
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(whole)
        simulator.run()
        assert done


AHEAD = ("access", "fabric", "loader")
"""Those that may be at the next launch while the present one is not over."""


@pytest.mark.parametrize(("first", "second"), [(a, b) for a, b in product(AHEAD, UNITS) if a != b])
@pytest.mark.parametrize("between", [0, 1, 5])
def test_the_first_fault_of_the_next_launch_is_its_fault(first, second, between):
    """Another unit has one as well, later, or in the same cycle: then the unit further down is believed."""
    units = Bench()
    together = between == 0 and second in AHEAD
    believed = min(first, second, key=UNITS.index) if together else first

    async def bench(ctx):
        units.report(ctx, first, 1)
        if together:
            units.report(ctx, second, 1)
        await ctx.tick().repeat(max(between, 1))
        if second in AHEAD and not together:
            units.report(ctx, second, 1)
        await ctx.tick().repeat(5)
        assert not ctx.get(units.dut.caught.valid), "the present launch has no fault"
        if second == "execute":
            units.report(ctx, second, 1)
        await units.next_launch(ctx)
        assert ctx.get(units.dut.caught.valid)
        assert ctx.get(units.dut.caught.cause) == CAUSES[believed]

    units.run(bench)


@pytest.mark.parametrize(("early", "late"), [(a, b) for a, b in product(AHEAD, UNITS[:3]) if a != b])
def test_a_fault_of_the_present_launch_counts_after_one_of_the_next(early, late):
    """All but the loader may still be at the present one."""
    units = Bench()

    async def bench(ctx):
        units.report(ctx, early, 1)
        await ctx.tick().repeat(5)
        assert not ctx.get(units.dut.caught.valid)
        units.report(ctx, late, 0)
        await ctx.tick().repeat(5)
        assert ctx.get(units.dut.caught.valid), "overlooked"
        assert ctx.get(units.dut.caught.cause) == CAUSES[late]

    units.run(bench)


WATCHDOG = 256
"""Cycles that the watchdog waits here."""


@pytest.mark.parametrize("outstanding", [0, 1])
def test_a_launch_that_stands_still_has_a_fault(monkeypatch, outstanding):
    """HANG names the queue that is to blame; MEMORY_SILENT does not, memory is. Progress puts both off."""
    monkeypatch.setattr(watchdog, "WATCHDOG_CYCLES", WATCHDOG)
    units = Bench(CONFIG)

    async def bench(ctx):
        dut = units.dut
        ctx.set(dut.activity.outstanding, outstanding)
        ctx.set(dut.activity.blocked, Queue.SCALAR)
        await ctx.tick().repeat(WATCHDOG - 10)
        ctx.set(dut.activity.progress, 1)
        await ctx.tick()
        ctx.set(dut.activity.progress, 0)
        await ctx.tick().repeat(WATCHDOG)
        assert not ctx.get(dut.caught.valid), "before its time"
        await ctx.tick().repeat(3)
        assert ctx.get(dut.caught.valid)
        assert ctx.get(dut.caught.cause) == (Cause.MEMORY_SILENT if outstanding else Cause.HANG)
        assert ctx.get(dut.kept.queue) == (Queue.NONE if outstanding else Queue.SCALAR)

    units.run(bench)


def test_a_record_that_the_store_unit_refuses_is_lost():
    """The launch runs no more, so the fault is only told while the record is written."""
    units = Bench()

    async def bench(ctx):
        dut = units.dut
        ctx.set(dut.launch.running, 0)
        ctx.set(dut.store_fault.fault.cause, Cause.MEMORY_ERROR)
        ctx.set(dut.store_fault.valid, 1)
        await ctx.tick().repeat(4)
        assert not ctx.get(dut.caught.valid) and not ctx.get(dut.caught.record_lost)
        ctx.set(dut.launch.record_phase, 1)
        assert ctx.get(dut.caught.record_lost)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.caught.cause) == Cause.MEMORY_ERROR

    units.run(bench)


def test_a_cancelled_launch_has_no_fault_but_the_machine_has():
    """FAULT goes on to say it; a reset takes it back."""
    units = Bench()

    async def bench(ctx):
        dut = units.dut
        units.report(ctx, "access", 0)
        await ctx.tick().repeat(3)
        ctx.set(dut.access_fault.valid, 0)
        ctx.set(dut.launch.running, 0)
        ctx.set(dut.launch.cancel, 1)
        ctx.set(dut.launch.taken, 1)
        await ctx.tick()
        ctx.set(dut.launch.taken, 0)
        await ctx.tick().repeat(3)
        assert (ctx.get(dut.caught.valid), ctx.get(dut.caught.cause)) == (1, Cause.INDEX)
        ctx.set(dut.launch.cancel, 0)
        ctx.set(dut.launch.clear_fault, 1)
        await ctx.tick()
        ctx.set(dut.launch.clear_fault, 0)
        assert (ctx.get(dut.caught.valid), ctx.get(dut.caught.cause)) == (0, Cause.NONE)

    units.run(bench)


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_reports(seed):
    """Units of the present launch report at random times, some not at all: the first is kept, or the furthest down."""
    units, rng = Bench(), Random(seed)
    when = {unit: rng.randrange(30) for unit in UNITS if rng.random() < 0.7}
    if seed % 2:
        when = {unit: time - time % 10 for unit, time in when.items()}  # several in one cycle

    async def bench(ctx):
        dut = units.dut
        ctx.set(dut.ahead, 0)
        ctx.set(dut.loader.side, 0)
        for now in range(40):
            for unit, time in when.items():
                if time == now:
                    units.report(ctx, unit, 0)
            await ctx.tick()
        first = min(when, key=lambda unit: (when[unit], UNITS.index(unit)), default=None)
        assert ctx.get(dut.caught.cause) == (Cause.NONE if first is None else CAUSES[first])

    units.run(bench)
