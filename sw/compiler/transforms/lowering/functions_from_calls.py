"""Pass ``functions-from-calls``: calls of ``@daedal_exp`` and ``@daedal_sigmoid`` become operations."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.dialects import slcv_scalars
from daedal.compiler.dialects.elements import LANE
from daedal.errors import UnsupportedOperation

FUNCTIONS = ("daedal_exp", "daedal_sigmoid")
"""The functions of one f32 that can be called."""


def _made(name: str, operand: SSAValue) -> Operation:
    return math.ExpOp(operand) if name == "daedal_exp" else slcv_scalars.SigmoidOp(operand)


def _replace(call: func.CallOp) -> None:
    name = call.callee.root_reference.data
    types = [value.type for value in (*call.arguments, *call.res)]
    if name not in FUNCTIONS or len(types) != 2 or not all(kind == LANE for kind in types):
        known = " or ".join(f"@{known}" for known in FUNCTIONS)
        raise UnsupportedOperation(f"func.call @{name} must be of {known}, from one f32 to one f32")
    Rewriter.replace_op(call, _made(name, call.arguments[0]))


@dataclass(frozen=True)
class FunctionsFromCalls(ModulePass):
    """See the module."""

    name = "functions-from-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace all calls, and drop the declarations of these functions."""
        for call in [inner for inner in op.walk() if isinstance(inner, func.CallOp)]:
            _replace(call)
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.is_declaration:
                Rewriter.erase_op(function)
