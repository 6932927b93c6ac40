"""What the passes on loops share: which loops run along a row, and how loops are named in messages."""

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.dialects import slc, slcv_scalars
from daedal.compiler.dialects.elements import LANE, row_element
from daedal.compiler.dialects.narrow_packed import ElementOp
from daedal.errors import UnsupportedOperation

SINGLE_ONLY = (math.SqrtOp, math.ExpOp, slcv_scalars.SigmoidOp)
"""f32 operations that the machine has for single f32 only."""


def constant_of(value: SSAValue) -> int | None:
    """The number, if ``value`` is a constant integer."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def loop_name(loop: scf.ForOp | slc.ForOp) -> str:
    """How a message calls a loop: by its induction variable."""
    name = loop.body.block.args[0].name_hint
    return f"loop %{name}" if name else "a loop"


@contextmanager
def naming(op: slc.CallbackOp) -> Iterator[None]:
    """What is refused in a callback is said with the loop around it, if the message names nothing else."""
    try:
        yield
    except UnsupportedOperation as error:
        loop = op.parent_op()
        if "%" in str(error) or not isinstance(loop, slc.ForOp):
            raise
        raise UnsupportedOperation(f"{loop_name(loop)}: {error}") from error


def root_of(loop: slc.ForOp) -> slc.ForOp:
    """The outermost loop around ``loop``."""
    around = loop.parent_op()
    while isinstance(around, slc.ForOp):
        loop, around = around, around.parent_op()
    return loop


def is_within(op: Operation, block: Block) -> bool:
    """Whether ``op`` stands in ``block`` or in a region of one of its operations."""
    parent: Operation | None = op
    while parent is not None:
        if parent.parent is block:
            return True
        parent = parent.parent_op()
    return False


def is_float_access(op: Operation) -> bool:
    """Whether ``op`` loads or stores an element of a row."""
    if isinstance(op, memref.LoadOp):
        return row_element(op.res.type) is not None
    return isinstance(op, memref.StoreOp) and row_element(op.value.type) is not None


def column_offset(index: SSAValue, column: SSAValue) -> tuple[bool, SSAValue | None]:
    """Whether ``index`` is ``column`` plus something that does not depend on it, and that something."""
    if index is column:
        return True, None
    owner = index.owner
    if isinstance(owner, arith.AddiOp):
        if owner.lhs is column and owner.rhs is not column:
            return True, owner.rhs
        if owner.rhs is column and owner.lhs is not column:
            return True, owner.lhs
    return False, None


def _is_column_use(op: Operation, value: SSAValue, column: SSAValue) -> bool:
    if isinstance(op, ElementOp):
        return op.column is column and op.index is not column
    if is_float_access(op):
        assert isinstance(op, memref.LoadOp | memref.StoreOp)
        *leading, last = op.indices
        return all(index is not value for index in leading) and last is value
    if isinstance(op, arith.AddiOp) and value is column and column_offset(op.result, column)[0]:
        return all(_is_column_use(use.operation, op.result, column) for use in op.result.uses)
    return False


REDUCE = "daedal.reduce"
"""The attribute of a loop along a row that combines what it carries as ``slcv.reduce`` does."""

OCTETS = "daedal.octets"
"""The attribute of such a loop that has eight partial results, of which neighbours are combined first."""


def is_reduction(op: Operation | Block | None) -> bool:
    """Whether ``op`` is a loop with the attribute ``daedal.reduce``."""
    return isinstance(op, scf.ForOp) and REDUCE in op.attributes


def is_row_loop(loop: scf.ForOp) -> bool:
    """Whether the loop works along rows: its iterations are independent and touch consecutive elements.

    Its bounds are constants, its step is 1, it has no loops or conditions inside, and its variable is only
    used in the last index of loads and stores, in that of every store. It carries nothing, unless it is a reduction,
    and computes nothing of the elements that only single f32 can be used for.
    """
    lower, upper, step = map(constant_of, (loop.lb, loop.ub, loop.step))
    if lower is None or upper is None or step != 1 or lower >= upper:
        return False
    if loop.iter_args and not (is_reduction(loop) and all(v.type == LANE for v in loop.iter_args)):
        return False
    column = loop.body.block.args[0]
    if any(op.regions for op in loop.body.block.ops):
        return False
    if column.first_use is None or not all(_is_column_use(u.operation, column, column) for u in column.uses):
        return False
    if any(isinstance(op, SINGLE_ONLY) and _varies(op, loop) for op in loop.body.block.ops):
        return False
    stores = [op for op in loop.body.block.ops if isinstance(op, memref.StoreOp)]
    works = bool(stores) or bool(loop.iter_args)
    return works and all(column_offset(op.indices[-1], column)[0] for op in stores)


def _varies(op: Operation, loop: scf.ForOp) -> bool:
    """Whether what ``op`` gives can change along the row."""
    for value in op.operands:
        owner = value.owner
        if owner is loop.body.block:
            return True
        if isinstance(owner, Operation) and owner.parent is loop.body.block and _varies(owner, loop):
            return True
    return False
