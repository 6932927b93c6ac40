"""Several tiles as one module: a memory channel for each, one register window, one interrupt.

Tiles share nothing but these. The Verilog of a tile's core is the same as alone, and there once.
"""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, ClockSignal, Elaboratable, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.control.system_registers import SystemRegisters, system_address_bits
from daedal.hw.isa.registers import MOST_SYSTEM_TILES
from daedal.hw.memory.axi import MASTERS, Described, JoinedMaster, LiteSlave
from daedal.hw.memory.port_joiner import PortJoiner
from daedal.hw.tile import TilePorts

CORE, TILE, SYSTEM = "daedal_core", "daedal_tile", "daedal_system"
"""Names of the modules: a core, a core with one master, several of either."""


def check_axi(axi: str) -> str:
    """``axi``, or ValueError."""
    if axi not in MASTERS:
        raise ValueError(f"axi must be one of {', '.join(MASTERS)}, not {axi!r}")
    return axi


def tile_ports(config: Config, axi: str) -> Described:
    """The ports of a tile whose memory is reached so."""
    ports = TilePorts(config)
    if check_axi(axi) == "ports":
        return ports
    master = JoinedMaster(config, is_axi3=axi == "single-axi3")
    kind = "AXI3" if axi == "single-axi3" else "AXI4"
    memory = {"memory": (Out(master), f"{kind} master, which reads with an identifier for each port of the core")}
    kept = {name: (ports.members[name], ports.meanings[name]) for name in ("control", "interrupt")}
    return Described({"control": kept["control"], **memory, "interrupt": kept["interrupt"]})


class SystemPorts(Described):
    """The ports of a system: its register window, the memory of each tile, and an interrupt."""

    def __init__(self, config: Config, tiles: int, axi: str) -> None:
        if not 1 <= tiles <= MOST_SYSTEM_TILES:
            raise ValueError(f"tiles must be from 1 to {MOST_SYSTEM_TILES}, not {tiles!r}")
        tile = tile_ports(config, axi)
        memory = {
            f"tile{n}_{name}": (member, f"tile {n}: {tile.meanings[name]}")
            for n in range(tiles)
            for name, member in tile.members.items()
            if name not in ("control", "interrupt")
        }
        super().__init__(
            {
                "control": (
                    Out(LiteSlave(system_address_bits(tiles))),
                    "AXI4-Lite slave: a page of registers of the system, then one of each tile",
                ),
                **memory,
                "interrupt": (Out(1), "high while a tile's launch has ended and is not cleared, if enabled there"),
            }
        )


class VerilogModule(wiring.Component):
    """A module that is Verilog already, by its name: the members are its ports."""

    def __init__(self, name: str, ports: wiring.Signature) -> None:
        self._name = name
        super().__init__(ports)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        pins: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            pins[("o_" if member.flow == Out else "i_") + "__".join(map(str, path))] = value
        m.submodules.module = Instance(self._name, **pins)
        return m


class JoinedTile(wiring.Component):
    """A core and what joins its memory ports; its members are those of :func:`tile_ports`."""

    def __init__(self, config: Config, axi: str) -> None:
        self._config, self._is_axi3 = config, axi == "single-axi3"
        super().__init__(tile_ports(config, axi))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.core = core = VerilogModule(CORE, TilePorts(self._config))
        m.submodules.joiner = joiner = PortJoiner(self._config, is_axi3=self._is_axi3)
        connect(m, flipped(self.control), core.control)
        for name in (*(f"read{k}" for k in range(self._config.ports)), "write"):
            connect(m, getattr(core, name), getattr(joiner, name))
        connect(m, joiner.bus, flipped(self.memory))
        m.d.comb += self.interrupt.eq(core.interrupt)
        return m


class System(wiring.Component):
    """Tiles and their register window; its members are those of :class:`SystemPorts`."""

    def __init__(self, config: Config, tiles: int, axi: str) -> None:
        super().__init__(SystemPorts(config, tiles, axi))
        self._config, self._tiles, self._axi = config, tiles, axi

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.registers = registers = SystemRegisters(self._config, self._tiles)
        connect(m, flipped(self.control), registers.bus)
        ports, interrupts = tile_ports(self._config, self._axi), []
        for number in range(self._tiles):
            tile = VerilogModule(CORE if self._axi == "ports" else TILE, ports)
            m.submodules[f"tile{number}"] = tile
            connect(m, getattr(registers, f"tile{number}"), tile.control)
            for name in ports.members:
                if name not in ("control", "interrupt"):
                    connect(m, getattr(tile, name), flipped(getattr(self, f"tile{number}_{name}")))
            interrupts.append(tile.interrupt)
        m.d.comb += [registers.interrupts.eq(Cat(interrupts)), self.interrupt.eq(registers.interrupt)]
        return m


def modules_of(config: Config, tiles: int | None, axi: str) -> Mapping[str, wiring.Component]:
    """What there is beside the core, by name, the top module last: nothing for a core with its ports.

    ``tiles`` None: a tile alone, without a page of the system. ValueError for what there is not.
    """
    found: dict[str, wiring.Component] = {}
    if check_axi(axi) != "ports":
        found[TILE] = JoinedTile(config, axi)
    if tiles is not None:
        found[SYSTEM] = System(config, tiles, axi)
    return found
