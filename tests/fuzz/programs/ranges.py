"""What can be known of a register without running the program: bounds and trailing zeros."""

from dataclasses import dataclass

from daedal.hw.config.core import MOST_ADDRESS_BITS
from daedal.hw.isa.words import INDEX_BITS, PITCH_BITS, AluOp

MOST_ALIGNED = 1 << MOST_ADDRESS_BITS


def alignment(value: int) -> int:
    """The largest power of two that divides ``value``."""
    return value & -value if value else MOST_ALIGNED


@dataclass(frozen=True)
class Range:
    """Signed values from ``low`` to ``high``, all multiples of ``align`` (a power of two)."""

    low: int
    high: int
    align: int = 1

    @staticmethod
    def of(value: int) -> "Range":
        """One value."""
        return Range(value, value, alignment(value))

    @property
    def single(self) -> bool:
        return self.low == self.high

    @property
    def width(self) -> int:
        return self.high - self.low

    def join(self, other: "Range") -> "Range":
        """What holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high), min(self.align, other.align))


class Integers:
    """The signed numbers that registers of ``bits`` can hold."""

    def __init__(self, bits: int) -> None:
        self.bits, self.lowest, self.highest = bits, -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        self.any = Range(self.lowest, self.highest)

    def fitting(self, low: int, high: int, align: int = 1) -> Range:
        """This range, or any number if some of it cannot be held."""
        held = low >= self.lowest and high <= self.highest
        return Range(low, high, min(align, MOST_ALIGNED)) if held else self.any

    def result(self, op: AluOp, a: Range, b: Range) -> Range:
        """The range of ``a op b``; any number whenever that would take thought."""
        if op is AluOp.ADD:
            return self.fitting(a.low + b.low, a.high + b.high, min(a.align, b.align))
        if op is AluOp.SUB:
            return self.fitting(a.low - b.high, a.high - b.low, min(a.align, b.align))
        if op is AluOp.MIN:
            return Range(min(a.low, b.low), min(a.high, b.high), min(a.align, b.align))
        if op is AluOp.MAX:
            return Range(max(a.low, b.low), max(a.high, b.high), min(a.align, b.align))
        if op in (AluOp.EQUAL, AluOp.NOT_EQUAL, AluOp.LESS):
            return Range(0, 1)
        if a.low < 0 or b.low < 0:
            return self.any
        if op is AluOp.AND:
            return Range(0, min(a.high, b.high), max(a.align, b.align) if max(a.align, b.align) < MOST_ALIGNED else 1)
        if op is AluOp.MUL and a.high < 1 << INDEX_BITS and b.high < 1 << PITCH_BITS:
            return self.fitting(a.low * b.low, a.high * b.high, a.align * b.align)
        if op is AluOp.SHIFT_LEFT and b.single and b.low < self.bits:
            return self.fitting(a.low << b.low, a.high << b.low, a.align << b.low)
        if op is AluOp.SHIFT_RIGHT and b.single and b.low < self.bits:
            return Range(a.low >> b.low, a.high >> b.low)
        return self.any
