"""Counters: loop-carried integers that count iterations."""

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of, loop_name
from daedal.errors import UnsupportedOperation

EQUAL = 0
"""Predicate ``eq`` of ``arith.cmpi``."""


def _is_increment(value: SSAValue, counter: SSAValue) -> bool:
    op = value.owner
    if not isinstance(op, arith.AddiOp):
        return False
    return (op.lhs is counter and constant_of(op.rhs) == 1) or (op.rhs is counter and constant_of(op.lhs) == 1)


def _yielded(block: Block | None, position: int) -> SSAValue | None:
    """What ``block`` yields there; None if it yields nothing, which xDSL lets pass for an ``scf.if`` with results."""
    last = None if block is None else block.last_op
    return last.operands[position] if isinstance(last, scf.YieldOp) and position < len(last.operands) else None


def first_of(op: Operation) -> tuple[scf.ForOp, int] | None:
    """The loop and the counter (its position among the carried values) that ``op`` compares with 0, if it
    does.
    """
    if not isinstance(op, arith.CmpiOp) or op.predicate.value.data != EQUAL:
        return None
    for counter, zero in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        loop = counter.block.parent_op() if isinstance(counter, BlockArgument) else None
        if constant_of(zero) == 0 and isinstance(counter, BlockArgument) and isinstance(loop, scf.ForOp):
            return (loop, counter.index - 1) if counter.index > 0 else None
    return None


def count_condition(loop: scf.ForOp, position: int) -> SSAValue | None:
    """The condition under which loop-carried value ``position`` counts an iteration; None if it counts all.

    Raises UnsupportedOperation if the value is anything but a counter that starts at 0.
    """
    counter = loop.body.block.args[position + 1]
    following = _yielded(loop.body.block, position)
    assert following is not None
    if constant_of(loop.iter_args[position]) == 0:
        if _is_increment(following, counter):
            return None
        op = following.owner
        if isinstance(op, scf.IfOp):
            at = next(i for i, result in enumerate(op.results) if result is following)
            then = _yielded(op.true_region.block, at)
            otherwise = _yielded(op.false_region.first_block, at)
            if then is not None and _is_increment(then, counter) and otherwise is counter:
                return op.cond
        if isinstance(op, arith.SelectOp) and _is_increment(op.lhs, counter) and op.rhs is counter:
            return op.cond
    raise UnsupportedOperation(
        f"{loop_name(loop)}: a value carried from one iteration to the next must be a counter that "
        "starts at 0, "
        f"not %{counter.name_hint or '?'}; keep sums in a local row (memref.alloca)"
    )
