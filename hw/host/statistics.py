"""The counters of a launch, in the order of ``Counter``."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.host.counters import TOTAL_BITS, CounterBank
from daedal.hw.isa.launch import Counter

MARKS = [counter for counter in Counter if counter.name.startswith("MARK_")]

COUNTED = [counter for counter in Counter if counter is not Counter.CYCLES and counter not in MARKS]
"""Counters that add up; CYCLES has a register of its own and marks come from the queues."""


class Statistics(wiring.Component):
    """Counts for one launch at a time.

    Members
    -------
    count_<counter> : ``In``
        Increment of each counter in COUNTED; 1 bit, but for BYTES_WRITTEN and BOUNDS_WARNINGS.
    mark_<counter> : ``In(16)``
        Present high-water marks.
    rung : ``In(1)``
        The launch's clock starts at 0 in this cycle.
    acknowledged : ``In(1)``
        A write of the launch is acknowledged in this cycle: CYCLES.
    drained : ``In(1)``
        The launch is over; stands in for an acknowledgement if there was none.
    begin : ``In(1)``
        Strobe: all counters start from 0.
    enable : ``In(1)``
    number : ``In``, ``value`` : ``Out(40)``
        The counter wanted; a cycle later its value.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                **{f"count_{c.name.lower()}": In(range(self._step(c) + 1)) for c in COUNTED},
                **{f"{c.name.lower()}": In(16) for c in MARKS},
                "rung": In(1),
                "acknowledged": In(1),
                "drained": In(1),
                "begin": In(1),
                "enable": In(1),
                "number": In(8),
                "value": Out(TOTAL_BITS),
            }
        )

    def _step(self, counter: Counter) -> int:
        """The largest increment per cycle."""
        steps = {Counter.BYTES_WRITTEN: self._config.bus_bytes, Counter.BOUNDS_WARNINGS: self._config.levels}
        return steps.get(counter, 1)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.bank = bank = CounterBank([self._step(counter) for counter in COUNTED])
        for k, counter in enumerate(COUNTED):
            m.d.comb += getattr(bank, f"increment{k}").eq(getattr(self, f"count_{counter.name.lower()}"))
        m.d.comb += [
            bank.enable.eq(self.enable),
            bank.clear.eq(self.begin),
        ]
        with m.Switch(self.number):
            for k, counter in enumerate(COUNTED):
                with m.Case(counter.value):
                    m.d.comb += bank.address.eq(k)
        elapsed, cycles, written = Signal(TOTAL_BITS), Signal(TOTAL_BITS), Signal()
        m.d.sync += elapsed.eq(Mux(self.rung, 1, elapsed + 1))
        with m.If(self.begin):
            m.d.sync += written.eq(0)
        with m.If(self.enable & (self.acknowledged | (self.drained & ~written))):
            m.d.sync += cycles.eq(elapsed)
            with m.If(self.acknowledged):
                m.d.sync += written.eq(1)
        late = Signal.like(self.number)
        m.d.sync += late.eq(self.number)
        m.d.comb += self.value.eq(bank.total)
        with m.Switch(late):
            with m.Case(Counter.CYCLES.value):
                m.d.comb += self.value.eq(cycles)
            for mark in MARKS:
                with m.Case(mark.value):
                    m.d.comb += self.value.eq(getattr(self, mark.name.lower()))
        return m
