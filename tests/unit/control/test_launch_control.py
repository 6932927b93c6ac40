"""LaunchControl: from a doorbell to the core and back to the host, over a core that says when it is through."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, PRESETS
from daedal.hw.control.launch_control import LaunchControl
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program import pack, unpack
from daedal.hw.isa.registers import Control, Register, Status
from tests.unit.control.test_control_port import Host

CONFIG = PRESETS["edge"]


class Core:
    """A core that begins, runs and ends what it is given, each step after a random time; ``seen`` are the launches."""

    def __init__(self, dut: LaunchControl, seed: int, fault_at: int = -1) -> None:
        self.port, self.rng, self.fault_at = dut.core, random.Random(seed), fault_at
        self.seen: list[int] = []
        self.cancelled: list[int] = []

    @staticmethod
    async def seen_once(ctx, strobe) -> None:
        """Wait until the cycle behind the one with this strobe."""
        while not ctx.get(strobe):
            await ctx.tick()
        await ctx.tick()

    async def run(self, ctx) -> None:
        port, side = self.port, 1
        progress, launch = port.progress, port.launch
        ctx.set(port.record.known, 1)
        ctx.set(progress.stored, 1)
        while True:
            while not ctx.get(port.block.valid) or ctx.get(launch.hold):
                await ctx.tick()
            cancel = ctx.get(launch.cancel)
            (self.cancelled if cancel else self.seen).append(ctx.get(port.block.payload))
            side = 1 - side
            ctx.set(progress.loader_side, side)
            ctx.set(progress.begin if cancel else progress.ahead, 1)
            await self.seen_once(ctx, launch.take)
            ctx.set(progress.ahead, 0)
            ctx.set(progress.begin, 0)
            ctx.set(port.block.ready, 1)  # in the cycle behind ``take``
            await ctx.tick()
            ctx.set(port.block.ready, 0)
            await ctx.tick().repeat(self.rng.randrange(1, 20))
            if cancel:
                ctx.set(progress.program_done, 1)
                await ctx.tick()
                ctx.set(progress.program_done, 0)
            elif len(self.seen) - 1 == self.fault_at:
                ctx.set(port.fault.valid, 1)
                ctx.set(port.fault.cause, Cause.INDEX)
                ctx.set(progress.quiet, 1)
            else:
                ctx.set(progress.executed, 1)
            await self.seen_once(ctx, launch.record_start)
            ctx.set(progress.executed, 0)
            ctx.set(port.fault.valid, 0)
            await ctx.tick().repeat(self.rng.randrange(1, 20))
            ctx.set(port.record.done, 1)
            await ctx.tick()
            ctx.set(port.record.done, 0)
            while ctx.get(launch.record_phase):
                await ctx.tick()


def run(
    bench: Callable[[Any, LaunchControl, Host], Any], seed: int = 0, fault_at: int = -1, at_work: bool = True
) -> Core:
    """Run a bench; the core that it worked with, which does nothing unless it is ``at_work``."""
    dut, done = LaunchControl(CONFIG), []
    core = Core(dut, seed, fault_at)

    async def whole(ctx):
        await bench(ctx, dut, Host(ctx, dut.bus))
        done.append(True)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    if at_work:
        simulator.add_testbench(core.run, background=True)
    simulator.add_testbench(whole)
    simulator.run()
    assert done
    return core


async def ring(host: Host, block: int) -> None:
    """Ring for the launch block at this address."""
    await host.write(Register.LAUNCH_LOW, block)
    await host.write(Register.DOORBELL, 1)


async def completed(ctx, host: Host, count: int) -> None:
    """Wait until so many launches have ended."""
    for _ in range(500):
        if await host.read(Register.COMPLETED) == count:
            return
        await ctx.tick().repeat(10)
    raise AssertionError(f"COMPLETED must become {count}")


@pytest.mark.parametrize("seed", range(3))
def test_launches_go_to_the_core_in_their_order(seed: int) -> None:
    """Each once, at whatever times they are rung for and end; the interrupt tells of each end."""
    rng, blocks = random.Random(seed), [64 * number for number in range(1, 8)]

    async def bench(ctx, dut, host):
        await host.write(Register.CONTROL, pack(Control, {"interrupt_enable": 1}))
        for number, block in enumerate(blocks):
            if number >= LAUNCH_QUEUE_DEPTH:
                await completed(ctx, host, number - LAUNCH_QUEUE_DEPTH + 1)
            await ring(host, block)
            await ctx.tick().repeat(rng.randrange(100))
        await completed(ctx, host, len(blocks))
        assert ctx.get(dut.interrupt)
        await host.write(Register.INTERRUPT, 1)
        assert not ctx.get(dut.interrupt)
        assert await host.read(Register.STATUS) == 0

    assert run(bench, seed).seen == blocks


def test_a_doorbell_finds_the_queue_empty_or_not() -> None:
    """``rung`` is of a launch that does not wait behind another one, which is in the queue until it is taken."""

    async def bench(ctx, dut, host):
        bus = host.bus
        await host.write(Register.LAUNCH_LOW, 64)
        for alone in (True, False):
            ctx.set(bus.awaddr, Register.DOORBELL.value)
            ctx.set(bus.awvalid, 1)
            ctx.set(bus.wvalid, 1)
            assert ctx.get(dut.core.rung) == alone
            await ctx.tick()
            ctx.set(bus.awvalid, 0)
            ctx.set(bus.wvalid, 0)
            assert not ctx.get(dut.core.rung)
            ctx.set(bus.bready, 1)
            await ctx.tick().repeat(3)

    run(bench, at_work=False)


def test_a_fault_cancels_what_is_queued_and_a_reset_ends_it() -> None:
    """All get to the core; those behind the fault as cancelled. Until the reset none is taken."""
    blocks = [64, 128, 192]

    async def bench(ctx, dut, host):
        for block in blocks:
            await ring(host, block)
        await completed(ctx, host, len(blocks))
        assert unpack(Status, await host.read(Register.STATUS))["faulted"]
        assert await host.read(Register.FAULT) == Cause.INDEX.value
        await ring(host, 256)
        assert unpack(Status, await host.read(Register.STATUS))["overflow"]
        ctx.set(dut.core.fault.cause, Cause.NONE)
        await host.write(Register.CONTROL, pack(Control, {"reset": 1}))
        while await host.read(Register.CONTROL):
            await ctx.tick()
        assert await host.read(Register.STATUS) == 0
        await ring(host, 320)
        await completed(ctx, host, len(blocks) + 1)

    core = run(bench, fault_at=1)
    assert (core.seen, core.cancelled) == ([64, 128, 320], [192])
