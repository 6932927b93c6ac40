"""A tile: a core with its launch control, and memory of its own outside."""

from amaranth import Module
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.control.launch_control import LaunchControl
from daedal.hw.core import Core
from daedal.hw.memory.axi import Described, LiteSlave, ReadMaster, WriteMaster


class TilePorts(Described):
    """The ports of a tile; a host with AXI4 memory needs nothing else."""

    def __init__(self, config: Config) -> None:
        reads = {
            f"read{k}": (Out(ReadMaster(config)), f"AXI4 read master {k} of {config.ports}")
            for k in range(config.ports)
        }
        super().__init__(
            {
                "control": (Out(LiteSlave()), "AXI4-Lite slave with the registers"),
                **reads,
                "write": (Out(WriteMaster(config)), "AXI4 write master"),
                "interrupt": (Out(1), "high while a launch has ended and INTERRUPT is not cleared, if enabled"),
            }
        )


class Tile(wiring.Component):
    """A whole Daedal machine; its members are those of :class:`TilePorts`.

    Tiles share nothing: each has its registers, its queue of launches, its faults and its memory.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(TilePorts(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.control = control = LaunchControl(self._config)
        m.submodules.core = core = Core(self._config)
        connect(m, flipped(self.control), control.bus)
        connect(m, control.core, core.control)
        for k in range(self._config.ports):
            connect(m, getattr(core, f"read{k}"), flipped(getattr(self, f"read{k}")))
        connect(m, core.write, flipped(self.write))
        m.d.comb += self.interrupt.eq(control.interrupt)
        return m
