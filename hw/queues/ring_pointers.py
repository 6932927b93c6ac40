"""Where a ring of entries in memory is written and read."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.queues.up_down import up_down


class RingPointers(wiring.Component):
    """Addresses for a ring of ``depth`` entries.

    Members
    -------
    write, fetch : ``In(1)``
        An entry is written, or read, in this cycle. The user makes sure that there is room, and something to read.
    write_address, read_address : ``Out(range(depth))``
        Of the next entry.
    available : ``Out(1)``
        Some entry was written and not yet read.
    """

    def __init__(self, depth: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "write_address": Out(range(depth)),
                "fetch": In(1),
                "read_address": Out(range(depth)),
                "available": Out(1),
            }
        )
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        unread = Signal(range(self._depth + 1))
        m.d.comb += self.available.eq(unread != 0)
        up_down(m, unread, up=self.write, down=self.fetch)
        for pointer, step in ((self.write_address, self.write), (self.read_address, self.fetch)):
            with m.If(step):
                m.d.sync += pointer.eq(Mux(pointer == self._depth - 1, 0, pointer + 1))
        return m
