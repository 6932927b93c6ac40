"""Shifting and counting in the form that both the FPGA tools and Verilator take well.

Four-way choices of constant shifts map onto the FPGA's wide multiplexers, and no intermediate value is wider
than the operand, so a simulation needs no more than 64-bit words.
"""

from amaranth import Cat, Const, Module, Signal, Value

DIGIT = 2
"""Bits of a shift amount or of a count that one four-way choice handles."""


def shift_left(m: Module, value: Value, places: Value, name: str) -> Value:
    """``value`` shifted left by ``places`` in its own width; the largest steps come first."""
    width = len(value)
    for low in reversed(range(0, len(places), DIGIT)):
        digit, stage = places[low:low + DIGIT], Signal(width, name=f"{name}_{1 << low}")
        with m.Switch(digit):
            for times in range(1 << len(digit)):
                step = min(times << low, width)
                with m.Case(times):
                    m.d.comb += stage.eq(Cat(Const(0, step), value[:width - step]))
        value = stage
    return value


def leading_zeros(m: Module, value: Value, name: str) -> Value:
    """Zeros above the highest set bit of ``value``, whose width is a power of four.

    If there is none, the answer is one less than the width.
    """
    digits: list[Signal] = []
    while len(value) > 1:
        size = len(value) >> DIGIT
        digit, group = Signal(DIGIT, name=f"{name}_by_{size}"), Signal(size, name=f"{name}_first_{size}")
        candidates = [value[n * size:(n + 1) * size] for n in reversed(range(4))]
        with m.If(candidates[0].any()):
            m.d.comb += [digit.eq(0), group.eq(candidates[0])]
        with m.Elif(candidates[1].any()):
            m.d.comb += [digit.eq(1), group.eq(candidates[1])]
        with m.Elif(candidates[2].any()):
            m.d.comb += [digit.eq(2), group.eq(candidates[2])]
        with m.Else():
            m.d.comb += [digit.eq(3), group.eq(candidates[3])]
        digits.insert(0, digit)
        value = group
    return Cat(*digits)
