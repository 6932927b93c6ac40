"""Where a ring of entries in memory is written and read."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

TAPS = {2: 1, 3: 2, 4: 3, 5: 3, 6: 5, 7: 6, 9: 5, 10: 7, 11: 9}
"""Width of a shift register -> the bit (counted from 1) that is fed back together with the last one, so that it goes
through all values but 0 (Xilinx XAPP 052)."""


class RingPointers(wiring.Component):
    """Addresses for a ring of ``depth`` entries.

    In what order a ring goes through its places does not matter. Where ``TAPS`` has the width they are the values of a
    shift register with feedback, which takes three LUTs instead of an adder.

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
        after_read = Signal.like(self.read_address)
        m.d.comb += after_read.eq(self.after(self.read_address))
        with m.If(self.write):
            m.d.sync += [self.write_address.eq(self.after(self.write_address)), self.available.eq(1)]
        with m.Elif(self.fetch & (after_read == self.write_address)):
            m.d.sync += self.available.eq(0)
        with m.If(self.fetch):
            m.d.sync += self.read_address.eq(after_read)
        return m

    def after(self, pointer: Value) -> Value:
        """The place that follows ``pointer``."""
        width = ceil_log2(self._depth)
        if self._depth == 1 << width and width in TAPS:
            # The register that goes through all but 0, and 0 put in between: 10…0 is followed by it, not by 1.
            fed_back = pointer[width - 1] ^ pointer[TAPS[width] - 1] ^ ~pointer[: width - 1].any()
            return Cat(fed_back, pointer[: width - 1])
        return Mux(pointer == self._depth - 1, 0, pointer + 1)
