"""Program words of the execute program in ``mach``: lengths of rows, callbacks, instructions."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from daedal.compiler.backend.access_words import number_of
from daedal.compiler.dialects.mach_execute import QUEUES, CallbackOp, InstructionOp, KeptOp, LengthOp, PopOp
from daedal.compiler.dialects.mach_types import ScalarRegister
from daedal.hw.isa.instructions import HEAD, KEEP, KEPT, OperandKind
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField


def execute_words(operations: Sequence[Operation]) -> list[Word]:
    """The words of lengths and callbacks, in this order; instructions follow one another from address 0 on."""
    lengths = [op for op in operations if isinstance(op, LengthOp)]
    callbacks = [op for op in operations if isinstance(op, CallbackOp)]
    words = [Word(op.field, op.register.value.data, op.elements.value.data) for op in lengths]
    code: list[Word] = []
    for callback in callbacks:
        words.append(Word(CallbackField.START, callback.token.value.data, len(code)))
        last = callback.instructions[-1]
        code += [_instruction(len(code) + n, op, last=op is last) for n, op in enumerate(callback.instructions)]
    return words + code


def _instruction(address: int, op: InstructionOp, *, last: bool) -> Word:
    return Word.packed(
        InstructionField.CODE,
        address,
        op=op.code,
        destination=0 if op.result is None else number_of(op.result),
        a=_operand(op.a),
        b=_operand(op.b),
        c=0 if op.c is None else number_of(op.c),
        length=0 if op.length is None else op.length.value.data,
        octets=int(op.octets is not None),
        clear=int(op.clear is not None),
        last=int(last),
        mode=op.mode,
        rotate=int(op.rotate is not None),
        rotate_scalars=int(op.rotate_scalars is not None),
    )


def _operand(value: SSAValue | None) -> dict[str, object]:
    """The members of operand ``a`` or ``b``."""
    if value is None:
        return {}
    pop = value.owner
    if isinstance(pop, KeptOp):
        return {"kind": OperandKind.QUEUE, "number": KEPT + pop.beyond.value.data}
    if isinstance(pop, PopOp):
        if pop.queue.data == "scalar":
            return {"kind": OperandKind.SCALAR}
        added = HEAD if pop.head is not None else KEEP if pop.keep is not None else 0
        return {"kind": OperandKind.QUEUE, "number": QUEUES.index(pop.queue.data) + added}
    is_scalar = isinstance(value.type, ScalarRegister)
    return {"kind": OperandKind.SCALAR_REGISTER if is_scalar else OperandKind.REGISTER, "number": number_of(value)}
