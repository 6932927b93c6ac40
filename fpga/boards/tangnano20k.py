"""Sipeed Tang Nano 20K: Gowin GW2AR-18 with 8 MiB of SDRAM on 32 bits in its package, USB with serial line and JTAG."""

from types import SimpleNamespace
from typing import Any

from litedram.modules import M12L64322A
from litedram.phy import GENSDRPHY
from litex.build.io import DDROutput
from litex.gen import LiteXModule
from litex_boards.platforms import sipeed_tang_nano_20k
from migen import ClockDomain, ClockSignal, If, Signal
from migen.genlib.resetsync import AsyncResetSynchronizer

from daedal.fpga.boards.board import Board, Dram
from daedal.hw.config.core import Config

INPUT_HZ = 27e6
POWER_UP_CYCLES = 1 << 16

PADS = {
    "clk": "O_sdram_clk", "cke": "O_sdram_cke", "cs_n": "O_sdram_cs_n", "cas_n": "O_sdram_cas_n",
    "ras_n": "O_sdram_ras_n", "we_n": "O_sdram_wen_n", "dm": "O_sdram_dqm", "a": "O_sdram_addr", "ba": "O_sdram_ba",
    "dq": "IO_sdram_dq",
}  # fmt: skip
"""Signal of the SDRAM -> what it must be called, so that the tools join it to the memory in the package."""


class Clocks(LiteXModule):
    """The board's 27 MHz for everything."""

    def __init__(self, platform: Any, clock_hz: float, core_hz: float) -> None:
        self.rst = Signal()
        self.cd_sys = ClockDomain("sys")
        self.cd_por = ClockDomain("por", reset_less=True)
        clock = platform.request("clk27")
        count = Signal(max=POWER_UP_CYCLES, reset=POWER_UP_CYCLES - 1)
        self.comb += [self.cd_por.clk.eq(clock), self.cd_sys.clk.eq(clock)]
        self.sync.por += If(count != 0, count.eq(count - 1))
        self.specials += AsyncResetSynchronizer(self.cd_sys, (count != 0) | self.rst)


def make_phy(platform: Any, clocks: Any, clock_hz: float) -> Any:
    """LiteDRAM's SDRAM PHY; the memory's clock is the system's, inverted."""
    pads = SimpleNamespace(**{name: platform.request(port) for name, port in PADS.items()})
    clocks.specials += DDROutput(0, 1, pads.clk, ClockSignal("sys"))
    return GENSDRPHY(pads, clock_hz)


BOARD = Board(
    name="tangnano20k",
    title="Sipeed Tang Nano 20K, GW2AR-18 with SDRAM",
    config=Config(
        name="tangnano20k", bus_bytes=8, lanes=1, ports=1, levels=1, address_bits=32, registers=4,
        sequential_loads=(1,), random_loads=(1,), alus=(2,), shifters=(False,), serial=(True,),
        arguments=16, steps=2, callbacks=0, instructions=0, lengths=0, vector_registers=2, register_beats=4,
        vector_beats=32, reorder_beats=32, token_depth=2, scalar_depth=2, store_address_depth=8, store_beats=8,
        lookahead_lines=4, lookahead_burst=2, random_outstanding=2, port_requests=2, port_outstanding=2, banks=4,
        page_bytes=1024, write_burst=8, write_batch=488,
    ),
    clock_hz=INPUT_HZ,
    core_hz=INPUT_HZ,
    baud=1_000_000,
    platform=lambda: sipeed_tang_nano_20k.Platform(toolchain="apicula"),
    clocks=Clocks,
    memory=Dram(module=M12L64322A, rate="1:1", data_bits=32, phy=make_phy),
    flow="gowin",
    small=True,
    part=("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C"),
)  # fmt: skip
