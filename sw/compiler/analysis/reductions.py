"""Recognises what a loop with ``daedal.reduce`` does with each f32 that it carries."""

from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import loop_name
from daedal.compiler.dialects import slcv
from daedal.compiler.transforms.builders.selections import kept
from daedal.errors import UnsupportedOperation

_NEUTRAL = {"max": -inf, "min": inf}
"""What changes nothing; for sums it is a zero."""


@dataclass(frozen=True)
class Reduction:
    """One reduction: of ``values``, as ``slcv.reduce`` of that kind, and then with ``initial``.

    ``combining`` are the operations of the loop that the reduction takes the place of.
    """

    kind: str
    values: tuple[SSAValue, ...]
    initial: SSAValue
    combining: tuple[Operation, ...]

    @property
    def is_neutral(self) -> bool:
        """Whether ``initial`` changes nothing."""
        op = self.initial.owner
        if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, FloatAttr):
            return False
        return bool(op.value.value.data == _NEUTRAL.get(self.kind, 0.0))

    def combine(self, total: SSAValue) -> Operation:
        """The operation that takes ``initial`` in."""
        if self.kind in _NEUTRAL:
            return (slcv.KeepGreaterOp if self.kind == "max" else slcv.KeepLessOp)(total, self.initial)
        return arith.AddfOp(total, self.initial)


def reductions_of(loop: scf.ForOp) -> list[Reduction]:
    """The reductions of a loop, in the order of its results; UnsupportedOperation for what is none."""
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    carried = zip(loop.body.block.args[1:], end.operands, loop.iter_args, strict=True)
    return [_reduction(loop, argument, value, initial) for argument, value, initial in carried]


def _reduction(loop: scf.ForOp, carried: SSAValue, value: SSAValue, initial: SSAValue) -> Reduction:
    op = value.owner
    found = None
    if isinstance(op, arith.AddfOp) and (op.lhs is carried) != (op.rhs is carried):
        added = op.rhs if op.lhs is carried else op.lhs
        product = added.owner
        if isinstance(product, arith.MulfOp) and product.parent is loop.body.block:
            found = Reduction("mul_add", (product.lhs, product.rhs), initial, (op,))
        else:
            found = Reduction("add", (added,), initial, (op,))
    elif isinstance(op, math.FmaOp) and op.c is carried:
        found = Reduction("fma", (op.a, op.b), initial, (op,))
    elif isinstance(op, arith.SelectOp) and op.rhs is carried and isinstance(op.cond.owner, Operation):
        keep = kept(op, op.cond.owner)
        if keep is not None:
            kind = "max" if keep is slcv.KeepGreaterOp else "min"
            found = Reduction(kind, (op.lhs,), initial, (op, op.cond.owner))
    if found is None or any(all(use.operation is not other for other in found.combining) for use in carried.uses):
        raise UnsupportedOperation(
            f"{loop_name(loop)} with daedal.reduce must do nothing with %{carried.name_hint or '?'} but add to it "
            "(addf, or math.fma with it as the addend), or keep the greater or lesser (cmpf ogt or olt of the element "
            "with it, and select)"
        )
    return found
