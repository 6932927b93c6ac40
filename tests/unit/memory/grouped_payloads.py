"""A queue around ``RowGroups``."""

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.memory.fabric.row_groups import RowGroups


class GroupedPayloads(wiring.Component):
    """Payloads whose field ``key`` is the key, in a memory with a register behind it."""

    def __init__(self, layout: data.StructLayout, *, key: str, depth: int, keys: int) -> None:
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})
        self._key, self._depth, self._keys = key, depth, keys

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.groups = groups = RowGroups(depth=self._depth, keys=self._keys)
        m.submodules.payloads = payloads = memory.Memory(
            shape=Value.cast(self.i.payload).shape(), depth=self._depth, init=[]
        )
        write, read = payloads.write_port(), payloads.read_port()
        m.d.comb += [
            self.i.ready.eq(groups.room),
            groups.put.eq(self.i.valid & self.i.ready),
            groups.key.eq(self.i.payload[self._key]),
            groups.take.eq(~self.o.valid | self.o.ready),
            groups.free.eq(self.o.valid & self.o.ready),
            write.addr.eq(groups.place),
            write.data.eq(Value.cast(self.i.payload)),
            write.en.eq(groups.put),
            read.addr.eq(groups.next_place),
            read.en.eq(groups.take),
            Value.cast(self.o.payload).eq(read.data),
        ]
        with m.If(groups.take):
            m.d.sync += self.o.valid.eq(groups.available)
        return m
