"""The window of a system's registers: each page is its tile's, page 0 tells of all."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Component, Out, connect, flipped
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.control.system_registers import SystemRegisters, system_address_bits
from daedal.hw.isa.registers import IDENTITY, PAGE_BYTES, REVISION, SYSTEM_IDENTITY, Register, SystemRegister
from daedal.hw.memory.axi import LiteSlave

CONFIG = PRESETS["minimum"]


class Window(Component):
    """The window, and a register file of a tile behind each page."""

    def __init__(self, tiles):
        super().__init__({"bus": Out(LiteSlave(system_address_bits(tiles)))})
        self.registers = SystemRegisters(CONFIG, tiles)
        self.tiles = [ControlRegisters(CONFIG) for _ in range(tiles)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.registers = registers = self.registers
        connect(m, flipped(self.bus), registers.bus)
        for n, tile in enumerate(self.tiles):
            m.submodules[f"tile{n}"] = tile
            connect(m, getattr(registers, f"tile{n}"), tile.bus)
            m.d.comb += registers.interrupts[n].eq(tile.interrupt)
        return m


class Host:
    """Writes and reads; answers are taken late at random."""

    def __init__(self, ctx, bus):
        self.ctx, self.bus, self.rng = ctx, bus, random.Random(7)

    async def write(self, address, value):
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.awaddr, address)
        ctx.set(bus.wdata, value)
        ctx.set(bus.awvalid, 1)
        ctx.set(bus.wvalid, 1)
        await ctx.tick().until(bus.awready & bus.wready)
        ctx.set(bus.awvalid, 0)
        ctx.set(bus.wvalid, 0)
        ctx.set(bus.awaddr, self.rng.getrandbits(12))  # it is no business of the window any more
        ctx.set(bus.wdata, self.rng.getrandbits(32))
        await ctx.tick().repeat(1 + self.rng.randrange(8))
        ctx.set(bus.bready, 1)
        await ctx.tick().until(bus.bvalid)
        ctx.set(bus.bready, 0)

    async def read(self, address):
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.araddr, address)
        ctx.set(bus.arvalid, 1)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        ctx.set(bus.araddr, self.rng.getrandbits(12))
        await ctx.tick().repeat(1 + self.rng.randrange(8))
        ctx.set(bus.rready, 1)
        (value,) = await ctx.tick().sample(bus.rdata).until(bus.rvalid)
        ctx.set(bus.rready, 0)
        return value


def run(tiles, bench):
    window, done = Window(tiles), []
    simulator = Simulator(window)
    simulator.add_clock(1e-6)

    async def whole(ctx):
        await bench(ctx, window, Host(ctx, window.bus))
        done.append(True)

    simulator.add_testbench(whole)
    simulator.run_until(1e-2)
    assert done, "the bench must come to its end"


def page(tile):
    return (tile + 1) * PAGE_BYTES


@pytest.mark.parametrize("tiles", [1, 3, 33])
def test_each_page_is_its_tiles(tiles):
    chosen = sorted({0, tiles // 2, tiles - 1})

    async def bench(ctx, window, host):
        for tile in chosen:
            await host.write(page(tile) + Register.LAUNCH_LOW.value, 0x1000 + tile)
        for tile in range(tiles) if tiles < 9 else chosen:
            assert await host.read(page(tile) + Register.IDENTITY.value) == IDENTITY
            low = await host.read(page(tile) + Register.LAUNCH_LOW.value)
            assert low == (0x1000 + tile if tile in chosen else 0)
        end = 1 << system_address_bits(tiles)
        for beyond in (page(0) + 0x100 + Register.IDENTITY.value, 0x500, *range(page(tiles), end, PAGE_BYTES)):
            assert await host.read(beyond) == 0
            await host.write(beyond, 1)

    run(tiles, bench)


@pytest.mark.parametrize("tiles", [2, 33])
def test_page_0_tells_of_all(tiles):
    last = tiles - 1

    async def bench(ctx, window, host):
        read = {each: await host.read(each.value) for each in SystemRegister}
        assert list(read.values()) == [SYSTEM_IDENTITY, REVISION, CONFIG.hash, tiles, 0, 0]
        assert ctx.get(window.registers.interrupt) == 0
        await host.write(page(last) + Register.CONTROL.value, 2)  # interrupt_enable
        for tile in (0, last):  # of the first it is not enabled
            ctx.set(window.tiles[tile].ended, 1)
            await ctx.tick()
            ctx.set(window.tiles[tile].ended, 0)
        await ctx.tick().repeat(2)
        assert ctx.get(window.registers.interrupt) == 1
        bits = await host.read(SystemRegister.INTERRUPTS_LOW.value)
        bits |= await host.read(SystemRegister.INTERRUPTS_HIGH.value) << 32
        assert bits == 1 << last
        await host.write(page(last) + Register.INTERRUPT.value, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(window.registers.interrupt) == 0

    run(tiles, bench)
