"""Counters of a launch, kept in memory: small counters are swept into 40-bit totals."""

from collections.abc import Sequence

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.memory_style import BLOCK_RAM

TOTAL_BITS = 40


class CounterBank(wiring.Component):
    """Adds up ``len(steps)`` numbers per cycle, each in a small register that is swept into block RAM in turn.

    A small register is never set back: by how much it grew since its last turn, the low bits of its total tell.
    A total can be looked at once ``2 * len(steps)`` cycles went by without counting.

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
        self._address_bits = max(ceil_log2(len(steps)), 2)  # a total is written two cycles after it is read
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
        m.submodules.totals = totals = Memory(shape=TOTAL_BITS, depth=count, init=[], attrs=BLOCK_RAM)
        write, sweep, show = totals.write_port(), totals.read_port(), totals.read_port()
        turn, zeroing = Signal(self._address_bits), Signal(range(count + 2))
        smalls = [Signal(range(step * count + 1), name=f"small{k}") for k, step in enumerate(self._steps)]
        turns: list[Value] = [turn == k for k in range(len(smalls))]
        m.d.sync += turn.eq(turn + 1)
        for k, small in enumerate(smalls):
            increment = getattr(self, f"increment{k}")
            with m.If(self.enable & increment.any()):
                m.d.sync += small.eq(small + increment)
        with m.If(self.clear):
            m.d.sync += [zeroing.eq(count), *(small.eq(0) for small in smalls)]
        with m.Elif(zeroing != 0):
            m.d.sync += zeroing.eq(zeroing - 1)
        # Behind the memory's output, and behind a register: the counter whose turn it was, its bits, the address.
        width = max(len(small) for small in smalls)
        swept, mask, zeroes, late = (
            [Signal(shape, name=f"{name}{stage}") for stage in range(2)]
            for name, shape in (("swept", width), ("mask", width), ("zeroes", 1), ("late", len(turn)))
        )
        m.d.sync += [
            swept[0].eq(any_of([Mux(mine, small, 0) for mine, small in zip(turns, smalls, strict=True)])),
            mask[0].eq(any_of([Mux(mine, (1 << len(s)) - 1, 0) for mine, s in zip(turns, smalls, strict=True)])),
            zeroes[0].eq(zeroing != 0),
            late[0].eq(turn),
            *(stages[1].eq(stages[0]) for stages in (swept, mask, zeroes, late)),
        ]
        base, news = Signal(TOTAL_BITS), Signal(width)
        m.d.sync += base.eq(Mux(zeroes[0], 0, sweep.data))
        m.d.comb += [
            sweep.addr.eq(turn),
            sweep.en.eq(1),
            news.eq((swept[1] - base) & mask[1]),
            write.addr.eq(late[1]),
            write.en.eq(zeroes[1] | news.any()),  # not once nothing is counted: then totals are looked at
            write.data.eq(base + news),
            show.addr.eq(self.address),
            show.en.eq(1),
            self.total.eq(show.data),
        ]
        return m


def any_of(values: Sequence[Value]) -> Value:
    """OR of all values, as a balanced tree."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else any_of(values[:half]) | any_of(values[half:])
