"""The scalar registers."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.isa.elements import LANE

AT_ONCE = ("a", "b", "index")
"""Read ports whose data are there in the cycle of their address."""

LATE = ("c", "store")
"""Read ports whose data come a cycle later, and are then the newest."""


class ScalarFile(wiring.Component):
    """``scalars`` registers of 32 bits in distributed RAM, with the timing of the vector registers' ports.

    Members
    -------
    a_address, b_address, index_address; a_data, b_data, index_data : ``Out(32)``
        Combinational ports; what is written in this cycle is not there yet.
    c_address, store_address; c_data, store_data : ``Out(32)``
        Data come one cycle after their address, with all that was written before.
    write : ``In(1)``; write_address; write_data : ``In(32)``
        What to write in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        number = range(config.scalars)
        super().__init__(
            {
                **{f"{port}_address": In(number) for port in AT_ONCE + LATE},
                **{f"{port}_data": Out(LANE.bits) for port in AT_ONCE + LATE},
                "write": In(1),
                "write_address": In(number),
                "write_data": In(LANE.bits),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.registers = registers = memory.Memory(shape=LANE.bits, depth=self.config.scalars, init=[])
        write = registers.write_port()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
        ]
        for port in AT_ONCE + LATE:
            read, address = registers.read_port(domain="comb"), getattr(self, f"{port}_address")
            late: Signal = register(m, address, f"{port}_late") if port in LATE else address
            m.d.comb += [read.addr.eq(late), getattr(self, f"{port}_data").eq(read.data)]
        return m
