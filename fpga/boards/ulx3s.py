"""Radiona ULX3S: LFE5U-85F, 32 MiB of SDRAM on 16 bits, USB with serial line and JTAG."""

from dataclasses import replace
from typing import Any

from litedram.modules import MT48LC16M16
from litedram.phy import GENSDRPHY
from litex.build.io import DDROutput
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex_boards.platforms import radiona_ulx3s
from migen import ClockDomain, ClockSignal, Signal

from daedal.fpga.boards.board import Board, Dram
from daedal.fpga.litedram_patches.apply import BANK_MACHINES, COMMAND_CHOICE, CROSSBAR, REFRESH
from daedal.fpga.soc.soc import CORE_DOMAIN
from daedal.hw.config.core import Config

INPUT_HZ = 25e6


class Clocks(LiteXModule):
    """25 MHz → the system's clock, the same a quarter later for the SDRAM, the core's."""

    def __init__(self, platform: Any, clock_hz: float, core_hz: float) -> None:
        self.rst = Signal()
        self.cd_sys = ClockDomain("sys")
        self.cd_sys_ps = ClockDomain("sys_ps")
        clock, reset = platform.request("clk25"), platform.request("rst")
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(reset | self.rst)
        pll.register_clkin(clock, INPUT_HZ)
        pll.create_clkout(self.cd_sys, clock_hz)
        pll.create_clkout(self.cd_sys_ps, clock_hz, phase=90)
        if core_hz != clock_hz:
            self.cd_core = ClockDomain(CORE_DOMAIN)
            pll.create_clkout(self.cd_core, core_hz)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("sys_ps"))
        self.comb += platform.request("wifi_gpio0").eq(1)  # keeps the radio module from resetting the FPGA


CONFIG = replace(
    Config.preset("edge"), name="ulx3s", bus_bytes=8, lanes=2, ports=1, address_bits=32, serial=(True,) * 4,
    contexts=(), dealt_bundles=0, register_beats=64, store_beats=128, vector_beats=64, reorder_beats=64,
    lookahead_lines=8, lookahead_burst=4, port_requests=4, port_outstanding=4, banks=4, page_bytes=1024, write_burst=8,
    write_batch=488,
)  # fmt: skip
"""Two lanes and one port, and all that ``edge`` can do but for bags in turn. A line takes the memory four cycles, so
serial levels hold up no row of three lines or more.
"""

BOARD = Board(
    name="ulx3s",
    title="Radiona ULX3S, LFE5U-85F with SDRAM",
    config=CONFIG,
    clock_hz=50e6,
    core_hz=50e6,
    baud=1_000_000,
    platform=lambda: radiona_ulx3s.Platform(device="LFE5U-85F", revision="2.0", toolchain="trellis"),
    clocks=Clocks,
    memory=Dram(
        module=MT48LC16M16, rate="1:1", data_bits=16,
        phy=lambda platform, clocks, clock_hz: GENSDRPHY(platform.request("sdram"), clock_hz),
    ),
    flow="ecp5",
    part=("--85k", "--package", "CABGA381", "--speed", "6"),
    placer=("--placer-heap-timingweight", "30"),  # with ecpix5's the router does not get near an end
    litedram_patches=(REFRESH, COMMAND_CHOICE, BANK_MACHINES, CROSSBAR),  # docs/decisions/004
    seed=3,
)  # fmt: skip
