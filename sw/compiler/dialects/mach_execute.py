"""Operations of ``mach`` for the execute program: lengths of rows, callbacks, and their instructions.

An instruction names registers by the types of its operands and its result. A register holds a value from the
instruction that gives it to the next one that writes to the register, empties it or rotates its kind;
``mach.register`` is what it holds otherwise.
"""

from abc import ABC
from collections.abc import Iterable, Sequence

from xdsl.backend.register_type import RegisterType
from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.dlc import number
from daedal.compiler.dialects.mach_types import POP, PopType, ScalarRegister, VectorRegister, named
from daedal.hw.isa.instructions import Mode, VectorOp
from daedal.hw.isa.operations import OPERATIONS
from daedal.hw.isa.operations import Operation as Row
from daedal.hw.isa.words import LengthField

QUEUES = ("vector0", "vector1", "scalar")
"""What an instruction can pop."""

REGISTER = BaseAttr(VectorRegister) | BaseAttr(ScalarRegister)
POPPED = BaseAttr(PopType)

MOST_KEPT = 8
"""How many rows beyond the oldest one ``mach.kept`` can ask for."""


@irdl_op_definition
class LengthOp(IRDLOperation):
    """A length register, the elements that it says, and the name of their type in memory if that is not binary32."""

    name = "mach.length"
    register = prop_def(IntegerAttr[I64])
    elements = prop_def(IntegerAttr[I64])
    kind = opt_prop_def(StringAttr)
    assembly_format = "$register `elements` $elements (`of` $kind^)? attr-dict"

    def __init__(self, register: int, elements: int, kind: LengthField = LengthField.ELEMENTS) -> None:
        named = None if kind is LengthField.ELEMENTS else StringAttr(kind.name)
        super().__init__(properties={"register": number(register), "elements": number(elements), "kind": named})

    @property
    def field(self) -> LengthField:
        """The word that sets it."""
        return LengthField.ELEMENTS if self.kind is None else LengthField[self.kind.data]

    def verify_(self) -> None:
        if self.kind is not None and self.kind.data not in LengthField.__members__:
            names = ", ".join(LengthField.__members__)
            raise VerifyException(f"a length must be of {names}, not of {self.kind.data!r}")


@irdl_op_definition
class RegisterOp(IRDLOperation):
    """What a register holds here."""

    name = "mach.register"
    result = result_def(REGISTER)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, register: RegisterType) -> None:
        super().__init__(result_types=[register])

    def verify_(self) -> None:
        kind = self.result.type
        if isinstance(kind, RegisterType) and not kind.is_allocated:
            raise VerifyException("the register must have a number")


@irdl_op_definition
class PopOp(IRDLOperation):
    """The next of a queue, popped by the next instruction; with ``keep`` the machine also keeps the row.

    With ``head`` it is the next number of the head of the row.
    """

    name = "mach.pop"
    queue = prop_def(StringAttr)
    keep = opt_prop_def(UnitAttr)
    head = opt_prop_def(UnitAttr)
    result = result_def(PopType)
    assembly_format = "$queue (`keep` $keep^)? (`head` $head^)? attr-dict `:` type($result)"

    def __init__(self, queue: str, *, keep: bool = False, head: bool = False) -> None:
        flags = {"keep": UnitAttr() if keep else None, "head": UnitAttr() if head else None}
        properties = {"queue": StringAttr(queue), **flags}
        super().__init__(properties=properties, result_types=[POP])

    def verify_(self) -> None:
        if self.queue.data not in QUEUES:
            raise VerifyException(f"queue must be one of {', '.join(QUEUES)}, not {self.queue.data!r}")
        if self.keep is not None and self.queue.data == "scalar":
            raise VerifyException("only rows can be kept, not what the scalar queue has")
        if self.head is not None and (self.keep is not None or self.queue.data == "scalar"):
            raise VerifyException("only rows have a head, and it is not kept")


@irdl_op_definition
class KeptOp(IRDLOperation):
    """The oldest row that is kept, if there are more than ``beyond``; else what uses it does nothing."""

    name = "mach.kept"
    beyond = prop_def(IntegerAttr[I64])
    result = result_def(PopType)
    assembly_format = "$beyond attr-dict `:` type($result)"

    def __init__(self, beyond: int) -> None:
        super().__init__(properties={"beyond": number(beyond)}, result_types=[POP])

    def verify_(self) -> None:
        if not 0 <= self.beyond.value.data < MOST_KEPT:
            raise VerifyException(f"beyond must be from 0 to {MOST_KEPT - 1}, not {self.beyond.value.data}")


class InstructionOp(IRDLOperation, ABC):
    """An instruction; its name says the mode.

    ``a``, ``b`` and ``c`` are as the table of operations has them; ``clear`` empties the register ``a`` once it is
    read, ``octets`` is for reductions, ``rotate`` and ``rotate_scalars`` rename registers from the next instruction on.
    """

    operation = prop_def(StringAttr)
    a = opt_operand_def(REGISTER | POPPED)
    b = opt_operand_def(REGISTER | POPPED)
    c = opt_operand_def(REGISTER)
    length = opt_prop_def(IntegerAttr[I64])
    octets = opt_prop_def(UnitAttr)
    clear = opt_prop_def(UnitAttr)
    rotate = opt_prop_def(UnitAttr)
    rotate_scalars = opt_prop_def(UnitAttr)
    result = opt_result_def(REGISTER)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$operation (`a` $a^ `:` type($a))? (`b` $b^ `:` type($b))? (`c` $c^ `:` type($c))? (`length` $length^)? "
        "(`octets` $octets^)? (`clear` $clear^)? (`rotate` $rotate^)? (`rotate_scalars` $rotate_scalars^)? attr-dict "
        "(`->` type($result)^)?"
    )

    def __init__(
        self,
        operation: VectorOp,
        operands: Sequence[SSAValue | None],
        result: RegisterType | None,
        length: int | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        properties: dict[str, Attribute | None] = {flag: UnitAttr() for flag in flags}
        properties["operation"] = StringAttr(operation.name.lower())
        properties["length"] = None if length is None else number(length)
        super().__init__(operands=operands, properties=properties, result_types=[result])

    @property
    def mode(self) -> Mode:
        """What it works on."""
        return MODES[type(self)]

    @property
    def code(self) -> VectorOp:
        """Its operation."""
        return VectorOp[self.operation.data.upper()]

    def verify_(self) -> None:
        known = [op.name.lower() for op, row in OPERATIONS.items() if row.may_have(self.mode)]
        if self.operation.data not in known:
            raise VerifyException(f"operation must be one of {', '.join(known)}, not {self.operation.data!r}")
        row = OPERATIONS[self.code]
        self._verify_operands(row)
        wanted = VectorRegister if self.mode is Mode.VECTOR else ScalarRegister
        if (self.result is not None) != row.has_result:
            raise VerifyException(f"{self.operation.data} must have {'a' if row.has_result else 'no'} result")
        if self.result is not None and not isinstance(self.result.type, wanted):
            raise VerifyException(f"the result must be a {wanted.name}, not {self.result.type}")
        if self.c is not None and not isinstance(self.c.type, self._addend()):
            raise VerifyException(f"c must be a {self._addend().name}, not {self.c.type}")
        if self.octets is not None and self.mode is not Mode.REDUCE:
            raise VerifyException("octets must be of a reduction")
        if (self.length is None) != (self.mode is Mode.SCALAR or not row.operands):
            raise VerifyException("an instruction on rows must have a length, and no other one")

    def _verify_operands(self, row: Row) -> None:
        if self.mode is Mode.REDUCE:
            wanted = {*row.operands} | {"c"}
        elif row.b_replaces_c and self.b is not None:
            wanted = {"a", "b"}
        elif row.takes_head and self.b is None:
            wanted = {"a", "c"}
        else:
            wanted = {*row.operands}
        given = {name for name, operand in zip("abc", (self.a, self.b, self.c), strict=True) if operand is not None}
        if given != wanted:
            raise VerifyException(
                f"the operands of {self.operation.data} must be {_listed(wanted)}, not {_listed(given)}"
            )
        if self.a is not None and isinstance(self.a.type, PopType) and (row.register_a or self.clear is not None):
            raise VerifyException("a must be a register here, not a pop")

    def _addend(self) -> type[RegisterType]:
        return ScalarRegister if self.mode is Mode.SCALAR else VectorRegister


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names)) or "none"


@irdl_op_definition
class VectorInstructionOp(InstructionOp):
    """An instruction on the ``length`` elements of rows."""

    name = "mach.vector"


@irdl_op_definition
class ScalarInstructionOp(InstructionOp):
    """An instruction on single numbers."""

    name = "mach.scalar"


@irdl_op_definition
class ReduceInstructionOp(InstructionOp):
    """An instruction that makes one number of a row; ``c`` is a register for partial results, empty afterwards."""

    name = "mach.reduce"


MODES: dict[type[InstructionOp], Mode] = {
    VectorInstructionOp: Mode.VECTOR,
    ScalarInstructionOp: Mode.SCALAR,
    ReduceInstructionOp: Mode.REDUCE,
}
"""Class -> mode of its instructions."""


class RegisterFile:
    """Which value each register holds, from instruction to instruction."""

    def __init__(self) -> None:
        self._values: dict[Attribute, SSAValue] = {}

    def held(self, register: Attribute) -> SSAValue | None:
        """The value in a register; None if it is of no instruction before."""
        return self._values.get(register)

    def hold(self, value: SSAValue) -> None:
        """Note that a value is in the register of its type."""
        self._values[value.type] = value

    def run(self, op: InstructionOp) -> None:
        """Do to the registers what an instruction does."""
        if (op.clear is not None or OPERATIONS[op.code].stores) and op.a is not None:
            self._values.pop(op.a.type, None)
        if op.mode is Mode.REDUCE and op.c is not None:
            self._values.pop(op.c.type, None)
        if op.result is not None:
            self.hold(op.result)
        for flag, kind in ((op.rotate, VectorRegister), (op.rotate_scalars, ScalarRegister)):
            if flag is not None:
                self._values = {of: value for of, value in self._values.items() if not isinstance(of, kind)}


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """What the execute unit does for a token of this number."""

    name = "mach.callback"
    token = prop_def(IntegerAttr[I64])
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$token $body attr-dict"

    def __init__(self, token: int, operations: Sequence[Operation]) -> None:
        super().__init__(properties={"token": number(token)}, regions=[Region(Block(operations))])

    @property
    def instructions(self) -> list[InstructionOp]:
        """The instructions, in order."""
        return [op for op in self.body.block.ops if isinstance(op, InstructionOp)]

    def verify_(self) -> None:
        if not self.instructions:
            raise VerifyException("a callback must have an instruction, NOP if there is nothing to do")
        file = RegisterFile()
        pops: list[SSAValue] = []
        for op in self.body.block.ops:
            match op:
                case RegisterOp():
                    file.hold(op.result)
                case PopOp() | KeptOp():
                    pops.append(op.result)
                case InstructionOp():
                    _verify_instruction(op, file, pops)
                    pops = []
                    file.run(op)
                case _:
                    raise VerifyException(f"{op.name} cannot stand in a callback")
        if pops:
            raise VerifyException(f"{named(pops[0])} must be popped by an instruction behind it")


def _verify_instruction(op: InstructionOp, file: RegisterFile, pops: list[SSAValue]) -> None:
    """That registers still hold the operands, and that it pops what stands before it, once."""
    taken = [operand for operand in op.operands if isinstance(operand.type, PopType)]
    if len(taken) != len(pops) or any(value not in taken for value in pops):
        raise VerifyException(f"{op.operation.data} must pop what stands in front of it, once each, and nothing else")
    for operand in op.operands:
        register = operand.type
        if isinstance(register, RegisterType) and register.is_allocated and file.held(register) is not operand:
            raise VerifyException(
                f"{register.register_name.data} must hold {named(operand)} where {op.operation.data} reads it"
            )
