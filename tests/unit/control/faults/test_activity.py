"""Activity: what keeps the watchdog quiet, and which queue a hang is blamed on."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.faults.activity import HEADS, TAILS, Activity
from daedal.hw.isa.launch import Queue

CONFIG = PRESETS["edge"]
LATE = 2
"""Cycles until what moved at a queue's end is seen as progress; all else is seen a cycle earlier."""


def run(bench: Callable[[Any, Activity], Any]) -> None:
    """Run a bench on a machine that stands still: the sides are those of the present launch, nothing is held."""
    dut, done = Activity(CONFIG), []

    async def whole(ctx):
        ctx.set(dut.ends.swept, 1)
        ctx.set(dut.store.idle, 1)
        ctx.set(dut.store.quiet, 1)
        ctx.set(dut.fabric.idle, 3)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.o.progress)
        await bench(ctx, dut)
        done.append(True)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(whole)
    simulator.run()
    assert done


async def progress_of(ctx, dut: Activity, signals: list[Any], cycles: int = LATE) -> bool:
    """Whether it is progress if these are 1 in a single cycle."""
    for signal in signals:
        ctx.set(signal, 1)
    await ctx.tick()
    for signal in signals:
        ctx.set(signal, 0)
    seen = bool(ctx.get(dut.o.progress))
    for _ in range(cycles - 1):
        await ctx.tick()
        seen |= bool(ctx.get(dut.o.progress))
    await ctx.tick()
    assert not ctx.get(dut.o.progress), "progress does not end"
    return seen


@pytest.mark.parametrize("name", HEADS + TAILS)
def test_a_queue_moves_when_something_is_taken(name: str) -> None:
    """For the launch of the unit that takes or sends it; what is only offered, or only wanted, is no progress."""

    async def bench(ctx, dut):
        end = getattr(dut.ends, name)
        side = dut.access.side if name in TAILS else dut.launch.execute_side
        assert await progress_of(ctx, dut, [end.valid, end.ready])
        assert not await progress_of(ctx, dut, [end.valid])
        assert not await progress_of(ctx, dut, [end.ready])
        ctx.set(side, 1)
        assert not await progress_of(ctx, dut, [end.valid, end.ready]), "of the next launch"

    run(bench)


def test_what_a_launch_may_wait_for() -> None:
    """Lines of either launch, writes, the sweep; but requests, words and nests only of its own."""

    async def bench(ctx, dut):
        for signal in (dut.fabric.beat, dut.store.acknowledged, dut.store.line):
            for side in range(2):
                ctx.set(dut.fabric.beat_side, side)
                assert await progress_of(ctx, dut, [signal])
        ctx.set(dut.ends.swept, 0)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.o.progress), "a sweep is waited for"
        ctx.set(dut.ends.swept, 1)
        await ctx.tick().repeat(2)
        for signal, side in (
            (dut.ends.asked, dut.ends.asked_side), (dut.ends.configured, dut.loader.side),
            (dut.execute.lane_beat, dut.launch.execute_side), (dut.access.bundle, dut.access.side),
        ):  # fmt: skip
            ctx.set(side, 0)
            assert await progress_of(ctx, dut, [signal])
            ctx.set(side, 1)
            assert not await progress_of(ctx, dut, [signal]), "of the next launch"

    run(bench)


@pytest.mark.parametrize("side", range(2))
def test_memory_owes_the_present_launch_an_answer(side: int) -> None:
    async def bench(ctx, dut):
        ctx.set(dut.launch.side, side)
        assert not ctx.get(dut.o.outstanding)
        ctx.set(dut.fabric.idle, 1 << side)
        assert not ctx.get(dut.o.outstanding), "owed to the other launch"
        ctx.set(dut.fabric.idle, 2 >> side)
        assert ctx.get(dut.o.outstanding)
        ctx.set(dut.fabric.idle, 3)
        ctx.set(dut.store.quiet, 0)
        assert ctx.get(dut.o.outstanding)

    run(bench)


def test_a_hang_is_blamed_on_what_is_waited_for_before_what_nobody_empties() -> None:
    """Any set of queues that hold something, and of units that wait."""

    async def bench(ctx, dut):
        ends, execute = dut.ends, dut.execute
        order = [
            (execute.stall_vector_empty, None),
            (execute.stall_scalar_empty, Queue.SCALAR),
            (ends.address.valid, Queue.STORE_DATA),
            (ends.row2.valid, Queue.STREAM),
            (ends.to_store.valid, Queue.STORE_DATA),
            (ends.scalar.valid, Queue.SCALAR),
            (ends.row1.valid, Queue.VECTOR1),
            (ends.row0.valid, Queue.VECTOR0),
        ]
        rng = random.Random(5)
        for _ in range(200):
            first = rng.randrange(len(order) + 1)
            zeroth = rng.randrange(2)
            ctx.set(execute.awaits_vector0, zeroth)
            for place, (signal, _) in enumerate(order):
                ctx.set(signal, place == first or (place > first and rng.randrange(2)))
            held = rng.randrange(4) == 0
            ctx.set(dut.store.idle, not held)
            await ctx.tick()
            name = order[first][1] if first < len(order) else Queue.NONE
            if first == 0:
                name = Queue.VECTOR0 if zeroth else Queue.VECTOR1
            elif held and first > 1:
                name = Queue.STORE_DATA
            assert ctx.get(dut.o.blocked) == name

    run(bench)
