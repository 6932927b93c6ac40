"""1BitSquared iCEBreaker: iCE40UP5K, 128 KiB of memory inside of it, USB with serial line.

The core is the smallest that ``Config`` allows. It is not known to fit into 5,280 logic cells: making the configuration
file says how much is missing, and which units are the largest.
"""

from typing import Any

from litex.gen import LiteXModule
from litex_boards.platforms import icebreaker
from migen import Cat, ClockDomain, ClockSignal, If, Instance, Replicate, Signal
from migen.genlib.resetsync import AsyncResetSynchronizer

from daedal.fpga.boards.board import Board, OnChip
from daedal.hw.config.core import Config

INPUT_HZ = 12e6
POWER_UP_CYCLES = 1 << 16
SPRAM_BITS, SPRAM_WORDS = 16, 1 << 14
"""Shape of each of the part's four single-port memories."""


class Clocks(LiteXModule):
    """The board's 12 MHz for everything."""

    def __init__(self, platform: Any, clock_hz: float, core_hz: float) -> None:
        self.rst = Signal()
        self.cd_sys = ClockDomain("sys")
        self.cd_por = ClockDomain("por", reset_less=True)
        clock = platform.request("clk12")
        count = Signal(max=POWER_UP_CYCLES, reset=POWER_UP_CYCLES - 1)
        self.comb += [self.cd_por.clk.eq(clock), self.cd_sys.clk.eq(clock)]
        self.sync.por += If(count != 0, count.eq(count - 1))
        self.specials += AsyncResetSynchronizer(self.cd_sys, (count != 0) | self.rst)


class Spram(LiteXModule):
    """All four memories side by side: 16,384 lines of 64 bits."""

    def __init__(self, lines: int, width: int) -> None:
        self.address, self.write = Signal(max=lines), Signal()
        self.data_w, self.data_r, self.mask = Signal(width), Signal(width), Signal(width // 8)
        for first in range(0, width, SPRAM_BITS):
            nibbles = Cat(*(Replicate(self.mask[first // 8 + byte], 2) for byte in range(2)))
            self.specials += Instance(
                "SB_SPRAM256KA", i_CLOCK=ClockSignal(), i_STANDBY=0, i_SLEEP=0, i_POWEROFF=1, i_CHIPSELECT=1,
                i_ADDRESS=self.address, i_DATAIN=self.data_w[first : first + SPRAM_BITS], i_MASKWREN=nibbles,
                i_WREN=self.write, o_DATAOUT=self.data_r[first : first + SPRAM_BITS],
            )  # fmt: skip


BOARD = Board(
    name="icebreaker",
    title="1BitSquared iCEBreaker, iCE40UP5K",
    config=Config(
        name="icebreaker", bus_bytes=8, lanes=1, ports=1, levels=1, address_bits=32, registers=3,
        sequential_loads=(1,), random_loads=(0,), alus=(0,), shifters=(False,), serial=(True,), arguments=16, steps=2,
        callbacks=0, instructions=0, lengths=0, vector_registers=2, register_beats=4, vector_beats=32, reorder_beats=32,
        token_depth=2, scalar_depth=2, store_address_depth=2, store_beats=8, lookahead_lines=2, lookahead_burst=1,
        random_outstanding=2, port_requests=2, port_outstanding=2, banks=1, page_bytes=64, write_burst=1,
        write_batch=40,
    ),
    clock_hz=INPUT_HZ,
    core_hz=INPUT_HZ,
    baud=500_000,
    platform=icebreaker.Platform,
    clocks=Clocks,
    memory=OnChip(ram=Spram, memory_bytes=SPRAM_WORDS * 8),
    flow="ice40",
    part=("--up5k", "--package", "sg48"),
)  # fmt: skip
