"""Gives each bag whose quotient is stored another register than the bag before it.

The division of a bag waits beside the rows of the next one, which must not write its register meanwhile. So the
registers' names rotate with each division, if nothing else is kept in them from one callback to another. What a
callback has in a register for itself is emptied by its last reader: the name of what is kept must find an empty one.
"""

from collections.abc import Iterable

from daedal.compiler.backend.operands import (
    STORES,
    VECTOR,
    Code,
    Instruction,
    finished,
    mode,
    number,
    operands,
    written,
)
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, VectorOp


def rotated(codes: dict[int, Code], config: Config) -> dict[int, Code]:
    """The callbacks, by token; those that divide rotate the vector registers, if they may."""
    around = config.rotating_registers
    dividing = {token: code for token, code in codes.items() if _divides(code)}
    if around < 2 or any(one.get("rotate") for code in codes.values() for one in code):
        return codes
    kept = {register for code in codes.values() for register in _taken_over(code) if register < around}
    if not dividing or any(not kept <= _emptied(code) for code in dividing.values()):
        return codes
    cleared = {token: _cleared(code, kept) for token, code in codes.items()}
    left = {register for code in cleared.values() for register in _written(code) - _emptied(code) - kept}
    if any(register < around for register in left):
        return codes
    dividing = {token: cleared[token] for token in dividing}
    return cleared | {token: finished(code, rotate=1) for token, code in dividing.items()}


def _divides(code: Code) -> bool:
    return any(one["op"] is VectorOp.STORE_QUOTIENT for one in code)


def _cleared(code: Code, kept: set[int]) -> Code:
    """The code, in which registers that it leaves, but those that are ``kept``, are emptied where they can be: by the
    last instruction that names them, if that reads them as operand ``a``.
    """
    new = list(code)
    for register in _written(code) - _emptied(code) - kept:
        last = max(n for n, one in enumerate(code) if register in _vectors([*_read(one), *written(one)]))
        if operands(code[last])[:1] == [(VECTOR, register)] and (VECTOR, register) not in written(code[last]):
            new[last] = {**new[last], "clear": 1}
    return new


def _written(code: Code) -> set[int]:
    """Vector registers that a callback writes."""
    return {register for one in code for register in _vectors(written(one))}


def _taken_over(code: Code) -> set[int]:
    """Vector registers that are looked at before they are written: what an earlier callback left counts."""
    found: set[int] = set()
    made: set[int] = set()
    for one in code:
        found |= set(_vectors(_read(one))) - made
        made |= set(_vectors(written(one)))
    return found


def _emptied(code: Code) -> set[int]:
    """Vector registers that are empty behind a callback."""
    empty: set[int] = set()
    for one in code:
        cleared = one.get("clear") or one["op"] is VectorOp.STORE_QUOTIENT
        partial = {number(one, "c")} if mode(one) is Mode.REDUCE else set()
        empty |= {*_vectors(operands(one)[:1] if cleared else []), *partial}
        empty -= set(_vectors(written(one))) - partial
    return empty


def _read(one: Instruction) -> list[tuple[object, int]]:
    addend = [(VECTOR, number(one, "c"))] if "c" in one and mode(one) is Mode.VECTOR and one["op"] not in STORES else []
    return [*operands(one), *addend]


def _vectors(registers: Iterable[tuple[object, int]]) -> list[int]:
    return [n for kind, n in registers if kind is VECTOR]
