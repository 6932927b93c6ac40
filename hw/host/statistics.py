"""The counters of a launch, in the order of ``Counter``."""

from enum import Enum

from amaranth import Array, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.host.counters import TOTAL_BITS, CounterBank
from daedal.hw.isa.launch import Counter

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
    number : ``In``, ``value`` : ``Out(40)``
        The counter wanted, of the present launch; a cycle later its value.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        strobes = ("flip", "forget", "rung", "take", "acknowledged", "drained", "begin", "begin_side", "cancel",
                   "side", "stop")  # fmt: skip
        super().__init__(
            {
                **{f"count_{c.name.lower()}": In(range(self._step(c) + 1)) for c in COUNTED},
                **{f"side_{stage.value}": In(1) for stage in Stage},
                **{f"{c.name.lower()}": In(16) for c in MARKS},
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
        totals = [self._bank(m, side) for side in range(2)]
        m.d.comb += self.value.eq(Array(totals)[self.side])
        cycles, marks = self._cycles(m), self._marks(m)
        with m.Switch(late):
            with m.Case(Counter.CYCLES.value):
                m.d.comb += self.value.eq(cycles)
            for mark, kept in marks.items():
                with m.Case(mark.value):
                    m.d.comb += self.value.eq(kept)
        return m

    def _bank(self, m: Module, side: int) -> Value:
        """The counters of one side; returns the total of the one that is wanted."""
        m.submodules[f"bank{side}"] = bank = CounterBank([self._step(counter) for counter in COUNTED])
        counts = Signal(name=f"counts{side}")
        for k, counter in enumerate(COUNTED):
            mine = getattr(self, f"side_{stage_of(counter).value}") == side
            count = getattr(self, f"count_{counter.name.lower()}")
            m.d.comb += getattr(bank, f"increment{k}").eq(Mux(mine, count, 0))
        begins = self.begin & (self.begin_side == side)
        with m.If(self.stop & (self.side == side)):
            m.d.sync += counts.eq(0)
        with m.If(begins):
            m.d.sync += counts.eq(~self.cancel)
        m.d.comb += [bank.enable.eq(counts), bank.clear.eq(begins)]
        with m.Switch(self.number):
            for k, counter in enumerate(COUNTED):
                with m.Case(counter.value):
                    m.d.comb += bank.address.eq(k)
        return bank.total

    def _cycles(self, m: Module) -> Value:
        """CYCLES of the present launch, from its doorbell or the last acknowledgement of the one before."""
        elapsed, since, cycles, written = Signal(TOTAL_BITS), Signal(TOTAL_BITS), Signal(TOTAL_BITS), Signal()
        over = self.acknowledged | (self.drained & ~written)
        m.d.sync += [
            since.eq(Mux(self.rung | over, 1, since + 1)),
            elapsed.eq(Mux(self.take, since + 1, elapsed + 1)),
        ]
        with m.If(over):
            m.d.sync += cycles.eq(elapsed)
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
