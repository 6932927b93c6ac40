"""What a level's ALU computes on stream registers, in Python's integers."""

from collections.abc import Callable, Mapping

from daedal.hw.isa.words import INDEX_BITS, PITCH_BITS, AluOp

SHIFT_BITS = 6
"""Bits of ``b`` that say how far a shift goes."""


def signed(value: int, bits: int) -> int:
    """The signed number in the low ``bits`` of ``value``."""
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def product(a: int, b: int) -> int:
    """The product of the parts of an index and of a pitch that count, both unsigned."""
    return a % (1 << INDEX_BITS) * (b % (1 << PITCH_BITS))


def alu(op: AluOp, a: int, b: int, bits: int) -> int:
    """``a op b`` for registers of so many bits, as an unsigned number; NONE gives 0.

    ``a`` and ``b`` may be any integers that are the registers' values modulo ``2**bits``.
    """
    return int(_OPERATIONS[op](a % (1 << bits), b % (1 << bits), bits)) % (1 << bits)


_OPERATIONS: Mapping[AluOp, Callable[[int, int, int], int]] = {
    AluOp.NONE: lambda a, b, bits: 0,
    AluOp.ADD: lambda a, b, bits: a + b,
    AluOp.SUB: lambda a, b, bits: a - b,
    AluOp.MUL: lambda a, b, bits: product(a, b),
    AluOp.AND: lambda a, b, bits: a & b,
    AluOp.MIN: lambda a, b, bits: min(signed(a, bits), signed(b, bits)),
    AluOp.MAX: lambda a, b, bits: max(signed(a, bits), signed(b, bits)),
    AluOp.EQUAL: lambda a, b, bits: a == b,
    AluOp.NOT_EQUAL: lambda a, b, bits: a != b,
    AluOp.LESS: lambda a, b, bits: signed(a, bits) < signed(b, bits),
    AluOp.SHIFT_LEFT: lambda a, b, bits: a << b % (1 << SHIFT_BITS),
    AluOp.SHIFT_RIGHT: lambda a, b, bits: a >> b % (1 << SHIFT_BITS),
}
