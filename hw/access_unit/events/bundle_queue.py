"""Bundles that wait for their steps, in the order in which they came."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.events.bundle_store import UNSETTLED, bundle_entries, entry_bits
from daedal.hw.access_unit.events.event_select import judged_layout, place_layout
from daedal.hw.config.core import Config
from daedal.hw.queues.credit_counter import CreditCounter
from daedal.hw.queues.fifo import Fifo


def waiting_layout(config: Config) -> data.StructLayout:
    """A judged bundle and the entry of its registers."""
    return data.StructLayout({"judged": judged_layout(config), "entry": entry_bits(config)})


class WaitingBundles(wiring.Signature):
    """What keeps bundles, as those see it that bring and take them.

    Members
    -------
    take : ``In(1)``
        A bundle is on its way here; only with ``ready``.
    ready : ``Out(1)``
        Another one may come.
    take_entry : ``Out(entry_bits(config))``
        The entry of that one's registers.
    valid, i, place : ``In(1)``, ``In(judged_layout(config))``, ``In(place_layout())``
        A bundle comes, in the order of ``take``.
    deal, settled : ``In(1)``
        As in ``BundleDealer``.
    o : ``Out(stream.Signature(waiting_layout(config)))``
    empty : ``Out(1)``
        No bundle inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "take": In(1),
                "ready": Out(1),
                "take_entry": Out(entry_bits(config)),
                "valid": In(1),
                "i": In(judged_layout(config)),
                "place": In(place_layout()),
                "deal": In(1),
                "settled": In(1),
                "o": Out(stream.Signature(waiting_layout(config))),
                "empty": Out(1),
            }
        )


class BundleQueue(wiring.Component):
    """A queue. Members: those of ``WaitingBundles``; ``place``, ``deal`` and ``settled`` are not looked at."""

    def __init__(self, config: Config) -> None:
        super().__init__(WaitingBundles(config))
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        depth = bundle_entries(self._config)
        m.submodules.judged = judged = Fifo(judged_layout(self._config), depth=depth)
        m.submodules.credits = credits = CreditCounter(depth - UNSETTLED)
        entry, leaves = Signal.like(self.take_entry), Signal()
        m.d.comb += [
            self.ready.eq(credits.free),
            judged.i.valid.eq(self.valid),
            judged.i.payload.eq(self.i),
            self.o.valid.eq(judged.o.valid),
            self.o.payload.judged.eq(judged.o.payload),
            self.o.payload.entry.eq(entry),
            judged.o.ready.eq(self.o.ready),
            leaves.eq(self.o.valid & self.o.ready),
            credits.take.eq(self.take),
            credits.give.eq(leaves),
            self.empty.eq(judged.level == 0),
        ]
        with m.If(self.take):
            m.d.sync += self.take_entry.eq(self.take_entry + 1)
        with m.If(leaves):
            m.d.sync += entry.eq(entry + 1)
        return m
