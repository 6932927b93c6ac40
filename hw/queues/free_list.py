"""Entries of a store that nobody has."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.lib.ram_style import DISTRIBUTED_RAM


class FreeList(wiring.Component):
    """Offers free entries: first each of them, by number; then those that are given back, in their order.

    So a queue is enough, whose words nobody has to write before the first ones are given back.

    Members
    -------
    clear : ``In(1)``
        All are free; none is offered in the next cycle.
    valid, entry : ``Out(1)``, ``Out(range(entries))``
        One is free; registered.
    take : ``In(1)``
        It is not free any more. Needs ``valid``.
    give, given : ``In(1)``, ``In(range(entries))``
        One is free again.
    """

    def __init__(self, entries: int) -> None:
        entry = range(entries)
        super().__init__(
            {
                "clear": In(1),
                "valid": Out(1),
                "entry": Out(entry),
                "take": In(1),
                "give": In(1),
                "given": In(entry),
            }
        )
        self._entries = entries

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.back = back = memory.Memory(
            shape=range(self._entries), depth=self._entries, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = back.write_port(), back.read_port(domain="comb")
        # How many were offered, and how many of those that were free at first or have come back may be; a bit more
        # than a place in the queue has, so that none and all of them differ.
        offered, free = (Signal(range(2 * self._entries), name=name) for name in ("offered", "free"))
        come_back = Signal()
        m.d.comb += [
            write.en.eq(self.give),
            write.addr.eq(free),
            write.data.eq(self.given),
            read.addr.eq(offered),
        ]
        with m.If(self.give):
            m.d.sync += free.eq(free + 1)
        with m.If(self.take | ~self.valid):
            m.d.sync += [
                self.valid.eq(offered != free),
                self.entry.eq(Mux(come_back, read.data, offered)),
            ]
            with m.If(offered != free):
                m.d.sync += [offered.eq(offered + 1), come_back.eq(come_back | offered[: len(self.entry)].all())]
        with m.If(self.clear):
            m.d.sync += [self.valid.eq(0), offered.eq(0), free.eq(self._entries), come_back.eq(0)]
        return m
