"""What an instruction of the execute unit reads and writes."""

from daedal.hw.isa.instructions import Mode, OperandKind, VectorOp

Instruction = dict[str, object]
"""The members of an instruction that are not 0."""

Code = list[Instruction]
"""The instructions of a callback."""

Register = tuple[OperandKind, int]
"""A vector or scalar register; as an operand also what is popped."""

STORES = (VectorOp.STORE, VectorOp.STORE_QUOTIENT)
"""Operations without a destination, which store operand ``a`` or what they make of it."""

VECTOR, SCALAR = OperandKind.REGISTER, OperandKind.SCALAR_REGISTER


def mode(code: Instruction) -> object:
    """What the instruction works on."""
    return code.get("mode", Mode.VECTOR)


def number(code: Instruction, name: str) -> int:
    """The member of this name, a number."""
    value = code.get(name, 0)
    assert isinstance(value, int)
    return value


def operand(code: Instruction, name: str) -> Register:
    """Operand ``a`` or ``b``."""
    value = code.get(name, {})
    assert isinstance(value, dict)
    return value.get("kind", VECTOR), value.get("number", 0)


def operands(code: Instruction) -> list[Register]:
    """Operands ``a`` and ``b``; pops as well."""
    return [operand(code, name) for name in "ab" if name == "a" or "b" in code]


def written(code: Instruction) -> set[Register]:
    """The destination; for a reduction also the register of its partial results."""
    destination = number(code, "destination")
    if code["op"] in STORES:
        return set()
    if mode(code) is Mode.REDUCE:
        return {(SCALAR, destination), (VECTOR, number(code, "c"))}
    return {(SCALAR if mode(code) is Mode.SCALAR else VECTOR, destination)}


def reads_addend(code: Instruction) -> bool:
    """Whether ``c`` is a register that it reads."""
    return "c" in code and mode(code) is not Mode.REDUCE


def finished(code: Code, **more: object) -> Code:
    """The same instructions, the last one marked as such and with ``more`` members."""
    return [*({**one, "last": 0} for one in code[:-1]), {**code[-1], "last": 1, **more}]
