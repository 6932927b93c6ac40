"""Shifting and counting in the form that both the FPGA tools and Verilator take well.

Four-way choices map onto few levels of logic, and no intermediate value is wider than the operand, so a
simulation needs no more than 64-bit words.
"""

from amaranth import Cat, Module, Signal, Value

DIGIT = 2
"""Bits of a shift amount or of a count that one four-way choice handles."""


def first_set(m: Module, flags: list[Value], choices: list[Value], name: str) -> tuple[Signal, Signal]:
    """Of four choices, the first whose flag is set (else the last), and its number."""
    number, chosen = Signal(DIGIT, name=f"{name}_number"), Signal(len(choices[0]), name=name)
    with m.If(flags[0]):
        m.d.comb += [number.eq(0), chosen.eq(choices[0])]
    with m.Elif(flags[1]):
        m.d.comb += [number.eq(1), chosen.eq(choices[1])]
    with m.Elif(flags[2]):
        m.d.comb += [number.eq(2), chosen.eq(choices[2])]
    with m.Else():
        m.d.comb += [number.eq(3), chosen.eq(choices[3])]
    return number, chosen


def leading_zeros(m: Module, value: Value, name: str) -> Value:
    """Zeros above the highest set bit of a 64-bit ``value``; 63 if there is none.

    In each group of 16 the first nibble with a set bit is found, beside the first such group.
    """

    def parts(whole: Value) -> list[Value]:
        size = len(whole) // 4
        return [whole[n * size : (n + 1) * size] for n in reversed(range(4))]

    if len(value) != 64:
        raise ValueError(f"Value must be 64 bits wide, not {len(value)!r}")
    groups, firsts = parts(value), []
    for n, group in enumerate(groups):
        nibbles = parts(group)
        firsts.append(Cat(*reversed(first_set(m, [x.any() for x in nibbles], nibbles, f"{name}_nibble{n}"))))
    sixteens, first = first_set(m, [x.any() for x in groups], firsts, f"{name}_group")
    ones, _ = first_set(m, parts(first[:4]), parts(first[:4]), f"{name}_bit")
    return Cat(ones, first[4:], sixteens)
