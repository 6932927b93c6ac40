"""Wide values some cycles later, in memory instead of registers."""

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.lib.ram_style import DISTRIBUTED_RAM


class Delay(wiring.Component):
    """What was at ``i`` so many cycles ago, at least 3; at first anything.

    Members
    -------
    i : ``In(width)``; o : ``Out(width)``
    """

    def __init__(self, width: int, *, cycles: int) -> None:
        super().__init__({"i": In(width), "o": Out(width)})
        self._width, self._places = width, cycles - 1

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.places = places = memory.Memory(
            shape=self._width, depth=self._places, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read, at = places.write_port(), places.read_port(domain="comb"), Signal(range(self._places))
        m.d.comb += [write.addr.eq(at), write.data.eq(self.i), write.en.eq(1), read.addr.eq(at)]
        m.d.sync += [at.eq(Mux(at == self._places - 1, 0, at + 1)), self.o.eq(read.data)]
        return m


def delayed(m: Module, value: Value, name: str, *, cycles: int) -> Value:
    """``value`` by a ``Delay`` that becomes a submodule called ``name``."""
    m.submodules[name] = delay = Delay(len(value), cycles=cycles)
    m.d.comb += delay.i.eq(value)
    late: Value = delay.o
    return late
