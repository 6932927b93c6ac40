"""Dialect ``mach``: a program as the machine has it. Each operation is one or a few program words.

Values are registers (``mach_types``): numbers in words are those of the registers, and the numbers of steps and
instructions follow from their order.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects import mach_access, mach_execute, mach_types
from daedal.compiler.dialects.dlc import number


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """The program for the configuration with the hash ``config``; ``arguments`` says what the launch arguments are."""

    name = "mach.program"
    config = prop_def(IntegerAttr[I64])
    arguments = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "`config` $config `arguments` $arguments $body attr-dict"

    def __init__(self, config: int, arguments: Sequence[str], operations: Sequence[Operation]) -> None:
        super().__init__(
            properties={
                "config": number(config),
                "arguments": ArrayAttr([StringAttr(argument) for argument in arguments]),
            },
            regions=[Region(Block(operations))],
        )

    def verify_(self) -> None:
        for op in self.body.block.ops:
            if not isinstance(op, mach_execute.LengthOp | mach_execute.CallbackOp | mach_access.NestOp):
                raise VerifyException(f"{op.name} must not stand in a program: lengths, callbacks and nests do")


MACH = Dialect(
    "mach",
    [
        ProgramOp,
        mach_execute.LengthOp,
        mach_execute.CallbackOp,
        mach_execute.RegisterOp,
        mach_execute.PopOp,
        mach_execute.KeptOp,
        mach_execute.VectorInstructionOp,
        mach_execute.ScalarInstructionOp,
        mach_execute.ReduceInstructionOp,
        mach_access.NestOp,
        mach_access.ConstantOp,
        mach_access.LevelOp,
        mach_access.LoadOp,
        mach_access.CheckOp,
        mach_access.ComputeOp,
        mach_access.CountOp,
        mach_access.EventOp,
        mach_access.StepOp,
        mach_access.PushScalarOp,
        mach_access.PushTokenOp,
        mach_access.PushStoreOp,
        mach_access.FetchOp,
    ],
    [
        mach_types.VectorRegister,
        mach_types.ScalarRegister,
        mach_types.StreamRegister,
        mach_types.ConstantType,
        mach_types.PopType,
    ],
)
