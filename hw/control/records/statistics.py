"""The counters of a launch, in the order of ``Counter``."""

from enum import Enum

from amaranth import Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.control.records.counters import TOTAL_BITS, CounterBank
from daedal.hw.isa.launch import Counter

MARK_BITS = 16

MARKS = [counter for counter in Counter if counter.name.startswith("MARK_")]

COUNTED = [counter for counter in Counter if counter is not Counter.CYCLES and counter not in MARKS]
"""Counters that add up; CYCLES has a register of its own and marks come from the queues."""

EXECUTE_COUNTERS = (
    Counter.LANE_BEATS,
    Counter.STALL_TOKEN_EMPTY,
    Counter.STALL_VECTOR_EMPTY,
    Counter.STALL_SCALAR_EMPTY,
    Counter.STALL_STORE_FULL,
    Counter.STALL_HAZARD,
)


class Stage(Enum):
    """Where in the machine a counter counts: stages go on from launch to launch one after the other."""

    READ = "read"
    ACCESS = "access"
    EXECUTE = "execute"
    STORE = "store"


def stage_of(counter: Counter) -> Stage:
    """The stage in which ``counter`` counts."""
    if counter is Counter.LINES_READ:
        return Stage.READ
    if counter in (Counter.LINES_WRITTEN, Counter.BYTES_WRITTEN):
        return Stage.STORE
    return Stage.EXECUTE if counter in EXECUTE_COUNTERS else Stage.ACCESS


class Statistics(wiring.Component):
    """Counts for two launches at a time, one on each side.

    Members
    -------
    count_<counter> : ``In``
        Increment of each counter in COUNTED; 1 bit, but for BYTES_WRITTEN and BOUNDS_WARNINGS.
    side_<stage> : ``In(1)``
        The side of the launch that the counters of this stage count for in this cycle.
    mark_<counter> : ``In(16)``
        Present high-water marks of the launch that the execute unit is at.
    flip, forget : ``In(1)``
        Strobe: the execute unit goes on to the next launch, so the marks are those of the present one; there are none.
    rung : ``In(1)``
        Strobe: the doorbell of the launch after the present one.
    take : ``In(1)``
        Strobe: that launch becomes the present one, that of ``side`` from the next cycle on.
    acknowledged : ``In(1)``
        A write of the present launch is acknowledged in this cycle: CYCLES.
    drained : ``In(1)``
        The present launch is over; stands in for an acknowledgement if there was none.
    begin, begin_side : ``In(1)``
        Strobe: all counters of that side start from 0, and count unless ``cancel``.
    side : ``In(1)``
        Of the present launch.
    stop : ``In(1)``
        The present launch does not count any more.
    ask : ``In(1)``, number : ``In``, ``value`` : ``Out(40)``
        In the cycle after the strobe the value of the counter ``number`` of the present launch; at most every third
        cycle.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        strobes = ("flip", "forget", "rung", "take", "acknowledged", "drained", "begin", "begin_side", "cancel",
                   "side", "stop", "ask")  # fmt: skip
        super().__init__(
            {
                **{f"count_{c.name.lower()}": In(range(self._step(c) + 1)) for c in COUNTED},
                **{f"side_{stage.value}": In(1) for stage in Stage},
                **{f"{c.name.lower()}": In(MARK_BITS) for c in MARKS},
                **{name: In(1) for name in strobes},
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
        late = Signal.like(self.number)
        m.d.sync += late.eq(self.number)
        m.d.comb += self.value.eq(self._total(m))
        cycles, marks = self._cycles(m), self._marks(m)
        with m.Switch(late):
            with m.Case(Counter.CYCLES.value):
                m.d.comb += self.value.eq(cycles)
            for mark, kept in marks.items():
                with m.Case(mark.value):
                    m.d.comb += self.value.eq(kept)
        return m

    def _total(self, m: Module) -> Value:
        """The total that was asked for."""
        m.submodules.bank = bank = CounterBank([self._step(counter) for counter in COUNTED])
        counts = Signal(2)
        for k, counter in enumerate(COUNTED):
            m.d.comb += [
                getattr(bank, f"increment{k}").eq(getattr(self, f"count_{counter.name.lower()}")),
                getattr(bank, f"side{k}").eq(getattr(self, f"side_{stage_of(counter).value}")),
            ]
        for side in range(2):
            with m.If(self.stop & (self.side == side)):
                m.d.sync += counts[side].eq(0)
            with m.If(self.begin & (self.begin_side == side)):
                m.d.comb += bank.clear[side].eq(1)
                m.d.sync += counts[side].eq(~self.cancel)
        m.d.comb += [bank.enable.eq(counts), bank.ask.eq(self.ask), bank.asked_side.eq(self.side)]
        with m.Switch(self.number):
            for k, counter in enumerate(COUNTED):
                with m.Case(counter.value):
                    m.d.comb += bank.address.eq(k)
        return bank.total

    def _cycles(self, m: Module) -> Value:
        """CYCLES of the present launch, from its doorbell or the last acknowledgement of the one before."""
        now, last, start, cycles = (Signal(TOTAL_BITS, name=name) for name in ("now", "last", "start", "cycles"))
        written = Signal()
        over = self.acknowledged | (self.drained & ~written)
        m.d.sync += now.eq(now + 1)
        with m.If(self.rung | over):
            m.d.sync += last.eq(now)
        with m.If(self.take):
            m.d.sync += start.eq(last)
        with m.If(over):
            m.d.sync += cycles.eq(now - start)
        with m.If(self.acknowledged):
            m.d.sync += written.eq(1)
        with m.If(self.take):
            m.d.sync += written.eq(0)
        return cycles

    def _marks(self, m: Module) -> dict[Counter, Value]:
        """The marks when the execute unit left the present launch."""
        marks: dict[Counter, Value] = {}
        for mark in MARKS:
            present = getattr(self, mark.name.lower())
            marks[mark] = kept = Signal.like(present, name=f"kept_{mark.name.lower()}")
            with m.If(self.flip):
                m.d.sync += kept.eq(present)
            with m.If(self.forget):
                m.d.sync += kept.eq(0)
        return marks
