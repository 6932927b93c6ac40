"""Counters of a launch, kept in memory: small counters are swept into 40-bit totals."""

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.lib.ram_style import BLOCK_RAM

TOTAL_BITS = 40


class CounterBank(wiring.Component):
    """Adds up ``len(steps)`` numbers per cycle for two sides, each in a small register that is swept into block RAM.

    A small register is never set back: by how much it grew since its last turn, the low bits of its total tell.
    A side's total can be looked at once ``4 * len(steps)`` cycles went by without counting for it, and without a look.

    Parameters
    ----------
    steps
        The largest increment per cycle of each counter.

    Members
    -------
    increment0 … : ``In(range(step + 1))``, side0 … : ``In(1)``
        By how much the counter of that side grows.
    enable : ``In(2)``
        Increments count only while the side's bit is high.
    clear : ``In(2)``
        Strobes: all totals of the side become 0; its counting starts anew at once.
    ask : ``In(1)``, address, asked_side : ``In``, total : ``Out(40)``
        In the cycle after ``ask`` the total of counter ``address`` of that side. At most every third cycle: it takes a
        turn of the sweep.
    """

    def __init__(self, steps: Sequence[int]) -> None:
        self._steps = list(steps)
        self._turns = max(2 * len(steps), 4)  # a total is written two cycles after it is read
        super().__init__(
            {
                **{f"increment{k}": In(range(step + 1)) for k, step in enumerate(self._steps)},
                **{f"side{k}": In(1) for k in range(len(steps))},
                "enable": In(2),
                "clear": In(2),
                "ask": In(1),
                "address": In(ceil_log2(self._turns) - 1),
                "asked_side": In(1),
                "total": Out(TOTAL_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.totals = totals = Memory(shape=TOTAL_BITS, depth=1 << ceil_log2(self._turns), init=[],
                                              attrs=BLOCK_RAM)  # fmt: skip
        write, read = totals.write_port(), totals.read_port()
        turn = Signal(range(self._turns))  # its low bit is the side
        smalls, zeroing = self._smalls(m), self._zeroing(m)
        turns: list[Value] = [turn == k for k in range(len(smalls))]
        with m.If(~self.ask):
            m.d.sync += turn.eq(Mux(turn == self._turns - 1, 0, turn + 1))
        # Behind the memory's output, and behind a register: the counter whose turn it was, its bits, the address.
        width = max(len(small) for small in smalls)
        swept, mask, zeroes, late, is_turn = (
            [Signal(shape, name=f"{name}{stage}") for stage in range(2)]
            for name, shape in (("swept", width), ("mask", width), ("zeroes", 1), ("late", len(turn)), ("is_turn", 1))
        )
        m.d.sync += [
            swept[0].eq(any_of([Mux(mine, small, 0) for mine, small in zip(turns, smalls, strict=True)])),
            mask[0].eq(any_of([Mux(mine, (1 << len(s)) - 1, 0) for mine, s in zip(turns, smalls, strict=True)])),
            zeroes[0].eq(zeroing.bit_select(turn[0], 1)),
            late[0].eq(turn),
            is_turn[0].eq(~self.ask),
            *(stages[1].eq(stages[0]) for stages in (swept, mask, zeroes, late, is_turn)),
        ]
        base, news = Signal(TOTAL_BITS), Signal(width)
        m.d.sync += base.eq(Mux(zeroes[0], 0, read.data))
        m.d.comb += [
            read.addr.eq(Mux(self.ask, Cat(self.asked_side, self.address), turn)),
            read.en.eq(1),
            news.eq((swept[1] - base) & mask[1]),
            write.addr.eq(late[1]),
            write.en.eq(
                is_turn[1] & (zeroes[1] | news.any())
            ),  # not once nothing is counted: then totals are looked at
            write.data.eq(base + news),
            self.total.eq(read.data),
        ]
        return m

    def _smalls(self, m: Module) -> list[Signal]:
        """The small registers, in the order of their turns. One is as wide as what it grows by between two of them."""
        longest = 3 * self._turns // 2 + 1
        smalls = []
        for k, step in enumerate(self._steps):
            increment = getattr(self, f"increment{k}")
            for side in range(2):
                small = Signal(range(step * longest + 1), name=f"small{k}_{side}")
                with m.If(self.enable[side] & (getattr(self, f"side{k}") == side) & increment.any()):
                    m.d.sync += small.eq(small + increment)
                with m.If(self.clear[side]):
                    m.d.sync += small.eq(0)
                smalls.append(small)
        return smalls

    def _zeroing(self, m: Module) -> Signal:
        """The sides whose totals become 0: for one sweep after ``clear``."""
        zeroing = Signal(2)
        for side in range(2):
            left = Signal(range(self._turns + 1), name=f"left{side}")
            with m.If(self.clear[side]):
                m.d.sync += left.eq(self._turns)
            with m.Elif(zeroing[side] & ~self.ask):
                m.d.sync += left.eq(left - 1)
            m.d.comb += zeroing[side].eq(left != 0)
        return zeroing


def any_of(values: Sequence[Value]) -> Value:
    """OR of all values, as a balanced tree."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else any_of(values[:half]) | any_of(values[half:])
