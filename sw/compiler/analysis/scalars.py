"""What the passes share about single f32 that a callback computes: they live in scalar registers.

Other single f32 (loads, constants, and simple arithmetic on these) need none: the access unit sends them, and what is
done with them is done on rows.
"""

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import SINGLE_ONLY, constant_of, is_reduction, is_row_loop
from daedal.compiler.dialects import slcv, slcv_scalars
from daedal.compiler.dialects.elements import LANE
from daedal.compiler.dialects.narrow_packed import HeadOp, UnpackOp

CASTS = (arith.IndexCastOp, arith.ExtSIOp)

LARGEST_COUNT = 1 << 24
"""Counts are below this (see VectorOp.DIVIDE_COUNT)."""

PLAIN = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, math.FmaOp, math.AbsFOp)
"""Arithmetic that rows have as well."""


def counted(value: SSAValue) -> SSAValue | int | None:
    """The count n, if ``value`` is max(n, 1) as f32, or a number from 1 that a count can be."""
    convert = value.owner
    if isinstance(convert, arith.ConstantOp) and isinstance(convert.value, FloatAttr):
        number = convert.value.value.data
        return int(number) if 1 <= number < LARGEST_COUNT and number == int(number) else None
    maximum = maximum_of(value)
    if maximum is None:
        return None
    for count, one in ((maximum.lhs, maximum.rhs), (maximum.rhs, maximum.lhs)):
        if constant_of(one) == 1:
            return count
    return None


def maximum_of(value: SSAValue) -> arith.MaxSIOp | None:
    """The maximum of integers that ``value`` is, as f32."""
    convert = value.owner
    if not isinstance(convert, arith.SIToFPOp | arith.UIToFPOp):
        return None
    maximum = without_casts(convert.input).owner
    return maximum if isinstance(maximum, arith.MaxSIOp) else None


def without_casts(value: SSAValue) -> SSAValue:
    """The integer that was cast to ``value``."""
    while isinstance(value.owner, CASTS):
        value = value.owner.operands[0]
    return value


def is_float(value: SSAValue) -> bool:
    """Whether ``value`` is what lanes compute with."""
    return value.type == LANE


def is_computed(value: SSAValue) -> bool:
    """Whether a single f32 takes the scalar unit: it comes from a reduction, or from what rows cannot do."""
    seen: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        op = value.owner
        if value in seen or not isinstance(op, Operation):
            continue
        seen.add(value)
        if isinstance(op, HeadOp | UnpackOp) and value is op.scale:
            return True  # a bias is added to rows as it comes
        if is_reduction(op) or isinstance(
            op, (*SINGLE_ONLY, slcv_scalars.ReduceOp, slcv_scalars.ElementOp, slcv_scalars.CompareOp)
        ):
            return True
        if isinstance(op, (arith.SelectOp, slcv_scalars.SelectOp, slcv.KeepGreaterOp, slcv.KeepLessOp)) and is_float(
            value
        ):
            return True
        if isinstance(op, arith.DivfOp):
            if counted(op.rhs) is None:
                return True
            waiting.append(op.lhs)
        elif isinstance(op, PLAIN):
            waiting += op.operands
    return False


def is_access_loop(op: Operation) -> bool:
    """Whether ``op`` is a loop of the access unit."""
    return isinstance(op, scf.ForOp) and not is_row_loop(op)


def is_local(buffer: SSAValue) -> bool:
    """Whether a buffer is a local row."""
    return isinstance(buffer.owner, memref.AllocaOp)
