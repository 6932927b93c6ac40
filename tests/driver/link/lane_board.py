"""A board without a core whose DRAM has to be levelled: LiteDRAM behind the link, and a PHY with a delay per lane.

Each lane reads right only at one bit slip and within a window of delays, which the test sets in a register.
"""

import copy
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from daedal.cosim.board import SimulatedLine, build_board

CLOCK_HZ, BAUD = 75e6, 12_500_000
MEMORY_BYTES = 32 << 20
DELAYS, SLIPS = 8, 2

NOISE = 0x6D
"""What a lane that is not set right does to the bits of its byte."""


def window_register(lanes: Sequence[tuple[int, int, int]]) -> int:
    """The value of ``ddrphy_window``: for each lane the bit slip, the first and the last delay that read right."""
    return sum((slip | first << 4 | last << 8) << 16 * lane for lane, (slip, first, last) in enumerate(lanes))


@cache
def lane_board() -> tuple[str, dict[str, Any]]:
    """Verilog and description."""
    from litedram.common import PhySettings
    from litedram.modules import MT41K256M16
    from litedram.phy.dfi import Interface
    from litex.gen import LiteXModule
    from litex.soc.cores.uart import RS232PHY
    from litex.soc.integration.export import get_csr_json
    from litex.soc.integration.soc_core import SoCMini
    from litex.soc.interconnect.csr import CSR, CSRStatus, CSRStorage
    from migen import If, Signal

    from daedal.fpga.soc.generator import _plain, _quiet_litex
    from daedal.fpga.soc.host_link import SerialLink
    from daedal.fpga.soc.simulated_board import PINS, SimulatedClocks, SimulatedPlatform, simulated_memory
    from daedal.fpga.soc.soc import sdram_description

    class LanePhy(LiteXModule):
        """LiteDRAM's model behind lanes with the registers that its ECP5 PHY has."""

        def __init__(self, model: Any) -> None:
            self.model = model
            self.settings: PhySettings = copy.copy(model.settings)
            self.settings.read_leveling, self.settings.delays, self.settings.bitslips = True, DELAYS, SLIPS
            inner = model.dfi.phases
            self.dfi = Interface(len(inner[0].address), len(inner[0].bank), len(inner[0].cs_n), len(inner[0].rddata),
                                 len(inner))  # fmt: skip
            lanes = self.settings.databits // 8
            self._dly_sel = CSRStorage(lanes)
            self._rdly_dq_rst = CSR()
            self._rdly_dq_inc = CSR()
            self._rdly_dq_bitslip_rst = CSR()
            self._rdly_dq_bitslip = CSR()
            self._burstdet_clr = CSR()
            self._burstdet_seen = CSRStatus(lanes, reset=(1 << lanes) - 1)
            self._window = CSRStorage(16 * lanes)
            noise = [Signal(8) for _ in range(lanes)]
            for lane in range(lanes):
                delay, slip, mine = Signal(max=DELAYS), Signal(max=SLIPS), self._dly_sel.storage[lane]
                window = self._window.storage[16 * lane : 16 * lane + 16]
                self.sync += [
                    If(mine & self._rdly_dq_inc.re, delay.eq(delay + 1)),
                    If(mine & self._rdly_dq_rst.re, delay.eq(0)),
                    If(mine & self._rdly_dq_bitslip.re, slip.eq(slip + 1)),
                    If(mine & self._rdly_dq_bitslip_rst.re, slip.eq(0)),
                ]
                wrong = (slip != window[0:4]) | (delay < window[4:8]) | (delay > window[8:12])
                self.comb += If(wrong, noise[lane].eq(NOISE))
            for outer, phase in zip(self.dfi.phases, inner, strict=True):
                self.comb += outer.rddata_valid.eq(inner[0].rddata_valid)  # the model raises only the first
                self.comb += outer.connect(phase, omit={"rddata", "rddata_valid"})
                for byte in range(len(phase.rddata) // 8):
                    here = slice(8 * byte, 8 * byte + 8)
                    self.comb += outer.rddata[here].eq(phase.rddata[here] ^ noise[byte % lanes])

    class Board(SoCMini):
        def __init__(self) -> None:
            platform = SimulatedPlatform(PINS)
            self.crg = SimulatedClocks(platform, CLOCK_HZ, CLOCK_HZ)
            super().__init__(platform, int(CLOCK_HZ), ident="", ident_version=False, with_ctrl=False)
            self.uart = RS232PHY(platform.request("serial"), CLOCK_HZ, BAUD)
            self.link = SerialLink(self.uart, CLOCK_HZ, design=1)
            self.bus.add_master("link", self.link.bus)
            model, module = simulated_memory(MT41K256M16, CLOCK_HZ, 16, MEMORY_BYTES)
            self.ddrphy = LanePhy(model)
            self.add_sdram("sdram", phy=self.ddrphy, module=module, l2_cache_size=0)

    with _quiet_litex():
        soc = Board()
        soc.finalize()
        text = _plain(str(soc.platform.get_verilog(soc, name="lane_board")))
        found = json.loads(get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions))
    ram = found["memories"]["main_ram"]
    description = {
        "clock_hz": CLOCK_HZ, "baud": BAUD, "memory": {"base": ram["base"], "size": ram["size"]},
        "sdram": sdram_description(soc.sdram.controller), "soc": found,
    }  # fmt: skip
    return text, description


def open_line() -> SimulatedLine:
    text, _ = lane_board()
    return SimulatedLine(build_board("lanes", text, top="lane_board"), clock_hz=CLOCK_HZ, baud=BAUD)
