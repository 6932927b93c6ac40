"""Shifting and counting in the form that both the FPGA tools and Verilator take well.

Four-way choices map onto few levels of logic, and no intermediate value is wider than the operand, so a
simulation needs no more than 64-bit words.
"""

from amaranth import Cat, Module, Signal, Value

DIGIT = 2
"""Bits of a shift amount or of a count that one four-way choice handles."""


def leading_zeros(m: Module, value: Value, name: str) -> Value:
    """Zeros above the highest set bit of a 64-bit ``value``; 63 if there is none.

    Digit by digit: of four parts, the first with a set bit says the digit, and its own digits are those below. So the
    lower ones wait for choices only.
    """
    if len(value) != 64:
        raise ValueError(f"Value must be 64 bits wide, not {len(value)!r}")
    return _zeros(m, value, name)


def _zeros(m: Module, value: Value, name: str) -> Value:
    """The digits for a part of 4, 16 or 64 bits; all ones if none is set."""
    size = len(value) // 4
    parts = [value[n * size : (n + 1) * size] for n in reversed(range(4))]
    lower = [_zeros(m, part, f"{name}_{n}") if size > 1 else Cat() for n, part in enumerate(parts)]
    digit, below = Signal(DIGIT, name=f"{name}_digit"), Signal(len(lower[0]), name=f"{name}_below")
    with m.If(parts[0].any()):
        m.d.comb += [digit.eq(0), below.eq(lower[0])]
    with m.Elif(parts[1].any()):
        m.d.comb += [digit.eq(1), below.eq(lower[1])]
    with m.Elif(parts[2].any()):
        m.d.comb += [digit.eq(2), below.eq(lower[2])]
    with m.Else():
        m.d.comb += [digit.eq(3), below.eq(lower[3])]
    return Cat(below, digit)
