"""A callback's instructions as operations of ``mach``."""

from xdsl.backend.register_type import RegisterType
from xdsl.ir import Operation, SSAValue

from daedal.compiler.backend.operands import SCALAR, Code, Instruction, Register, mode, number, operand
from daedal.compiler.dialects import mach_execute as mach
from daedal.compiler.dialects.mach_types import ScalarRegister, VectorRegister
from daedal.hw.isa.instructions import HEAD, KEEP, KEPT, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS

CLASSES = {kind: of for of, kind in mach.MODES.items()}


def callback_of(token: int, code: Code) -> mach.CallbackOp:
    """The callback with these instructions."""
    writer = _Writer()
    for members in code:
        writer.instruction(members)
    return mach.CallbackOp(token, writer.operations)


class _Writer:
    """Writes operations; knows which value each register holds."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._file = mach.RegisterFile()

    def instruction(self, members: Instruction) -> None:
        code, kind = members["op"], mode(members)
        assert isinstance(code, VectorOp)
        assert isinstance(kind, Mode)
        row, single = OPERATIONS[code], kind is Mode.SCALAR
        has_b = "b" in members and ("b" in row.operands or row.b_replaces_c)
        has_c = kind is Mode.REDUCE or ("c" in row.operands and not (row.b_replaces_c and has_b))
        operands = [
            self._read(operand(members, "a")) if "a" in row.operands else None,
            self._read(operand(members, "b")) if has_b else None,
            self._register(_register(number(members, "c"), is_scalar=single)) if has_c else None,
        ]
        result = None
        if row.has_result:
            result = _register(number(members, "destination"), is_scalar=kind is not Mode.VECTOR)
        length = None if single or not row.operands else number(members, "length")
        flags = [flag for flag in ("octets", "clear", "rotate", "rotate_scalars") if members.get(flag)]
        op = CLASSES[kind](code, operands, result, length, flags)
        self.operations.append(op)
        self._file.run(op)

    def _read(self, place: Register) -> SSAValue:
        kind, number = place
        if kind is OperandKind.SCALAR:
            return self._add(mach.PopOp("scalar", keep=False))
        if kind is OperandKind.QUEUE:
            if number >= KEPT:
                return self._add(mach.KeptOp(number - KEPT))
            pops_head, keeps = number >= HEAD, KEEP <= number < HEAD
            return self._add(mach.PopOp(mach.QUEUES[number % KEEP], keep=keeps, head=pops_head))
        return self._register(_register(number, is_scalar=kind is SCALAR))

    def _register(self, register: RegisterType) -> SSAValue:
        held = self._file.held(register)
        if held is None:
            held = self._add(mach.RegisterOp(register))
            held.name_hint = register.register_name.data
            self._file.hold(held)
        return held

    def _add(self, op: mach.RegisterOp | mach.PopOp | mach.KeptOp) -> SSAValue:
        self.operations.append(op)
        return op.result


def _register(number: int, *, is_scalar: bool) -> RegisterType:
    return (ScalarRegister if is_scalar else VectorRegister).from_index(number)
