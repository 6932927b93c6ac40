"""Pass ``clamp-counts``: a count that rows are divided by is never negative.

The machine divides by ``max(n, 1)`` for a count ``n`` from 0 (``DIVIDE_COUNT``). Where ``n`` may be negative, the
access unit, or the host if a launch decides it, is made to compute ``max(n, 0)`` first.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.analysis.scalars import counted, maximum_of, without_casts

_GROWING = (arith.AddiOp, arith.MuliOp, arith.MinSIOp)
"""What is not negative if both operands are not."""


@dataclass(frozen=True)
class ClampCounts(ModulePass):
    """See the module."""

    name = "clamp-counts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clamp the counts of all divisions."""
        for division in [inner for inner in op.walk() if isinstance(inner, arith.DivfOp)]:
            count = counted(division.rhs)
            if isinstance(count, SSAValue) and not is_natural(count, division):
                _clamp(division.rhs, count)


def is_natural(value: SSAValue, at: Operation) -> bool:
    """Whether an integer is known to be 0 or more where ``at`` is reached."""
    value = without_casts(value)
    op = value.owner
    constant = constant_of(value)
    if constant is not None:
        return constant >= 0
    if isinstance(op, memref.DimOp | arith.ExtUIOp | scf.ForOp):  # what a loop gives is a number of iterations
        return True
    if isinstance(op, arith.MaxSIOp):
        return any(is_natural(operand, at) for operand in op.operands)
    if isinstance(op, _GROWING):
        return all(is_natural(operand, at) for operand in op.operands)
    return _is_length(value, at)


def _is_length(value: SSAValue, at: Operation) -> bool:
    """Whether a loop goes over so many: the machine refuses bounds that are the wrong way round."""
    op = value.owner
    if isinstance(op, arith.SubiOp) and _has_loop(op.rhs, op.lhs, at):
        return True
    sums = [use.operation for use in value.uses if isinstance(use.operation, arith.AddiOp)]
    return any(_has_loop(start, total.result, at) for total in sums for start in total.operands if start is not value)


def _has_loop(lower: SSAValue, upper: SSAValue, at: Operation) -> bool:
    """Whether a loop between these bounds runs wherever ``at`` does: it is in a block around it."""
    loops = [use.operation for use in lower.uses if isinstance(use.operation, scf.ForOp)]
    around = list(_blocks(at))
    return any(loop.lb is lower and loop.ub is upper and loop.parent in around for loop in loops)


def _blocks(op: Operation) -> Iterator[Block]:
    block = op.parent
    while block is not None:
        yield block
        block = block.parent_block()


def _clamp(divisor: SSAValue, count: SSAValue) -> None:
    """``max(count, 0)`` instead of ``count`` in the maximum that is divided by."""
    maximum = maximum_of(divisor)
    assert isinstance(maximum, Operation)
    assert isinstance(count.type, IndexType | IntegerType)
    zero = arith.ConstantOp(IntegerAttr(0, count.type))
    natural = arith.MaxSIOp(count, zero)
    natural.result.name_hint = "natural"
    Rewriter.insert_op([zero, natural], InsertPoint.before(maximum))
    maximum.operands[list(maximum.operands).index(count)] = natural.result
