"""Activations that wait for the iterator."""

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from daedal.hw.lib.ram_style import DISTRIBUTED_RAM
from daedal.hw.queues.ring_pointers import RingPointers
from daedal.hw.queues.up_down_counter import up_down


class ActivationFifo(wiring.Component):
    """A queue without a register at its output: whoever takes has one, so that ``o.ready`` reaches pointers only.

    What is written can be read in the next cycle.

    Members
    -------
    write, payload : ``In(1)``, ``In(shape)``
        To be kept. The writer makes sure that there is room.
    o : ``Out(stream.Signature(shape))``
        The same, in the same order.
    level : ``Out(range(depth + 1))``
        How many there are.
    """

    def __init__(self, shape: StructLayout, depth: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "payload": In(shape),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )
        self._width, self._depth = shape.size, depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=self._width, depth=self._depth, init=[], attrs=DISTRIBUTED_RAM
        )
        m.submodules.pointers = pointers = RingPointers(self._depth)
        write, read, taken = store.write_port(), store.read_port(domain="comb"), self.o.valid & self.o.ready
        m.d.comb += [
            pointers.write.eq(self.write),
            pointers.fetch.eq(taken),
            write.en.eq(self.write),
            write.addr.eq(pointers.write_address),
            write.data.eq(Value.cast(self.payload)),
            read.addr.eq(pointers.read_address),
            self.o.valid.eq(pointers.available),
            Value.cast(self.o.payload).eq(read.data),
        ]
        up_down(m, self.level, up=self.write, down=taken)
        return m
