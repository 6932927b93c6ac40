"""The system of a board with models in place of its pins: clocks, SDRAM and serial line."""

from typing import Any

from litedram.phy.model import SDRAMPHYModel, get_sdram_phy_settings
from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.build.sim import common
from litex.gen import LiteXModule
from migen import ClockDomain, ClockSignal, If, Signal

from daedal.fpga.soc.soc import CORE_DOMAIN

BYTES, PINS = "bytes", "pins"
"""Serial line of a simulated board: a stream of bytes each way, or the two wires."""

FEWEST_ROWS = 1 << 11
"""LiteDRAM needs bit 10 of an address, which says that all banks are meant."""


class SimulatedPlatform(GenericPlatform):
    """Ports of the simulated system.

    ``sys_clk``, ``sys_rst``, and for the host either the wires ``serial_tx``, ``serial_rx`` or two streams of bytes:
    ``serial_source_*`` comes out of the board, ``serial_sink_*`` goes into it, each ``valid``, ``ready``, ``data``.
    """

    def __init__(self, serial: str) -> None:
        names = {"source_valid": 1, "source_ready": 1, "source_data": 8, "sink_valid": 1, "sink_ready": 1,
                 "sink_data": 8} if serial == BYTES else {"tx": 1, "rx": 1}  # fmt: skip
        ports = [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)),
                 ("serial", 0, *(Subsignal(name, Pins(width)) for name, width in names.items()))]  # fmt: skip
        super().__init__("simulated", ports, name="simulated")
        self.output_dir = None

    def get_verilog(self, *args: Any, **kwargs: Any) -> Any:
        """The system's Verilog, with models of what a vendor's primitives do."""
        return super().get_verilog(*args, special_overrides=dict(common.sim_special_overrides), **kwargs)


class SimulatedClocks(LiteXModule):
    """Clock domains from ``sys_clk``; the core's clock is a division of it if it is slower.

    Parameters
    ----------
    platform
        The SimulatedPlatform.
    clock_hz, core_hz
        What the real board's clocks are. The core's is simulated as the nearest whole division of the system's.
    """

    def __init__(self, platform: Any, clock_hz: float, core_hz: float) -> None:
        self.rst = Signal()
        self.cd_sys = ClockDomain()
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]
        self.division = max(1, round(clock_hz / core_hz))
        if core_hz == clock_hz:
            return
        self.cd_core = ClockDomain(CORE_DOMAIN)
        if self.division == 1:
            self.comb += [self.cd_core.clk.eq(ClockSignal("sys")), self.cd_core.rst.eq(self.cd_sys.rst)]
            return
        self.clock_domains.cd_divider = ClockDomain("divider", reset_less=True)
        self.comb += self.cd_divider.clk.eq(ClockSignal("sys"))
        count = Signal(max=self.division)
        self.sync.divider += [
            If(count == self.division - 1, count.eq(0)).Else(count.eq(count + 1)),
            self.cd_core.clk.eq(count < self.division // 2),
            self.cd_core.rst.eq(self.cd_sys.rst),
        ]


def simulated_memory(module: Any, clock_hz: float, data_bits: int, memory_bytes: int) -> tuple[Any, Any]:
    """LiteDRAM's model of the SDRAM and its PHY in one, and the module it is of: ``(phy, module)``.

    Banks and pages are those of ``module``; of its rows only as many are kept as ``memory_bytes`` need, at most all
    and at least ``FEWEST_ROWS``.
    The model works at the DFI interface, with the phases that it has for this kind of memory.
    """
    rows = memory_bytes * 8 // (module.nbanks * module.ncols * data_bits)
    kept = type(module.__name__, (module,), {"nrows": min(max(rows, FEWEST_ROWS), module.nrows)})
    memtype = module.memtype
    chip = kept(clock_hz, {"SDR": "1:1", "DDR3": "1:4"}[memtype])
    settings = get_sdram_phy_settings(memtype, data_bits, clock_hz)
    return SDRAMPHYModel(chip, settings=settings, clk_freq=clock_hz), chip
