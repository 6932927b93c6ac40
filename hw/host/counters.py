"""Counters of a launch, kept in memory: small counters are swept into 40-bit totals."""

from collections.abc import Sequence

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

TOTAL_BITS = 40


class CounterBank(wiring.Component):
    """Adds up ``len(steps)`` numbers per cycle, each in a small register that is swept into block RAM in
    turn.

    A total is exact once ``2 * len(steps)`` cycles went by without counting.

    Parameters
    ----------
    steps
        The largest increment per cycle of each counter.

    Members
    -------
    increment0 … : ``In(range(step + 1))``
    enable : ``In(1)``
        Increments count only while it is high.
    clear : ``In(1)``
        Strobe: all totals become 0; counting starts anew at once.
    address, total : ``In``, ``Out(40)``
        The total of counter ``address``, a cycle later.
    """

    def __init__(self, steps: Sequence[int]) -> None:
        self._steps = list(steps)
        self._address_bits = max(ceil_log2(len(steps)), 1)
        super().__init__(
            {
                **{f"increment{k}": In(range(step + 1)) for k, step in enumerate(self._steps)},
                "enable": In(1),
                "clear": In(1),
                "address": In(self._address_bits),
                "total": Out(TOTAL_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count = 1 << self._address_bits
        m.submodules.totals = totals = Memory(shape=TOTAL_BITS, depth=count, init=[])
        write, sweep, show = totals.write_port(), totals.read_port(), totals.read_port()
        turn, turn_late, zeroing = (
            Signal(self._address_bits),
            Signal(self._address_bits),
            Signal(range(count + 2)),
        )
        swept, zero_late = Signal(range(max(self._steps) * count + 1)), Signal()
        m.d.sync += [turn.eq(turn + 1), turn_late.eq(turn)]
        with m.If(self.clear):
            m.d.sync += zeroing.eq(count)
        with m.Elif(zeroing != 0):
            m.d.sync += zeroing.eq(zeroing - 1)
        m.d.sync += zero_late.eq(zeroing != 0)
        smalls: list[Value] = []
        for k, step in enumerate(self._steps):
            small = Signal(range(step * count + 1), name=f"small{k}")
            add = Mux(self.enable, getattr(self, f"increment{k}"), 0)
            mine = turn == k
            m.d.sync += small.eq(Mux(mine | self.clear, 0, small) + add)
            smalls.append(Mux(mine, small, 0))
        m.d.sync += swept.eq(any_of(smalls))
        m.d.comb += [
            sweep.addr.eq(turn),
            sweep.en.eq(1),
            write.addr.eq(turn_late),
            write.en.eq(1),
            write.data.eq(Mux(zero_late, 0, sweep.data) + swept),
            show.addr.eq(self.address),
            show.en.eq(1),
            self.total.eq(show.data),
        ]
        return m


def any_of(values: Sequence[Value]) -> Value:
    """OR of all values, as a balanced tree."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else any_of(values[:half]) | any_of(values[half:])
