"""Elements out of the lines that a serial level keeps."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import LoadReturns, load_request_layout
from daedal.hw.access_unit.levels.serial.line_cache import LineCache
from daedal.hw.access_unit.loads.element_shift import ElementShift, word_of
from daedal.hw.config.core import Config


class SerialLoad(wiring.Component):
    """Loads one element at a time, for any of the level's slots.

    Members
    -------
    running, slot, free, touch, settled, ahead, end, there, request, returns, busy
        As in ``LineCache``.
    ask, address : ``In(1)``, ``In(address_bits)``
        The element at this byte address is wanted; taken if ``free``.
    size, is_signed : ``In(2)``, ``In(1)``
        As in ``LoadControl``.
    within : ``Out(1)``
        The element that was asked for is not the first one of its line.
    value : ``Out(64)``
        Two cycles after ``there``, and until another one is asked for: the element, extended to 64 bits.
    """

    def __init__(self, config: Config, unit: int, slots: int) -> None:
        super().__init__(
            {
                "running": In(1),
                "ask": In(1),
                "slot": In(range(max(2, slots))),
                "address": In(config.address_bits),
                "free": Out(1),
                "touch": In(1),
                "settled": Out(1),
                "ahead": In(1),
                "end": In(config.address_bits),
                "there": Out(1),
                "size": In(2),
                "is_signed": In(1),
                "within": Out(1),
                "value": Out(64),
                "request": Out(stream.Signature(load_request_layout(config))),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._unit, self._slots = config, unit, slots

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.cache = cache = LineCache(self._config, self._unit, self._slots)
        m.submodules.element = element = ElementShift()
        offset = Signal(exact_log2(self._config.bus_bytes))
        connect(m, cache.request, flipped(self.request))
        connect(m, flipped(self.returns), cache.returns)
        with m.If(self.ask & self.free):
            m.d.sync += offset.eq(self.address)
        m.d.sync += element.word.eq(word_of(cache.data, offset))
        m.d.comb += [
            *(
                getattr(cache, name).eq(getattr(self, name))
                for name in ("running", "ask", "touch", "slot", "ahead", "end")
            ),
            *(getattr(self, name).eq(getattr(cache, name)) for name in ("free", "settled", "there", "busy")),
            cache.line.eq(self.address[len(offset) :]),
            element.offset.eq(offset),
            element.size.eq(self.size),
            element.is_signed.eq(self.is_signed),
            self.within.eq(offset.any()),
            self.value.eq(element.value),
        ]
        return m
