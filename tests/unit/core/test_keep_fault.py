"""The first fault of a launch, or else the first value that it replaced, is in its record."""

from types import SimpleNamespace

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config.core import PRESETS
from daedal.hw.control.core_faults import found_layout, keep_fault
from daedal.hw.control.fault_words import FaultWords
from daedal.hw.isa.launch import RecordWord

CONFIG = PRESETS["edge"]
TAKE = 10
WORD = 100
"""The words that a fault's source has are this and their numbers."""


def parts() -> tuple[SimpleNamespace, Module]:
    """What ``keep_fault`` sees of the core, and a module with its logic."""
    core = SimpleNamespace(
        config=CONFIG,
        words=FaultWords(CONFIG),
        fault=Signal(found_layout()),
        fault_nest=Signal(NEST_BITS),
        soft_reset=Signal(),
        taken=Signal(),
        controller=SimpleNamespace(side=Signal(), cancel=Signal(), clear_fault=Signal()),
        access=SimpleNamespace(begins=Signal(), side=Signal(), number=Signal(8), warning=Signal(),
                               warned_value=Signal(64)),
        loader=SimpleNamespace(begin=Signal(), side=Signal()),
    )  # fmt: skip
    core.any_fault, core.found, core.caught = Signal(), Signal(found_layout()), Signal()
    m = Module()
    m.submodules.words = core.words
    m.d.comb += core.words.word.eq(WORD + core.words.number)
    keep_fault(m, core, core.any_fault, core.found, core.caught)
    return core, m


def told(ctx, core: SimpleNamespace, number: int = RecordWord.VALUE.value) -> int:
    """This word of the present launch's record."""
    ctx.set(core.words.asked, number)
    value: int = ctx.get(core.words.told)
    return value


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
            ctx.set(core.taken, now == TAKE + 1)
            await ctx.tick()
            ctx.set(core.loader.side, 1)
            ctx.set(core.controller.side, now >= TAKE)
        assert told(ctx, core) == 77

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("side", [0, 1])
def test_a_reset_forgets_what_came_early(side: int) -> None:
    """A launch warns on side 1 before it is the present one; after a reset, the next one begins on ``side``."""
    core, m = parts()

    async def strobe(ctx, signal):
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    async def bench(ctx):
        ctx.set(core.access.side, 1)
        ctx.set(core.access.warned_value, 77)
        await strobe(ctx, core.access.warning)
        await strobe(ctx, core.taken)
        ctx.set(core.controller.side, 1)
        await ctx.tick()
        assert told(ctx, core) == 77
        await strobe(ctx, core.soft_reset)
        ctx.set(core.loader.side, 1 - side)
        await strobe(ctx, core.loader.begin)
        ctx.set(core.controller.side, side)
        await strobe(ctx, core.taken)
        assert told(ctx, core) == 0

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
            ctx.set(core.found.level, now)
            ctx.set(core.access.warning, now == 2)
            ctx.set(core.access.warned_value, 77)
            await ctx.tick()
        ctx.set(core.any_fault, 0)
        await ctx.tick().repeat(core.words.copy_cycles)
        assert (ctx.get(core.caught), ctx.get(core.fault.level), ctx.get(core.fault_nest)) == (1, 1, 7)
        last = RecordWord.REGISTER0.value + CONFIG.registers - 1
        for number in range(RecordWord.VALUE.value, last + 1):
            assert told(ctx, core, number) == WORD + number
        ctx.set(core.taken, 1)
        await ctx.tick()
        ctx.set(core.controller.side, 1)
        assert (ctx.get(core.caught), ctx.get(core.fault.level), ctx.get(core.fault_nest)) == (0, 0, 0)
        assert not any(told(ctx, core, number) for number in range(RecordWord.ADDRESS.value, last + 1))
        assert told(ctx, core) == 0, "neither the fault's value, nor a warning that came after it"

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
