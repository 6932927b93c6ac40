"""Several registers for one bit that many read."""

from amaranth.hdl import Module, Signal, Value

DIFFERENT = 4
"""Registers that synthesis takes for different ones: each begins with 0 or 1 and holds the bit or its opposite."""


def fanout(m: Module, bit: Value, name: str, count: int) -> list[Value]:
    """``bit``, a cycle later, from up to ``DIFFERENT`` registers without reset, for ``count`` readers in turn.

    Synthesis makes one register of those that are alike, whatever their names, and a net with hundreds of readers takes
    as long as four LUTs.
    """
    held = []
    for n in range(min(count, DIFFERENT)):
        one = Signal(name=f"{name}_{n}", init=n & 1, reset_less=True)
        m.d.sync += one.eq(~bit if n & 2 else bit)
        held.append(~one if n & 2 else one)
    return [held[n % DIFFERENT] for n in range(count)]
