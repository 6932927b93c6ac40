"""The core as a LiteX module: its memory ports, its registers and its interrupt as LiteX's own interfaces."""

from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.interconnect import axi
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal
from migen.genlib.cdc import MultiReg

from daedal.hw.config.core import Config
from daedal.hw.core_ports import Port, core_ports
from daedal.hw.isa.registers import REGISTER_ADDRESS_BITS
from daedal.hw.verilog import TOP, core_verilog

REGISTER_BYTES = 1 << REGISTER_ADDRESS_BITS
"""Bytes of the register file on a SoC's bus."""


class DaedalCore(LiteXModule):
    """A core in a LiteX design.

    The Verilog of the module that this instantiates is not part of the design's own: :meth:`add_source` writes it.

    Parameters
    ----------
    config
        The core's configuration.
    clock_domain
        The domain that it runs in; all members but ``interrupt`` and ``ev`` are of this domain.

    Members
    -------
    reads
        ``config.ports`` AXI4 interfaces, of which the core drives AR and takes R.
    write
        An AXI4 interface, of which the core drives AW and W and takes B.
    control
        An AXI4-Lite interface that the host drives: the registers.
    interrupt
        High while a launch has ended and INTERRUPT is not cleared, if enabled; in domain ``sys``.
    ev
        Its event manager, for a SoC with interrupts: ``soc.irq.add("daedal")``.
    """

    def __init__(self, config: Config, clock_domain: str = "sys") -> None:
        self.config, self.clock_domain = config, clock_domain
        bus = {"data_width": 8 * config.bus_bytes, "address_width": config.address_bits, "id_width": 1,
               "clock_domain": clock_domain}  # fmt: skip
        self.reads = [axi.AXIInterface(**bus) for _ in range(config.ports)]
        self.write = axi.AXIInterface(**bus)
        self.control = axi.AXILiteInterface(
            data_width=32, address_width=REGISTER_ADDRESS_BITS, clock_domain=clock_domain
        )
        self.interrupt = Signal()
        self.ev = EventManager()
        self.ev.ended = EventSourceLevel(description="A launch has ended.")
        self.ev.finalize()
        raised = Signal()
        self.specials += MultiReg(raised, self.interrupt)
        self.comb += self.ev.ended.trigger.eq(self.interrupt)
        self.specials += Instance(TOP, **self._connections(raised))

    def add_source(self, platform: Any, folder: Path) -> Path:
        """Write the core's Verilog into ``folder`` and make it one of the platform's sources."""
        path = folder / f"{TOP}.v"
        path.write_text(core_verilog(self.config), encoding="utf-8")
        platform.add_source(str(path))
        return path

    def _connections(self, interrupt: Signal) -> dict[str, object]:
        """The arguments of the instance, for every port that the core has."""
        groups = {f"read{k}": read for k, read in enumerate(self.reads)}
        groups |= {"write": self.write, "control": self.control}
        signals = {
            "clk": ClockSignal(self.clock_domain),
            "rst": ResetSignal(self.clock_domain),
            "interrupt": interrupt,
        }
        found = {}
        for port in core_ports(self.config):
            signal = signals[port.name] if port.name in signals else _channel_signal(groups[port.group], port)
            found[f"{port.direction[0]}_{port.name}"] = signal
        return found


def _channel_signal(interface: object, port: Port) -> Signal:
    """The signal of a LiteX interface for a port such as ``read0__araddr``."""
    name = port.name.removeprefix(f"{port.group}__")
    channel = next(each for each in ("aw", "ar", "w", "b", "r") if name.startswith(each))
    return getattr(getattr(interface, channel), name.removeprefix(channel))
