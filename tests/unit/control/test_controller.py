"""When the controller believes that a launch is over, or memory quiet; and what a fault and a reset wait for."""

import pytest
from amaranth import Signal
from amaranth.sim import Simulator

from daedal.hw.control import launch_controller
from daedal.hw.control.launch_controller import QUIET_CYCLES, SETTLE_CYCLES, LaunchController

PATIENCE = 256
"""Cycles that it waits for an answer of memory here."""

ANSWERS = 10

ON_THE_WAY = 8
"""Cycles in which something may be on its way between two units, each of which says that it is idle."""

STROBES = ("flip", "ended", "record_start", "reset_done", "soft_reset", "take")


def port(dut: LaunchController, name: str) -> Signal:
    """The port of this name, whatever interface it is in."""
    for interface in (dut.launch, dut.progress, dut):
        if name in interface.signature.members:
            found = getattr(interface, name)
            return found.valid if name == "fault" else found
    raise AssertionError(f"there is no port {name}")


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(launch_controller, "WATCHDOG_CYCLES", PATIENCE)


def run(bench) -> LaunchController:
    """Run ``bench(ctx, dut, seen)`` on a controller; ``seen`` counts the cycles of each output of STROBES."""
    dut, seen, done = LaunchController(), dict.fromkeys(STROBES, 0), []

    async def watch(ctx):
        async for _, _, *values in ctx.tick().sample(*(port(dut, name) for name in seen)):
            for name, value in zip(seen, values, strict=True):
                seen[name] += value

    async def whole(ctx):
        ctx.set(dut.record.known, 1)
        await bench(ctx, dut, seen)
        done.append(True)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(watch, background=True)
    sim.add_testbench(whole)
    sim.run()
    assert done
    return dut


async def begin(ctx, dut, side: int = 0) -> None:
    """A launch of this side becomes the present one."""
    ctx.set(dut.progress.loader_side, side)
    ctx.set(dut.progress.ahead, 1)
    await ctx.tick()
    ctx.set(dut.progress.ahead, 0)
    await ctx.tick()


async def glitches(ctx, dut, name: str, seen, strobe: str) -> None:
    """A unit says time and again that it is idle, each time for one cycle less than something can be on its way.

    In between memory gives an answer.
    """
    signal = port(dut, name)
    for _ in range(5):
        ctx.set(signal, 1)
        await ctx.tick().repeat(ON_THE_WAY - 1)
        ctx.set(signal, 0)
        await ctx.tick().repeat(20)
        ctx.set(dut.progress.answered, 1)
        await ctx.tick()
        ctx.set(dut.progress.answered, 0)
    assert seen[strobe] == 0, f"{strobe} while something was on its way"
    ctx.set(signal, 1)


def test_a_launch_is_over_when_everything_has_been_idle_for_long_enough() -> None:
    """In each of its phases, one after the other: it runs, drains, and its record is written."""

    async def bench(ctx, dut, seen):
        await begin(ctx, dut)
        await glitches(ctx, dut, "executed", seen, "flip")
        await ctx.tick().repeat(ON_THE_WAY + 3)
        assert seen["flip"] == 1 and ctx.get(dut.launch.draining) and ctx.get(dut.launch.execute_side) == 1
        await ctx.tick().repeat(SETTLE_CYCLES)
        await glitches(ctx, dut, "stored", seen, "record_start")
        await ctx.tick().repeat(SETTLE_CYCLES)
        assert seen["record_start"] == 1 and ctx.get(dut.launch.record_phase)
        ctx.set(dut.progress.stored, 0)
        ctx.set(dut.record.done, 1)
        await ctx.tick()
        ctx.set(dut.record.done, 0)
        await glitches(ctx, dut, "stored", seen, "ended")
        await ctx.tick().repeat(ON_THE_WAY + 3)
        assert seen["ended"] == 1 and ctx.get(dut.launch.idle)

    run(bench)


@pytest.mark.parametrize("cause", ["fault", "reset_request"])
@pytest.mark.parametrize("cycles", range(ON_THE_WAY - 2, ON_THE_WAY + 4))
def test_the_next_launch_does_not_go_on_with_a_fault(cause: str, cycles: int) -> None:
    """Or a reset: whichever comes first, so many cycles after all has been executed."""

    async def bench(ctx, dut, seen):
        await begin(ctx, dut)
        ctx.set(dut.progress.executed, 1)
        await ctx.tick().repeat(cycles)
        before = seen["flip"]
        ctx.set(port(dut, cause), 1)
        await ctx.tick().repeat(ON_THE_WAY)
        assert seen["flip"] == before
        assert ctx.get(dut.launch.halt)

    run(bench)


@pytest.mark.parametrize("cause", ["fault", "reset_request"])
def test_units_are_reset_when_memory_has_been_quiet_for_long_enough(cause: str) -> None:
    async def bench(ctx, dut, seen):
        await begin(ctx, dut)
        ctx.set(port(dut, cause), 1)
        await ctx.tick().repeat(ON_THE_WAY + 3)
        assert ctx.get(dut.launch.halt)
        ctx.set(dut.progress.answered, 1)
        await ctx.tick()
        ctx.set(dut.progress.answered, 0)
        await glitches(ctx, dut, "quiet", seen, "soft_reset")
        await ctx.tick().repeat(ON_THE_WAY + 3)
        assert seen["soft_reset"] > 0

    run(bench)


@pytest.mark.parametrize("phase", ["idle", "run", "drain", "record", "after a fault", "fault"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_reset_ends_whatever_there_is_and_can_be_had_again(phase: str, side: int) -> None:
    """Once each time that it is asked for; the next launch, of either side, begins as the first one does."""

    async def reset(ctx, dut, seen):
        before = seen["reset_done"]
        ctx.set(dut.reset_request, 1)
        for _ in range(2 * SETTLE_CYCLES):
            await ctx.tick()
            if seen["reset_done"] > before:
                break
        ctx.set(dut.reset_request, 0)
        await ctx.tick().repeat(20)
        assert seen["reset_done"] == before + 1
        assert ctx.get(dut.launch.idle) and not ctx.get(dut.faulted)
        assert (ctx.get(dut.launch.execute_side), ctx.get(dut.launch.execute_other)) == (0, 1)

    async def bench(ctx, dut, seen):
        ctx.set(dut.progress.quiet, 1)
        for turn in range(3):
            if phase != "idle":
                await begin(ctx, dut, side)
            if phase in ("drain", "record"):
                ctx.set(dut.progress.executed, 1)
                await ctx.tick().repeat(ON_THE_WAY + 3)
                assert ctx.get(dut.launch.draining) and ctx.get(dut.launch.execute_side) == 1 - side
                ctx.set(dut.progress.executed, 0)
            if phase == "record":
                ctx.set(dut.progress.stored, 1)
                await ctx.tick().repeat(SETTLE_CYCLES + ON_THE_WAY)
                assert ctx.get(dut.launch.record_phase)
                ctx.set(dut.progress.stored, 0)
            if "fault" in phase:
                ctx.set(dut.fault.valid, 1)
                await ctx.tick().repeat(2)
                ctx.set(dut.fault.valid, 0)
                assert ctx.get(dut.faulted)
            if phase == "after a fault":
                for signal in (dut.progress.stored, dut.record.done):
                    ctx.set(signal, 1)
                await ctx.tick().repeat(2 * SETTLE_CYCLES + ON_THE_WAY)
                for signal in (dut.progress.stored, dut.record.done):
                    ctx.set(signal, 0)
                assert seen["ended"] == turn + 1
            await reset(ctx, dut, seen)
        assert seen["reset_done"] == 3

    run(bench)


@pytest.mark.parametrize(("between", "written"), [(PATIENCE // 2, True), (PATIENCE - 1, True), (PATIENCE + 2, False)])
def test_a_fault_waits_for_memory_as_long_as_it_answers(between: int, written: bool) -> None:
    """Many answers may be owed, each after a long time; the record is lost only when the next one does not come."""
    dut = LaunchController()
    seen = {"record_start": 0, "ended": 0}

    async def watch(ctx):
        async for _, _, *values in ctx.tick().sample(*(port(dut, name) for name in seen)):
            for name, value in zip(seen, values, strict=True):
                seen[name] += value

    async def bench(ctx):
        ctx.set(dut.record.known, 1)
        ctx.set(dut.progress.ahead, 1)
        await ctx.tick()
        ctx.set(dut.progress.ahead, 0)
        await ctx.tick()
        ctx.set(dut.fault.valid, 1)
        await ctx.tick()
        for _ in range(ANSWERS):
            await ctx.tick().repeat(between - 1)
            ctx.set(dut.progress.answered, 1)
            await ctx.tick()
            ctx.set(dut.progress.answered, 0)
        assert not written or not any(seen.values())  # answers are still owed
        ctx.set(dut.progress.quiet, 1)
        await ctx.tick().repeat(QUIET_CYCLES + SETTLE_CYCLES + 20)
        assert seen == {"record_start": int(written), "ended": int(not written)}

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(watch, background=True)
    sim.add_testbench(bench)
    sim.run()
