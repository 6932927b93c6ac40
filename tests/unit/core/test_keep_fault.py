"""The first fault of a launch, or else the first value that it replaced, is in its record."""

from types import SimpleNamespace

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config import PRESETS
from daedal.hw.core_faults import keep_fault
from daedal.hw.interfaces import fault_layout

CONFIG = PRESETS["edge"]
TAKE = 10


def parts() -> tuple[SimpleNamespace, Module]:
    """What ``keep_fault`` sees of the core, and a module with its logic."""
    core = SimpleNamespace(
        config=CONFIG,
        fault=Signal(fault_layout(CONFIG)),
        fault_nest=Signal(NEST_BITS),
        soft_reset=Signal(),
        controller=SimpleNamespace(take=Signal(), side=Signal(), cancel=Signal(), clear_fault=Signal()),
        access=SimpleNamespace(begins=Signal(), side=Signal(), number=Signal(8), warning=Signal(),
                               warned_value=Signal(64)),
        loader=SimpleNamespace(begin=Signal(), side=Signal()),
    )  # fmt: skip
    core.any_fault, core.found, core.caught = Signal(), Signal(fault_layout(CONFIG)), Signal()
    m = Module()
    keep_fault(m, core, core.any_fault, core.found, core.caught)
    return core, m


@pytest.mark.parametrize("cycle", range(TAKE - 3, TAKE + 4))
@pytest.mark.parametrize("second", [None, 1, 5])
def test_a_warning_in_any_cycle(cycle: int, second: int | None) -> None:
    """A warning ``cycle`` cycles after the launch begins, which becomes the present one in cycle ``TAKE``; perhaps
    a second one later, which is not told.
    """
    core, m = parts()

    async def bench(ctx):
        ctx.set(core.access.side, 1)  # the next launch's; the present one's is 0
        for now in range(TAKE + 12):
            ctx.set(core.loader.begin, now == 0)
            ctx.set(core.access.warning, now == cycle or (second is not None and now == cycle + second))
            ctx.set(core.access.warned_value, 77 if now == cycle else 99)
            ctx.set(core.controller.take, now == TAKE)
            await ctx.tick()
            ctx.set(core.loader.side, 1)
            ctx.set(core.controller.side, now >= TAKE)
        assert ctx.get(core.fault.value) == 77

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


def test_a_reset_forgets_what_came_early() -> None:
    """A launch warns before it is the present one; after a reset, the next one begins on the present side."""
    core, m = parts()

    async def strobe(ctx, signal):
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    async def bench(ctx):
        ctx.set(core.access.side, 1)
        ctx.set(core.access.warned_value, 77)
        await strobe(ctx, core.access.warning)
        await strobe(ctx, core.controller.take)
        ctx.set(core.controller.side, 1)
        assert ctx.get(core.fault.value) == 77
        await strobe(ctx, core.soft_reset)
        ctx.set(core.controller.side, 0)
        ctx.set(core.loader.side, 1)
        await strobe(ctx, core.loader.begin)
        await strobe(ctx, core.controller.take)
        assert ctx.get(core.fault.value) == 0

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("gap", [1, 2, 5])
def test_the_first_fault_is_kept(gap: int) -> None:
    """With the nest that ran when it was found; neither a fault ``gap`` cycles later, nor the next nest, nor a warning
    takes its place, and the next launch begins without it.
    """
    core, m = parts()

    async def bench(ctx):
        for now in range(gap + 3):
            ctx.set(core.access.begins, now in (0, 1, 2))
            ctx.set(core.access.number, 7 + now)
            ctx.set(core.any_fault, now in (1, 1 + gap))
            ctx.set(core.found.value, 100 + now)
            ctx.set(core.access.warning, now == 2)
            ctx.set(core.access.warned_value, 77)
            await ctx.tick()
        ctx.set(core.any_fault, 0)
        await ctx.tick().repeat(2)
        assert (ctx.get(core.caught), ctx.get(core.fault.value), ctx.get(core.fault_nest)) == (1, 101, 7)
        ctx.set(core.controller.take, 1)
        await ctx.tick()
        assert (ctx.get(core.caught), ctx.get(core.fault.value), ctx.get(core.fault_nest)) == (0, 0, 0)

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
