"""Comparison of a few bits with a constant, without a chain of carries."""

from amaranth import Const, Value


def below(value: Value, limit: int) -> Value:
    """Whether an unsigned value is less than ``limit``, in gates: synthesis makes an adder of ``<``, which takes two
    LUTs for each two bits and cannot be joined with the logic behind it.
    """
    if limit >= 1 << len(value):
        return Const(1)
    result: Value = Const(0)
    for n, bit in enumerate(value):
        result = ~bit | result if limit >> n & 1 else ~bit & result
    return result
