"""Pass ``expand-functions``: exponentials and sigmoids become operations that the scalar unit has; see
``daedal.compiler.functions``.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.dialects import slcv, slcv_scalars
from daedal.compiler.functions import exponential, sigmoid


class _Maker:
    """``Arithmetic`` that puts operations in front of ``before``; constants go to the top of the function."""

    def __init__(self, before: Operation, top: func.FuncOp, constants: dict[float, SSAValue]) -> None:
        self._before, self._top, self._constants = before, top, constants

    def _make(self, op: Operation) -> SSAValue:
        assert self._before.parent is not None
        self._before.parent.insert_op_before(op, self._before)
        return op.results[0]

    def constant(self, number: float) -> SSAValue:
        if number not in self._constants:
            op = arith.ConstantOp(FloatAttr(number, f32))
            first = self._top.body.block.first_op
            assert first is not None
            self._top.body.block.insert_op_before(op, first)
            self._constants[number] = op.result
        return self._constants[number]

    def multiply(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(arith.MulfOp(a, b))

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(arith.AddfOp(a, b))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        return self._make(math.FmaOp(a, b, c))

    def divide(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(arith.DivfOp(a, b))

    def absolute(self, a: SSAValue) -> SSAValue:
        return self._make(math.AbsFOp(a))

    def keep_greater(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(slcv.KeepGreaterOp(a, b))

    def keep_less(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(slcv.KeepLessOp(a, b))

    def equal(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(slcv_scalars.CompareOp("equal", a, b))

    def select(self, mask: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._make(slcv_scalars.SelectOp(mask, a, b))

    def to_integer(self, a: SSAValue) -> SSAValue:
        return self._make(slcv_scalars.ToIntegerOp(a))

    def to_float(self, a: SSAValue) -> SSAValue:
        return self._make(arith.SIToFPOp(a, f32))

    def scale(self, a: SSAValue, power: SSAValue) -> SSAValue:
        return self._make(slcv_scalars.ScaleOp(a, power))


@dataclass(frozen=True)
class ExpandFunctions(ModulePass):
    """See the module."""

    name = "expand-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand in every function."""
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp) and not f.is_declaration]:
            constants: dict[float, SSAValue] = {}
            for called in [c for c in function.walk() if isinstance(c, math.ExpOp | slcv_scalars.SigmoidOp)]:
                maker = _Maker(called, function, constants)
                expand = sigmoid if isinstance(called, slcv_scalars.SigmoidOp) else exponential
                new = expand(maker, called.operand)
                new.name_hint = called.result.name_hint
                called.result.replace_all_uses_with(new)
                Rewriter.erase_op(called)
