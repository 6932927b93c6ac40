"""The RTL of LiteX's serial bridge and of the link gate with a small memory behind, for the C++ loop of boards."""

from functools import cache
from pathlib import Path

from daedal.cosim.board import SimulatedLine, build_board

CLOCK_HZ, BAUD = 60e6, 6_000_000
"""Ten cycles a bit: short simulations."""

MEMORY_BASE, MEMORY_BYTES = 0x4000_0000, 1 << 14

DESIGN = 0x1234_5678


@cache
def link_verilog() -> str:
    from litex.gen import LiteXModule
    from litex.soc.cores.uart import RS232PHY
    from litex.soc.interconnect import wishbone
    from migen import ClockDomain, If, Record, Signal
    from migen.fhdl import verilog

    from daedal.fpga.soc.host_link import SerialLink

    class Top(LiteXModule):
        """A memory at MEMORY_BASE; anything else answers with 0 and keeps nothing."""

        def __init__(self) -> None:
            self.cd_sys = ClockDomain()
            self.pads = Record([("tx", 1), ("rx", 1)], name="serial")
            self.interrupt = Signal()
            self.phy = RS232PHY(self.pads, CLOCK_HZ, BAUD)
            self.link = link = SerialLink(self.phy, CLOCK_HZ, design=DESIGN)
            self.memory = memory = wishbone.SRAM(MEMORY_BYTES)
            bus = link.bus
            inside, nothing = Signal(), Signal()
            self.comb += [
                inside.eq(bus.adr[12:] == MEMORY_BASE // MEMORY_BYTES),
                link.interrupt.eq(self.interrupt),
                bus.connect(memory.bus, omit={"cyc", "ack", "dat_r"}),
                memory.bus.cyc.eq(bus.cyc & inside),
                bus.dat_r.eq(memory.bus.dat_r),
                bus.ack.eq(memory.bus.ack),
                If(nothing, bus.ack.eq(bus.cyc & bus.stb), bus.dat_r.eq(0)),
            ]
            self.sync += nothing.eq(bus.cyc & bus.stb & ~inside & ~nothing)

    top = Top()
    ports = {top.cd_sys.clk, top.cd_sys.rst, top.pads.tx, top.pads.rx, top.interrupt}
    text = str(verilog.convert(top, ios=ports, name="link_top", create_clock_domains=False))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))


def link_library() -> Path:
    return build_board("link", link_verilog(), top="link_top")


def open_line() -> SimulatedLine:
    return SimulatedLine(link_library(), clock_hz=CLOCK_HZ, baud=BAUD)
