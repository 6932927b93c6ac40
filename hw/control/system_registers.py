"""The registers of several tiles behind one AXI4-Lite slave, and one interrupt."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from daedal.hw.config.core import Config
from daedal.hw.isa.registers import PAGE_BYTES, REGISTER_ADDRESS_BITS, REVISION, SYSTEM_IDENTITY, SystemRegister
from daedal.hw.memory.axi import LiteSlave

WORD_BITS = 32


def system_address_bits(tiles: int) -> int:
    """Bits of an address of a system of so many tiles: a page for each, and the system's own before them."""
    return exact_log2(PAGE_BYTES) + bits_for(tiles)


class SystemRegisters(wiring.Component):
    """Serves page 0, the registers of ``hw.isa.registers.SystemRegister``, and gives what is in other pages to tiles.

    One write and one read at a time, some cycles each. In pages without a tile, as everywhere, what is not there
    reads as 0 and is not written.

    Members
    -------
    bus : ``Out(LiteSlave(system_address_bits(tiles)))``
        The AXI4-Lite slave.
    tile0, tile1, … : ``In(LiteSlave())``
        Those of the tiles, whose host this is.
    interrupts : ``In(tiles)``
        Of each tile.
    interrupt : ``Out(1)``
        High while any of them is, a cycle late.
    """

    def __init__(self, config: Config, tiles: int) -> None:
        self._hash, self._count = config.hash, tiles
        super().__init__(
            {
                "bus": Out(LiteSlave(system_address_bits(tiles))),
                **{f"tile{n}": In(LiteSlave()) for n in range(tiles)},
                "interrupts": In(tiles),
                "interrupt": Out(1),
            }
        )
        self._tiles = [getattr(self, f"tile{n}") for n in range(tiles)]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._write(m)
        self._read(m)
        m.d.sync += self.interrupt.eq(self.interrupts.any())
        return m

    def _write(self, m: Module) -> None:
        """An access that was taken is ``active`` until it is answered, ``sent`` once a tile has taken it."""
        bus, active, sent = self.bus, Signal(name="writing"), Signal(name="written")
        address, word, strobes = Signal.like(bus.awaddr), Signal.like(bus.wdata), Signal.like(bus.wstrb)
        is_tile = Signal(name="writes_tile")
        start = bus.awvalid & bus.wvalid & ~active & ~bus.bvalid
        m.d.comb += [bus.awready.eq(start), bus.wready.eq(start)]
        with m.If(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(start):
            m.d.sync += [address.eq(bus.awaddr), word.eq(bus.wdata), strobes.eq(bus.wstrb), active.eq(1), sent.eq(0)]
        for number, tile in enumerate(self._tiles):
            m.d.comb += [tile.awaddr.eq(address), tile.wdata.eq(word), tile.wstrb.eq(strobes), tile.bready.eq(1)]
            with m.If(active & self._is_of(address, number)):
                m.d.comb += [is_tile.eq(1), tile.awvalid.eq(~sent), tile.wvalid.eq(~sent)]
                with m.If(tile.awready & tile.wready):
                    m.d.sync += sent.eq(1)
                with m.If(tile.bvalid):
                    m.d.sync += [active.eq(0), bus.bvalid.eq(1)]
        with m.If(active & ~is_tile):
            m.d.sync += [active.eq(0), bus.bvalid.eq(1)]

    def _read(self, m: Module) -> None:
        bus, active, sent = self.bus, Signal(name="reading"), Signal(name="asked")
        address, is_tile = Signal.like(bus.araddr), Signal(name="reads_tile")
        start = bus.arvalid & bus.arready
        m.d.comb += bus.arready.eq(~active & ~bus.rvalid)
        with m.If(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        with m.If(start):
            m.d.sync += [address.eq(bus.araddr), active.eq(1), sent.eq(0)]
        for number, tile in enumerate(self._tiles):
            m.d.comb += [tile.araddr.eq(address), tile.rready.eq(1)]
            with m.If(active & self._is_of(address, number)):
                m.d.comb += [is_tile.eq(1), tile.arvalid.eq(~sent)]
                with m.If(tile.arready):
                    m.d.sync += sent.eq(1)
                with m.If(tile.rvalid):
                    m.d.sync += [active.eq(0), bus.rvalid.eq(1), bus.rdata.eq(tile.rdata)]
        with m.If(active & ~is_tile):
            m.d.sync += [active.eq(0), bus.rvalid.eq(1), bus.rdata.eq(0)]
            self._read_page(m, address)

    def _read_page(self, m: Module, address: Signal) -> None:
        values = {
            SystemRegister.IDENTITY: SYSTEM_IDENTITY,
            SystemRegister.REVISION: REVISION,
            SystemRegister.CONFIG_HASH: self._hash,
            SystemRegister.TILES: self._count,
            SystemRegister.INTERRUPTS_LOW: self.interrupts[:WORD_BITS],
            SystemRegister.INTERRUPTS_HIGH: self.interrupts[WORD_BITS:],
        }
        for register, value in values.items():
            with m.If(address == int(register.value)):
                m.d.sync += self.bus.rdata.eq(value)

    def _is_of(self, address: Signal, tile: int) -> Value:
        """Whether it is a register of this tile: what it does not look at of an address is 0."""
        page = (tile + 1) << exact_log2(PAGE_BYTES) - REGISTER_ADDRESS_BITS
        return address[REGISTER_ADDRESS_BITS:] == page
