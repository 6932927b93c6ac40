"""``arith.cmpf`` and ``arith.select`` as operations of ``slcv``, on rows or single f32 alike."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.scalars import is_float
from daedal.compiler.dialects import slcv, slcv_scalars
from daedal.errors import UnsupportedOperation

_KEEPS: dict[int, type[slcv.KeepGreaterOp | slcv.KeepLessOp]] = {
    2: slcv.KeepGreaterOp,
    4: slcv.KeepLessOp,
}
"""What ``a p b ? a : b`` is for predicates ogt and olt of ``arith.cmpf``."""

_MASKS: dict[int, tuple[tuple[str, ...], bool]] = {
    1: (("equal",), False),
    2: (("greater",), False),
    3: (("greater", "equal"), False),
    4: (("less",), False),
    5: (("less", "equal"), False),
    6: (("greater", "less"), False),
    8: (("greater", "less"), True),
    9: (("less", "equal"), True),
    10: (("less",), True),
    11: (("greater", "equal"), True),
    12: (("greater",), True),
    13: (("equal",), True),
}
"""Predicate of ``arith.cmpf`` -> comparisons of which one holds, or, if negated, none does."""

Add = Callable[[Operation], SSAValue]
"""Adds an operation; its result."""


def kept(select: arith.SelectOp, compare: Operation) -> type[slcv.KeepGreaterOp | slcv.KeepLessOp] | None:
    """The operation that ``a p b ? a : b`` is; None if it is not of that form."""
    if not isinstance(compare, arith.CmpfOp) or (compare.lhs, compare.rhs) != (select.lhs, select.rhs):
        return None
    return _KEEPS.get(compare.predicate.value.data)


def selected(select: arith.SelectOp, value: Callable[[SSAValue], SSAValue], add: Add) -> SSAValue:
    """What ``select`` chooses; ``value`` gives what became of an f32."""
    compare = select.cond.owner
    keep = kept(select, compare) if isinstance(compare, Operation) else None
    if keep is not None:
        return add(keep(value(select.lhs), value(select.rhs)))
    mask, negated = _mask(select.cond, value, add)
    a, b = value(select.lhs), value(select.rhs)
    return add(slcv_scalars.SelectOp(mask, *((b, a) if negated else (a, b))))


def _mask(condition: SSAValue, value: Callable[[SSAValue], SSAValue], add: Add) -> tuple[SSAValue, bool]:
    """A number that is zero where ``condition`` does not hold, or, if negated, where it does."""
    op = condition.owner
    if isinstance(op, arith.CmpfOp) and is_float(op.lhs) and op.predicate.value.data in _MASKS:
        kinds, negated = _MASKS[op.predicate.value.data]
        masks = [add(slcv_scalars.CompareOp(kind, value(op.lhs), value(op.rhs))) for kind in kinds]
        return (masks[0] if len(masks) == 1 else add(arith.AddfOp(masks[0], masks[1]))), negated
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        (first, no_first), (second, no_second) = (_mask(one, value, add) for one in (op.lhs, op.rhs))
        if no_first == no_second:
            is_product = isinstance(op, arith.AndIOp) != no_first
            return add((arith.MulfOp if is_product else slcv.KeepGreaterOp)(first, second)), no_first
    raise UnsupportedOperation(
        "the condition of an arith.select of f32 must be an arith.cmpf of f32 (not ord, uno, false or true), or "
        "arith.andi or arith.ori of two such, both with ordered or both with unordered predicates"
    )
