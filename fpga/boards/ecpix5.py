"""LambdaConcept ECPIX-5: LFE5UM5G-85F, 512 MiB of DDR3 on 16 bits, USB with serial line and JTAG."""

from dataclasses import replace
from typing import Any

from litedram.modules import MT41K256M16
from litedram.phy import ECP5DDRPHY
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex_boards.platforms import lambdaconcept_ecpix5
from migen import ClockDomain, If, Instance, Signal
from migen.genlib.resetsync import AsyncResetSynchronizer

from daedal.fpga.boards.board import Board, Dram
from daedal.fpga.flow.flows import PLACER
from daedal.fpga.litedram_patches.apply import NEEDS, REFRESH
from daedal.fpga.soc.soc import CORE_DOMAIN
from daedal.hw.config.core import Config

INPUT_HZ = 100e6
POWER_UP_CYCLES = 1 << 16


class Clocks(LiteXModule):
    """100 MHz → DDR3's clock (twice the system's, can be stopped), the system's, the core's, one for the PHY's start.

    The PHY's start-up stops the fast clock with ``stop`` and restarts its divider with ``reset``.
    """

    def __init__(self, platform: Any, clock_hz: float, core_hz: float) -> None:
        self.rst, self.stop, self.reset = Signal(), Signal(), Signal()
        for name in ("init", "por", "sys", "sys2x", "sys2x_i"):
            setattr(self, f"cd_{name}", ClockDomain(name))
        clock, reset_n = platform.request("clk100"), platform.request("rst_n")
        count = Signal(max=POWER_UP_CYCLES, reset=POWER_UP_CYCLES - 1)
        self.comb += self.cd_por.clk.eq(clock)
        self.sync.por += If(count != 0, count.eq(count - 1))
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq((count != 0) | ~reset_n | self.rst)
        pll.register_clkin(clock, INPUT_HZ)
        pll.create_clkout(self.cd_sys2x_i, 2 * clock_hz)
        pll.create_clkout(self.cd_init, 25e6)
        if core_hz != clock_hz:
            self.cd_core = ClockDomain(CORE_DOMAIN)
            pll.create_clkout(self.cd_core, core_hz)
        self.specials += [
            Instance("ECLKSYNCB", i_ECLKI=self.cd_sys2x_i.clk, i_STOP=self.stop, o_ECLKO=self.cd_sys2x.clk),
            Instance(
                "CLKDIVF", p_DIV="2.0", i_ALIGNWD=0, i_CLKI=self.cd_sys2x.clk, i_RST=self.reset,
                o_CDIVX=self.cd_sys.clk,
            ),
            AsyncResetSynchronizer(self.cd_sys, ~pll.locked | self.reset),
        ]  # fmt: skip


def make_phy(platform: Any, clocks: Any, clock_hz: float) -> Any:
    """LiteDRAM's DDR3 PHY, joined to the clocks that it starts."""
    phy = ECP5DDRPHY(platform.request("ddram"), sys_clk_freq=clock_hz)
    clocks.comb += [clocks.stop.eq(phy.init.stop), clocks.reset.eq(phy.init.reset)]
    return phy


CONFIG = replace(
    Config.preset("minimum"), name="ecpix5", bus_bytes=16, lanes=4, ports=4, registers=3, sequential_loads=(2, 2),
    random_loads=(0, 0), alus=(0, 0), serial=(False, False), register_beats=32, store_beats=64, vector_registers=4,
    vector_beats=128, reorder_beats=128, token_depth=64, store_address_depth=16, lookahead_lines=16,
    lookahead_burst=4, port_requests=8, port_outstanding=8, write_burst=8, write_batch=248, banks=8, page_bytes=2048,
)  # fmt: skip
"""Four lanes and four ports, two levels without arithmetic: gathers, sums, means, maxima, weighted sums."""

BOARD = Board(
    name="ecpix5",
    title="LambdaConcept ECPIX-5, LFE5UM5G-85F with DDR3",
    config=CONFIG,
    clock_hz=75e6,
    core_hz=75e6,
    baud=3_000_000,
    platform=lambda: lambdaconcept_ecpix5.Platform(device="85F", toolchain="trellis"),
    clocks=Clocks,
    memory=Dram(module=MT41K256M16, rate="1:2", data_bits=16, phy=make_phy),
    flow="ecp5",
    part=("--um5g-85k", "--package", "CABGA554", "--speed", "8"),
    placer=PLACER,
    litedram_patches=(REFRESH,),
    seed=3,
    grades={
        6: {  # LFE5U; the LFE5UM5G is made in grade 8 only
            "part": ("--85k", "--package", "CABGA554", "--speed", "6"),
            "litedram_patches": tuple(NEEDS),
            "free_rows": 5,
        }
    },
    ethernet=lambda platform: LiteEthPHYRGMII(platform.request("eth_clocks"), platform.request("eth"), rx_delay=0),
)
