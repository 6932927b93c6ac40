"""A system around the core: LiteDRAM, a bridge for the host, the core. No processor."""

from collections.abc import Collection
from typing import Any

from litedram.frontend.wishbone import LiteDRAMWishbone2Native
from litedram.init import get_sdram_phy_init_sequence
from litex.soc.cores import uart
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import axi, wishbone

from daedal.errors import InvalidConfig
from daedal.fpga.litedram_patches import apply
from daedal.fpga.soc.core_module import REGISTER_BYTES, DaedalCore
from daedal.fpga.soc.host_link import LinkGate, SerialLink
from daedal.fpga.soc.memory_ports import MemoryPorts
from daedal.hw.config.core import Config

CORE_DOMAIN = "core"
"""The clock domain of the core, where it is not that of the memory controller."""

MEMORY_ORIGIN, REGISTERS_ORIGIN = 0x4000_0000, 0x8000_0000
"""Where :class:`System` has memory and the core's registers. Hosts read it from the description of the board."""

ETHERBONE: dict[str, Any] = {"address": "192.168.1.50", "port": 1234}
"""Where a board with a network is."""

ETHERBONE_WORDS = 256
"""LiteEth's buffer for a packet: an address and a frame."""


def add_daedal(
    soc: Any, config: Config, *, clock_domain: str = "sys", origin: int | None = None, small: bool = False
) -> DaedalCore:
    """Put a core into a LiteX SoC that has an SDRAM (``soc.add_sdram(…)`` under the name ``sdram``).

    Its registers are the region ``daedal`` of the SoC's bus, at ``origin`` or where LiteX puts them. Its memory ports
    go to ports of LiteDRAM's crossbar: addresses that the core sees are those inside of the SDRAM, from 0 up.
    ``l2_cache_size`` of ``add_sdram`` must be 0, since the core does not look into that cache. The caller adds the
    core's source: ``core.add_source(platform, folder)``. ``small`` is that of ``MemoryPorts``.

    Raises InvalidConfig if pages and banks of ``config`` are not those of the SDRAM.
    """
    check_mapping(config, soc.sdram.controller)
    return _add_core(
        soc, config, soc.sdram.crossbar, memory_bytes=sdram_bytes(soc.sdram.controller), clock_domain=clock_domain,
        origin=origin, small=small,
    )  # fmt: skip


def _add_core(
    soc: Any, config: Config, crossbar: Any, *, memory_bytes: int, clock_domain: str, origin: int | None, small: bool
) -> DaedalCore:
    soc.daedal = core = DaedalCore(config, clock_domain)
    registers = axi.AXILiteInterface(data_width=32, address_width=32)
    soc.bus.add_slave("daedal", registers, SoCRegion(origin=origin, size=REGISTER_BYTES, cached=False))
    soc.daedal_registers = axi.AXILiteClockDomainCrossing(registers, core.control, "sys", clock_domain)
    soc.daedal_memory = MemoryPorts(core, crossbar, memory_bytes=memory_bytes, small=small)
    if soc.irq.enabled:
        soc.irq.add("daedal")
    return core


def sdram_bytes(controller: Any) -> int:
    """The size of the memory behind a LiteDRAM controller, bytes."""
    geometry, phy = controller.settings.geom, controller.settings.phy
    bits = geometry.bankbits + geometry.rowbits + geometry.colbits
    return (1 << bits) * phy.nranks * phy.databits // 8


def check_mapping(config: Config, controller: Any) -> None:
    """That the core's banks and pages (``hw/isa/address_mapping.py``) are those of the DRAM: its ports meet no other's.

    LiteDRAM's order of address bits is row, bank, column; the core has its bank above the bytes of a page.
    """
    settings = controller.settings
    if settings.address_mapping != "ROW_BANK_COL":
        raise InvalidConfig(f"address_mapping of LiteDRAM must be ROW_BANK_COL, not {settings.address_mapping!r}")
    wanted = {
        "page_bytes": (1 << settings.geom.colbits) * settings.phy.databits // 8,
        "banks": 1 << settings.geom.bankbits,
    }
    if 8 * config.bus_bytes < controller.interface.data_width:
        raise InvalidConfig(
            f"bus_bytes of configuration {config.name} must be at least {controller.interface.data_width // 8}, "
            f"which the board's memory moves at a time, not {config.bus_bytes}"
        )
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise InvalidConfig(
                f"{name} of configuration {config.name} must be {value}, as the board's memory has, "
                f"not {getattr(config, name)}"
            )


BUS_TIMEOUT = 4096
"""Cycles after which an access that nothing answers is over: a garbled command must not hold up the bridge for long."""


class System(SoCMini):
    """The SoC of a board: a serial bridge as the only master, memory, the core.

    Parameters
    ----------
    platform
        LiteX's platform; its ``serial`` is the host's.
    clocks
        The module that makes the clock domains.
    phy, module
        LiteDRAM's PHY and SDRAM module; or None and an OnChipMemory.
    config
        The core's configuration.
    clock_hz, core_hz
        Clock of bus and memory controller, and that of the core; one domain if they are equal.
    baud
        Bits per second of the serial line.
    design
        The number by which the host knows this design, 32 bits.
    small
        That of ``Board``.
    patches
        ``Board.litedram_patches``.
    """

    def __init__(
        self, platform: Any, clocks: Any, *, phy: Any, module: Any, config: Config, clock_hz: float, core_hz: float,
        baud: int, design: int, small: bool = False, patches: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.crg = clocks
        super().__init__(
            platform, int(clock_hz), ident="", ident_version=False, with_ctrl=True, bus_timeout=BUS_TIMEOUT
        )
        self.core_hz, self.baud, self._design = core_hz, baud, design
        self._add_bridge(design)
        place: dict[str, Any] = {
            "clock_domain": "sys" if core_hz == clock_hz else CORE_DOMAIN,
            "origin": REGISTERS_ORIGIN,
            "small": small,
        }
        if phy is None:
            self._add_on_chip(module)
            memory_bytes = module.lines * module.width // 8
            _add_core(self, config, module, memory_bytes=memory_bytes, **place)
        else:
            self.ddrphy = phy
            apply.check(patches)
            near = apply.phy_of(phy, patches)
            if near is not phy:
                self.late_phy = near
            settings = apply.settings_of(patches)
            self.add_sdram("sdram", phy=near, module=module, l2_cache_size=0, controller_settings=settings)
            locks = apply.change_controller(self.sdram.controller, patches)
            add_daedal(self, config, **place)
            apply.change_crossbar(self.sdram.crossbar, locks, self.daedal_memory.own, patches)
        self.comb += self.link.interrupt.eq(self.daedal.interrupt)

    def add_network(self, phy: Any) -> None:
        """A second bridge: Etherbone, over the network, at :data:`ETHERBONE`, behind a gate of its own."""
        self.ethphy = phy
        self.add_etherbone(
            phy=phy, ip_address=ETHERBONE["address"], udp_port=ETHERBONE["port"], buffer_depth=ETHERBONE_WORDS
        )
        self.network_link = gate = LinkGate(design=self._design)
        self.bus.masters["etherbone"] = gate.bus
        self.comb += [self.etherbone.wishbone.bus.connect(gate.bridge), gate.interrupt.eq(self.daedal.interrupt)]

    def _add_on_chip(self, memory: Any) -> None:
        """The region ``main_ram``, as ``add_sdram`` makes it; its port is the first, so the bus never waits long."""
        self.main_ram = memory
        narrow = wishbone.Interface(data_width=self.bus.data_width, address_width=32, addressing="word")
        wide = wishbone.Interface(data_width=memory.width, address_width=32, addressing="word")
        region = SoCRegion(origin=MEMORY_ORIGIN, size=memory.lines * memory.width // 8, mode="rwx")
        self.bus.add_slave("main_ram", narrow, region)
        self.main_ram_width = wishbone.Converter(narrow, wide)
        self.main_ram_bridge = LiteDRAMWishbone2Native(wide, memory.get_port(), base_address=MEMORY_ORIGIN)

    def _add_bridge(self, design: int) -> None:
        """LiteX's serial bridge behind its gate; on a simulated board its line may be a stream of bytes."""
        pads = self.platform.request("serial")
        if hasattr(pads, "source_valid"):
            self.uartbone_phy = uart.RS232PHYModel(pads)
        else:
            self.uartbone_phy = uart.RS232PHY(pads, self.sys_clk_freq, self.baud)
        self.link = SerialLink(self.uartbone_phy, self.sys_clk_freq, design=design)
        self.bus.add_master("link", self.link.bus)


def sdram_description(controller: Any) -> dict[str, Any]:
    """What a host needs to start the memory: LiteDRAM's PHY settings and its sequence of commands."""
    settings = controller.settings
    sequence, _ = get_sdram_phy_init_sequence(settings.phy, settings.timing)
    phy = {name: value for name, value in vars(settings.phy).items() if isinstance(value, bool | int | str | None)}
    return {
        "phy": phy,
        "geometry": {name: getattr(settings.geom, name) for name in ("bankbits", "rowbits", "colbits")},
        "sequence": [
            {"comment": comment, "address": address, "bank": bank, "command": command, "wait": wait}
            for comment, address, bank, command, wait in sequence
        ],
    }
