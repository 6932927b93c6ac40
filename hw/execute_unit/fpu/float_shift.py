"""Shifting and counting in the form that both the FPGA tools and Verilator take well.

Four-way choices map onto few levels of logic, and no intermediate value is wider than the operand, so a
simulation needs no more than 64-bit words.
"""

from collections.abc import Sequence

from amaranth import Cat, Module, Signal, Value

DIGIT = 2
"""Bits of a shift amount or of a count that one four-way choice handles."""


def leading_zeros(m: Module, value: Value, name: str) -> Value:
    """Zeros above the highest set bit of a 64-bit ``value``; 63 if there is none."""
    if len(value) != 64:
        raise ValueError(f"Value must be 64 bits wide, not {len(value)!r}")
    fours = [value[n : n + 4] for n in range(0, 64, 4)]
    below = [zeros_of_four(m, four, f"{name}_{15 - n}") for n, four in enumerate(fours)]
    return zeros_above(m, [four.any() for four in fours], below, name)


def zeros_of_four(m: Module, value: Value, name: str) -> Value:
    """Zeros above the highest set bit of four; 3 if there is none."""
    return zeros_above(m, list(value), [Cat()] * 4, name)


def zeros_above(m: Module, found: Sequence[Value], below: Sequence[Value], name: str) -> Value:
    """How many of ``found`` (4 or 16, the last one highest) lie above the highest that is set; all ones if none is.

    Digit by digit: of four parts, the first with a set bit says the digit, and its own digits are those below. So the
    lower ones wait for choices only. Less significant digits are what ``below`` has for the one that is found, or, if
    none is, for the lowest.
    """
    size = len(found) // 4
    parts = [slice(n * size, (n + 1) * size) for n in reversed(range(4))]
    lower = [
        zeros_above(m, found[part], below[part], f"{name}_{n}") if size > 1 else below[part.start]
        for n, part in enumerate(parts)
    ]
    some = [Cat(found[part]).any() for part in parts[:3]]
    digit, rest = Signal(DIGIT, name=f"{name}_digit"), Signal(len(lower[0]), name=f"{name}_below")
    with m.If(some[0]):
        m.d.comb += [digit.eq(0), rest.eq(lower[0])]
    with m.Elif(some[1]):
        m.d.comb += [digit.eq(1), rest.eq(lower[1])]
    with m.Elif(some[2]):
        m.d.comb += [digit.eq(2), rest.eq(lower[2])]
    with m.Else():
        m.d.comb += [digit.eq(3), rest.eq(lower[3])]
    return Cat(rest, digit)
