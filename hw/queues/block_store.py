"""A block RAM with registered output that is read as a stream."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.lib.ram_style import BLOCK_RAM


class BlockStore(wiring.Component):
    """Block RAM whose reader decides, entry by entry, that the next one is available.

    Writes and reads one entry per cycle. The payload comes out two cycles after ``fetch``, through the block RAM's
    own output and a register, which together hold two payloads while ``o`` is not ready.

    Parameters
    ----------
    width
        Bits of an entry.
    depth
        Entries, at least 2.

    Members
    -------
    write : ``In(1)``; write_address : ``In(range(depth))``; payload : ``In(width)``
        An entry to store in this cycle.
    available : ``In(1)``; read_address : ``In(range(depth))``
        An entry may be read. It must not be the one that is being written.
    fetch : ``Out(1)``
        It is read in this cycle: offer the next one.
    o : ``Out(stream.Signature(width))``
        What has been read.
    """

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "write_address": In(range(depth)),
                "payload": In(width),
                "available": In(1),
                "read_address": In(range(depth)),
                "fetch": Out(1),
                "o": Out(stream.Signature(width)),
            }
        )
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=len(self.payload), depth=self._depth, init=[], attrs=BLOCK_RAM
        )
        write, read = store.write_port(), store.read_port()
        fetched, move = Signal(), Signal()
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_address),
            write.data.eq(self.payload),
            read.addr.eq(self.read_address),
            move.eq(~self.o.valid | self.o.ready),
            read.en.eq(~fetched | move),
            self.fetch.eq(self.available & read.en),
        ]
        with m.If(read.en):
            m.d.sync += fetched.eq(self.available)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(fetched), self.o.payload.eq(read.data)]
        return m
