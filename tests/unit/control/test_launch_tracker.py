"""LaunchTracker: which launch the loader is at, and when nothing of the present one is left."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.launch_tracker import LaunchTracker

CONFIG = PRESETS["edge"]


async def strobe(ctx, *signals: Any) -> None:
    """1 for a cycle."""
    for signal in signals:
        ctx.set(signal, 1)
    await ctx.tick()
    for signal in signals:
        ctx.set(signal, 0)


async def begin(ctx, dut: LaunchTracker, side: int) -> None:
    """The loader begins a launch of this side."""
    ctx.set(dut.loader.side, 1 - side)
    await strobe(ctx, dut.loader.begin)
    ctx.set(dut.loader.side, side)


async def take(ctx, dut: LaunchTracker, side: int) -> None:
    """It becomes the present one."""
    await strobe(ctx, dut.launch.take)
    ctx.set(dut.launch.side, side)


def run(bench: Callable[[Any, LaunchTracker], Any]) -> None:
    """Run a bench on a core in which nothing is left of any launch."""
    dut, done = LaunchTracker(CONFIG), []

    async def whole(ctx):
        ctx.set(dut.execute_idle, 1)
        ctx.set(dut.fabric.idle, 3)
        await bench(ctx, dut)
        done.append(True)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(whole)
    simulator.run()
    assert done


@pytest.mark.parametrize("side", range(2))
def test_ahead_from_begin_to_take(side: int) -> None:
    """Not for a launch that is cancelled, and not over a reset."""

    async def bench(ctx, dut):
        ahead = dut.progress.ahead
        await begin(ctx, dut, side)
        assert ctx.get(ahead) and ctx.get(dut.progress.begin) and ctx.get(dut.progress.loader_side) == side
        await ctx.tick()
        assert ctx.get(ahead) and not ctx.get(dut.progress.begin)
        await take(ctx, dut, side)
        assert not ctx.get(ahead)
        await begin(ctx, dut, 1 - side)
        await strobe(ctx, dut.reset)
        assert not ctx.get(ahead)
        ctx.set(dut.launch.cancel, 1)
        await begin(ctx, dut, side)
        assert not ctx.get(ahead)

    run(bench)


LEFT = {
    "open": 1, "pending": 1, "left": 1, "asking": 1, "taking": 1, "execute_idle": 0, "fabric.idle": 0,
}  # fmt: skip
"""Input -> what it says while something of both launches is left."""


@pytest.mark.parametrize("side", range(2))
@pytest.mark.parametrize("name", LEFT)
def test_executed_when_nothing_is_left(side: int, name: str) -> None:
    """Of the present launch: what is left of the next one does not matter, where the two can be told apart."""

    async def bench(ctx, dut):
        signal = dut.fabric.idle if name == "fabric.idle" else getattr(dut, name)
        both = (1 << len(signal)) - 1
        left, none = (both, 0) if LEFT[name] else (0, both)
        await begin(ctx, dut, side)
        await take(ctx, dut, side)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.progress.executed), "the program is not over"
        ctx.set(signal, left)
        ctx.set(dut.asking_side, side)
        await strobe(ctx, dut.loader.done)
        assert not ctx.get(dut.progress.program_done)
        await ctx.tick().repeat(4)
        assert not ctx.get(dut.progress.executed)
        if len(signal) == 2:
            ctx.set(signal, left ^ 1 << side)
        elif name == "asking":
            ctx.set(dut.asking_side, 1 - side)
        else:
            ctx.set(signal, none)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.progress.executed)
        assert ctx.get(dut.all_sent)
        await begin(ctx, dut, 1 - side)
        await take(ctx, dut, 1 - side)
        ctx.set(signal, none)
        ctx.set(dut.asking, 0)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.progress.executed), "the program of the launch before is over, not this one's"

    run(bench)


def test_quiet_when_memory_owes_nothing() -> None:
    """To neither launch, and no burst waits to be asked for."""

    async def bench(ctx, dut):
        ctx.set(dut.store.quiet, 1)
        ctx.set(dut.store.idle, 1)
        await ctx.tick()
        assert ctx.get(dut.progress.quiet) and ctx.get(dut.progress.stored)
        for signal, busy, idle in (
            (dut.fabric.idle, 1, 3), (dut.fabric.idle, 2, 3), (dut.asking, 1, 0), (dut.store.quiet, 0, 1),
        ):  # fmt: skip
            ctx.set(signal, busy)
            await ctx.tick()
            assert not ctx.get(dut.progress.quiet)
            ctx.set(signal, idle)
            await ctx.tick()
            assert ctx.get(dut.progress.quiet)
        for signal in (dut.fabric.beat, dut.store.acknowledged):
            assert not ctx.get(dut.progress.answered)
            ctx.set(signal, 1)
            assert ctx.get(dut.progress.answered)
            ctx.set(signal, 0)

    run(bench)
