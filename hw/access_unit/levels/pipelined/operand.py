"""Operands that program words choose: the constant, or a register."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from daedal.hw.access_unit.levels.bundles import RESULT_FIELDS, assign, names
from daedal.hw.lib.ladder import climb, rungs
from daedal.hw.lib.replicate import replicate


def operand(m: Module, name: str, source: Any, constant: Value, registers: Sequence[Value]) -> Value:
    """The constant, or the register that ``source`` (a Source) names.

    ``source`` and ``constant`` are held program words: the choice is decoded a cycle later, once for a nest, into
    a bit for each register and a constant that is 0 where a register is chosen. What is left to do in each cycle is
    ANDs and ORs, four LUTs for a bit. To be called outside of any ``m.If``, as all functions here.
    """
    held = Signal(len(constant), name=f"{name}_constant", reset_less=True)
    m.d.sync += held.eq(constant)
    with m.If(Value.cast(source) != 0):
        m.d.sync += held.eq(0)  # by the flip-flops' own reset: no LUT
    return held | chosen(m, name, source, registers, first=1)


def chosen(m: Module, name: str, source: Any, choices: Sequence[Value], *, first: int = 0) -> Value:
    """The one of ``choices`` that ``source``, a held program word, names, counted from ``first``; 0 if none."""
    bits = Signal(len(choices), name=f"{name}_choice")
    result: Any = Value.cast(0)
    for number, choice in enumerate(choices):
        m.d.sync += bits[number].eq(Value.cast(source) == number + first)
        result = result | (choice & replicate(bits[number], len(choice)))
    return result


def ladder(m: Module, name: str, choices: Sequence[Value], marks: Sequence[Value], move: Value) -> Value:
    """The one of ``choices`` that the one of ``marks`` says which is 1; 0 if none is.

    The marks are of the cycle before, which had ``move``.
    """
    steps = rungs(marks)
    held = Signal.like(steps, name=f"{name}_rungs")
    with m.If(move):
        m.d.sync += held.eq(steps)
    return climb(choices, held)


def targets(m: Module, name: str, destination: Any, registers: int) -> Signal:
    """A bit for each stream register: whether ``destination``, a held program word, names it; a cycle late."""
    bits = Signal(registers, name=f"{name}_targets")
    m.d.sync += [bit.eq(names(destination, number)) for number, bit in enumerate(bits)]
    return bits


def write(m: Module, later: Any, bus: Any, bits: Value, value: Value) -> None:
    """``later`` (both a ``WorkBus``) is ``bus`` a cycle later, with ``value`` in the registers that ``bits`` marks.

    Without what only loads need.
    """
    m.d.sync += later.valid.eq(bus.valid)
    with m.If(bus.valid):
        m.d.sync += assign(later, bus, RESULT_FIELDS)
        m.d.sync += [
            to.eq(Mux(bit, value, of)) for to, of, bit in zip(later.registers, bus.registers, bits, strict=True)
        ]
