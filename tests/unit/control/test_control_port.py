"""The register file: identity, doorbell, interrupt, reset, and writes that arrive in any order."""

from functools import partial

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.isa.program import pack, unpack
from daedal.hw.isa.registers import ACCESS, IDENTITY, REVISION, Control, Register, Status

CONFIG = PRESETS["edge"]


class Host:
    def __init__(self, ctx, bus):
        self.ctx, self.bus = ctx, bus

    async def write(self, register, value, *, address_first=False):
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.awaddr, register.value)
        ctx.set(bus.awvalid, 1)
        if address_first:
            await ctx.tick().repeat(3)
        ctx.set(bus.wdata, value)
        ctx.set(bus.wvalid, 1)
        await ctx.tick().until(bus.wready)
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)
        ctx.set(bus.bready, 1)
        await ctx.tick().until(bus.bvalid)
        ctx.set(bus.bready, 0)

    async def read(self, register):
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.araddr, register.value)
        ctx.set(bus.arvalid, 1)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        ctx.set(bus.rready, 1)
        (value,) = await ctx.tick().sample(bus.rdata).until(bus.rvalid)
        ctx.set(bus.rready, 0)
        return value


def run(bench, beside=None):
    """Run ``bench``, and what drives other inputs ``beside`` it; the launches that were queued."""
    dut, done, rung = ControlRegisters(CONFIG), [], []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def whole(ctx):
        await bench(ctx, dut, Host(ctx, dut.bus))
        done.append(True)

    async def watch(ctx):
        while True:
            _, _, valid, ready, payload = await ctx.tick().sample(
                dut.doorbell.valid, dut.doorbell.ready, dut.doorbell.payload
            )
            if valid and ready:
                rung.append(payload)

    simulator.add_process(watch)
    simulator.add_testbench(whole)
    if beside is not None:
        simulator.add_testbench(partial(beside, dut=dut))
    simulator.run()
    assert done
    return rung


def test_says_what_it_is():
    async def bench(ctx, dut, host):
        assert await host.read(Register.IDENTITY) == IDENTITY
        assert await host.read(Register.REVISION) == REVISION
        assert await host.read(Register.CONFIG_HASH) == CONFIG.hash

    run(bench)


def test_doorbell_queues_the_launch_and_tells_when_it_cannot():
    async def bench(ctx, dut, host):
        ctx.set(dut.doorbell.ready, 1)
        await host.write(Register.LAUNCH_LOW, 0x89ABCDC0, address_first=True)
        await host.write(Register.LAUNCH_HIGH, 0x12)
        await host.write(Register.DOORBELL, 1)
        assert (await host.read(Register.STATUS)) & 0b100 == 0
        ctx.set(dut.doorbell.ready, 0)
        await host.write(Register.DOORBELL, 1)
        assert (await host.read(Register.STATUS)) & 0b100

    assert run(bench) == [0x1289ABCDC0]


@pytest.mark.parametrize("state", ["faulted", "reset"])
def test_doorbell_of_a_machine_that_takes_no_launches_is_an_overflow(state):
    async def bench(ctx, dut, host):
        ctx.set(dut.doorbell.ready, 1)
        if state == "faulted":
            ctx.set(dut.faulted, 1)
        else:
            await host.write(Register.CONTROL, pack(Control, {"reset": 1}))
        await host.write(Register.DOORBELL, 1)
        assert unpack(Status, await host.read(Register.STATUS))["overflow"]

    assert run(bench) == []


def test_interrupt_stays_until_cleared_and_only_shows_if_enabled():
    async def bench(ctx, dut, host):
        ctx.set(dut.ended, 1)
        await ctx.tick()
        ctx.set(dut.ended, 0)
        await ctx.tick()
        assert ctx.get(dut.interrupt) == 0
        await host.write(Register.CONTROL, 0b10)
        assert ctx.get(dut.interrupt) == 1
        assert await host.read(Register.INTERRUPT) == 1
        await host.write(Register.INTERRUPT, 1)
        assert ctx.get(dut.interrupt) == 0

    run(bench)


@pytest.mark.parametrize("value", [1, 2, 3])
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("phase", range(1, 8))
def test_an_end_is_not_lost_whenever_the_interrupt_is_cleared(phase, earlier, value):
    """What is written counts in cycle 4, the launch ends in any of those around it; one may have ended before."""

    async def ends(ctx, dut):
        for cycle in range(10):
            ctx.set(dut.ended, cycle == phase or (earlier and cycle == 0))
            await ctx.tick()

    async def bench(ctx, dut, host):
        await ctx.tick().repeat(4)
        await host.write(Register.INTERRUPT, value)
        await ctx.tick().repeat(6)
        is_cleared = bool(value & 1) and phase < 4
        assert await host.read(Register.INTERRUPT) == (not is_cleared)

    run(bench, beside=ends)


def test_mixed_is_off_until_written_and_stays_through_a_reset():
    async def bench(ctx, dut, host):
        assert ctx.get(dut.mixed) == 0
        await host.write(Register.CONTROL, pack(Control, {"mixed": 1, "reset": 1}))
        ctx.set(dut.reset_done, 1)
        await ctx.tick()
        ctx.set(dut.reset_done, 0)
        assert ctx.get(dut.mixed) == 1
        assert unpack(Control, await host.read(Register.CONTROL))["mixed"] == 1
        await host.write(Register.CONTROL, 0)
        assert ctx.get(dut.mixed) == 0

    run(bench)


def test_reset_reads_as_one_until_done():
    async def bench(ctx, dut, host):
        await host.write(Register.CONTROL, 0b01)
        assert await host.read(Register.CONTROL) == 0b01
        ctx.set(dut.reset_done, 1)
        await ctx.tick()
        ctx.set(dut.reset_done, 0)
        assert await host.read(Register.CONTROL) == 0

    run(bench)


def test_access_is_as_declared():
    """Written with all ones, a register that can be read and written keeps some, and others none."""
    kept = {}

    async def bench(ctx, dut, host):
        for register in Register:
            before = await host.read(register)
            await host.write(register, 0xFFFFFFFE)
            kept[register] = await host.read(register) != before

    run(bench)
    assert ACCESS.keys() == set(Register)
    changed = {register for register, access in ACCESS.items() if access == "read, write"}
    assert {register for register, did in kept.items() if did} == changed
