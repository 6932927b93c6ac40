"""The Verilog of controller, crossbar and SDRAM model, made with LiteDRAM's own classes.

Nothing of LiteDRAM is changed but where the SDRAM model keeps its rows: the arrays of its banks are taken out and their
ports joined into one for reading and one for writing, so that the host can lay hands on the rows, and only those that
are used exist.
"""

import re
from collections.abc import Mapping
from typing import Any

import litedram.modules
from litedram.common import burst_lengths
from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litedram.phy.model import SDRAMPHYModel, get_sdram_phy_settings
from migen import If, Memory, Module, Signal, log2_int
from migen.fhdl import verilog

from daedal.cosim.litedram.memories import Dram

ROW_BITS = 16
"""Bits of a row's number: DRAMs have 13 to 17. More rows than a chip has cost nothing and change no timing."""

RATE = "1:4"
"""Clocks of controller and DRAM; a DRAM burst of 8 is then one word per cycle."""

CHECKS_ON = 1
"""Verbosity at which LiteDRAM's model reports violations of timing, and nothing else."""

TIMINGS = ("tRP", "tRCD", "tRAS", "tRC", "tWR", "tWTR", "tRRD", "tFAW", "tCCD", "tRFC", "tREFI", "tZQCS")
"""What LiteDRAM's timing settings are called."""

CONTROLLER = ("cmd_buffer_depth", "cmd_buffer_buffered", "read_time", "write_time", "refresh_cls", "refresh_postponing",
              "refresh_zqcs_freq", "with_refresh", "with_auto_precharge", "address_mapping")  # fmt: skip
"""The controller's settings."""

PHY = ("nphases", "rdphase", "wrphase", "cl", "cwl", "read_latency", "write_latency")
"""The PHY model's settings."""


class Top(Module):
    """Controller, crossbar and SDRAM model; ports are as ``Description`` in ``text.py`` has them.

    ``wrong`` replaces timings of the controller alone, in cycles, so that the model's checks have something to find.
    """

    def __init__(self, dram: Dram, ports: int, *, checks: bool, wrong: Mapping[str, int]) -> None:
        self.ios: set[Signal] = set()
        chip = getattr(litedram.modules, dram.module)
        module = type(dram.module, (chip,), {"nrows": 1 << ROW_BITS})(dram.clock, RATE)
        self.phy_settings = get_sdram_phy_settings(module.memtype, dram.data_bits, dram.clock)
        self.geometry, self.timing = module.geom_settings, module.timing_settings
        self.controller_settings = ControllerSettings()
        self.submodules.phy = phy = SDRAMPHYModel(
            module, settings=self.phy_settings, clk_freq=dram.clock, verbosity=CHECKS_ON if checks else 0
        )
        for name, cycles in wrong.items():
            setattr(self.timing, name, cycles)
        self.submodules.controller = controller = LiteDRAMController(
            self.phy_settings, self.geometry, self.timing, dram.clock, self.controller_settings
        )
        self.comb += controller.dfi.connect(phy.dfi)
        self.submodules.crossbar = crossbar = LiteDRAMCrossbar(controller.interface)
        self._join_users([crossbar.get_port() for _ in range(ports)])
        self._join_rows(_banks(phy))
        self._count_refreshes(controller.dfi.phases)

    def facts(self) -> dict[str, Any]:
        """The fields of ``Description`` that LiteDRAM decides."""
        word_bits = log2_int(burst_lengths[self.phy_settings.memtype])
        return {
            "memtype": self.phy_settings.memtype,
            "column_bits": self.geometry.colbits - word_bits,
            "bank_bits": self.geometry.bankbits,
            "row_bits": self.geometry.rowbits,
            "timing": {name: getattr(self.timing, name) for name in TIMINGS},
            "controller": {name: _plain(getattr(self.controller_settings, name)) for name in CONTROLLER},
            "phy": {name: getattr(self.phy_settings, name) for name in PHY},
        }

    def _port(self, name: str, signal: Signal) -> Signal:
        signal.name_override = name
        self.ios.add(signal)
        return signal

    def _join_users(self, ports: list[Any]) -> None:
        """The data of all ports go over two buses: in a cycle no more than one moves some in each direction."""
        wdata = self._port("wdata", Signal(ports[0].data_width))
        wdata_we = self._port("wdata_we", Signal(ports[0].data_width // 8))
        rdata = self._port("rdata", Signal(ports[0].data_width))
        self.comb += rdata.eq(ports[0].rdata.data)
        for number, port in enumerate(ports):
            for name, signal in (
                ("cmd_valid", port.cmd.valid),
                ("cmd_ready", port.cmd.ready),
                ("cmd_we", port.cmd.we),
                ("cmd_addr", port.cmd.addr),
                ("wdata_ready", port.wdata.ready),
                ("rdata_valid", port.rdata.valid),
            ):
                self._port(f"p{number}_{name}", signal)
            self.comb += [port.wdata.data.eq(wdata), port.wdata.we.eq(wdata_we)]

    def _join_rows(self, banks: list["_Bank"]) -> None:
        word_bits, address_bits = len(banks[0].read.dat_r), len(banks[0].read.adr)
        bank_bits = (len(banks) - 1).bit_length()
        read = self._port("row_read", Signal())
        read_bank = self._port("row_read_bank", Signal(bank_bits))
        read_word = self._port("row_read_word", Signal(address_bits))
        read_data = self._port("row_read_data", Signal(word_bits))
        write = self._port("row_write", Signal(word_bits // 8))
        write_bank = self._port("row_write_bank", Signal(bank_bits))
        write_word = self._port("row_write_word", Signal(address_bits))
        write_data = self._port("row_write_data", Signal(word_bits))
        self.comb += write_data.eq(banks[0].data)  # all banks see the same
        for number, bank in enumerate(banks):
            self.comb += [
                bank.read.dat_r.eq(read_data),
                If(bank.reads, read.eq(1), read_bank.eq(number), read_word.eq(bank.read.adr)),
                If(bank.write.we != 0, write.eq(bank.write.we), write_bank.eq(number), write_word.eq(bank.write.adr)),
            ]

    def _count_refreshes(self, phases: list[Any]) -> None:
        refresh = self._port("refresh", Signal())
        for phase in phases:
            self.comb += If(~phase.cs_n & ~phase.ras_n & ~phase.cas_n & phase.we_n, refresh.eq(1))


class _Bank:
    """The ports of one bank's array, which is taken out of the SDRAM model."""

    def __init__(self, bank: Any) -> None:
        specials = bank._fragment.specials
        ports = [special for special in specials if not isinstance(special, Memory)]
        assert [len(specials), len(ports)] == [3, 2]
        self.write, self.read = sorted(ports, key=lambda port: port.we is None)
        self.reads, self.data = bank.read, bank.write_data
        specials.clear()


def _banks(phy: Any) -> list[_Bank]:
    return [_Bank(module) for _, module in phy._submodules if hasattr(module, "activate_row")]


def verilog_of(top: Top, name: str) -> str:
    """The Verilog text. What the model's checks would print they hand to the harness's ``daedal_dram_report``."""
    text, checks = re.subn(_DISPLAY, _report, str(verilog.convert(top, top.ios, name=name)))
    assert "$display" not in text
    return text if not checks else _IMPORT + text


_DISPLAY = r'\$display\("\[%016dps\] ([^"]*)", ([^,;]*?)(?:, ([^,;]*))?\);'
"""A violation in LiteDRAM's model: the message has the time first, and another value or none."""

_IMPORT = """\
import "DPI-C" function void daedal_dram_report(input string text, input longint picoseconds, input int value);
"""


def _report(found: re.Match[str]) -> str:
    return f'daedal_dram_report("{found[1]}", {found[2]}, {found[3] or 0});'


def _plain(value: Any) -> Any:
    return value.__name__ if isinstance(value, type) else value
