"""The vector registers."""

from amaranth import Module
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM

PORTS = ("a", "b", "c", "store")
"""Read ports; each has a copy of the registers of its own."""


class RegisterFile(wiring.Component):
    """Vector registers in block RAM: ``vector_registers * register_beats`` beats of all lanes.

    Address: the register number above the beat number. Data come one cycle after their address. The ports c
    and store see a beat that is written in the cycle in which they read it; a and b must not read it then.

    Members
    -------
    a_address, b_address, c_address, store_address
        What to read.
    a_data, b_data, c_data, store_data : ``Out(8 * lane_bytes)``
        The beat at the address of the cycle before.
    write : ``In(1)``; write_address; write_data
        What to write in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        address, width = range(config.vector_registers * config.register_beats), 8 * config.lane_bytes
        super().__init__(
            {
                **{f"{port}_address": In(address) for port in PORTS},
                **{f"{port}_data": Out(width) for port in PORTS},
                "write": In(1),
                "write_address": In(address),
                "write_data": In(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        depth = self.config.vector_registers * self.config.register_beats
        for port in PORTS:
            late = port in ("c", "store")
            attributes = {"ram_style": "block"} if late else BLOCK_RAM
            m.submodules[port] = copy = memory.Memory(
                shape=8 * self.config.lane_bytes, depth=depth, init=[], attrs=attributes
            )
            write = copy.write_port()
            read = copy.read_port(transparent_for=(write,) if late else ())
            m.d.comb += [
                write.en.eq(self.write),
                write.addr.eq(self.write_address),
                write.data.eq(self.write_data),
                read.addr.eq(getattr(self, f"{port}_address")),
                getattr(self, f"{port}_data").eq(read.data),
            ]
        return m
