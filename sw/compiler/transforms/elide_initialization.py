"""Pass ``elide-initialization``: an accumulator that is cleared when it is read for the last time starts at
+0.0.

Where work on an accumulator begins with setting it to +0.0 and ends, once for every such beginning, with
reading it, the last read clears it instead. An empty register reads as +0.0, and all are empty when a launch
starts. A maximum or minimum that takes the first row as it is needs that; with the option ``needed`` nothing else is
changed. Where a callback reads an accumulator and then sets it to +0.0, the read clears it as well. Setting one to +0.0
that is empty there, and behind its nest, is of no use.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, vector
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.analysis.empty_accumulators import is_empty_already, is_zero
from daedal.compiler.dialects import slc, slcv
from daedal.errors import UnsupportedOperation

_KEEP = (slcv.KeepGreaterOp, slcv.KeepLessOp)


def _callback(op: Operation) -> slc.CallbackOp:
    parent = op.parent_op()
    assert isinstance(parent, slc.CallbackOp)
    return parent


def _period(callback: slc.CallbackOp) -> Operation | None:
    """The operation that runs a callback once: the loop for an iteration, what is around the loop for its
    ends.
    """
    loop = callback.parent_op()
    assert loop is not None
    return loop if callback.event.data == "iteration" else loop.parent_op()


def _nest(op: Operation) -> Operation:
    """The outermost loop around ``op``."""
    while not isinstance(op.parent_op(), func.FuncOp):
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _elide(accumulator: slcv.AccumulatorOp, order: list[Operation]) -> None:
    users = {use.operation for use in accumulator.result.uses}
    accesses = [op for op in order if op in users]
    if not accesses or len({id(_nest(op)) for op in accesses}) != 1:
        return
    first, last = accesses[0], accesses[-1]
    if not isinstance(first, slcv.SetOp) or not is_zero(first.row) or not isinstance(last, slcv.GetOp):
        return
    rows = [op.row if isinstance(op, slcv.SetOp) else op.results[0] for op in accesses]
    if any(slcv.width_of(row) != slcv.width_of(accumulator.result) for row in rows):
        return
    begin, end = _callback(first), _callback(last)
    if any(_is_compared(op) for op in accesses) and not _takes_first(accesses, begin):
        return
    if begin.condition is not None or end.condition is not None or _period(begin) is not _period(end):
        return
    last.clear = UnitAttr()
    Rewriter.erase_op(first)
    _remove_unused(begin)


def _is_compared(op: Operation) -> bool:
    """Whether a read decides a maximum or minimum, where an empty register is not the same as +0.0."""
    return any(isinstance(use.operation, _KEEP) for result in op.results for use in result.uses)


def _takes_first(accesses: list[Operation], begin: slc.CallbackOp) -> bool:
    """Whether all that happens to the accumulator between its first and last access is one ``first`` keep.

    It is then empty in exactly those iterations in which ``first`` takes its row.
    """
    if len(accesses) != 4:
        return False
    _, read, write, _ = accesses
    if not isinstance(read, slcv.GetOp) or not isinstance(write, slcv.SetOp):
        return False
    keep = write.row.owner
    if not isinstance(keep, _KEEP) or keep.first is None or keep.b is not read.result:
        return False
    loop = _callback(keep).parent_op()
    return loop is not None and _period(begin) is loop.parent_op()


def _has_first(accumulator: slcv.AccumulatorOp) -> bool:
    """Whether a maximum or minimum of the accumulator takes the first row as it is."""
    reads = [use.operation for use in accumulator.result.uses if isinstance(use.operation, slcv.GetOp)]
    keeps = [use.operation for read in reads for use in read.result.uses]
    return any(isinstance(op, _KEEP) and op.first is not None for op in keeps)


def _check_first(function: func.FuncOp) -> None:
    """Raise UnsupportedOperation for a ``first`` that is not that of an accumulator that starts empty."""
    for op in function.walk():
        if isinstance(op, _KEEP) and op.first is not None:
            read = op.b.owner
            users = [use.operation for use in read.accumulator.uses] if isinstance(read, slcv.GetOp) else []
            if not any(isinstance(user, slcv.GetOp) and user.clear is not None for user in users):
                raise UnsupportedOperation(
                    "a maximum or minimum that takes the first row as it is must be of a local row that is set to "
                    "0.0 before the loop, changed in no other way, and read once after it"
                )


def _elide_again(accumulator: slcv.AccumulatorOp) -> None:
    """Where a callback sets it to +0.0 behind the only read of it there, that clears it."""
    users = [use.operation for use in accumulator.result.uses]
    if any(_is_compared(op) for op in users):
        return
    for last in [op for op in users if isinstance(op, slcv.SetOp) and is_zero(op.row)]:
        here = [op for op in last.parent_block().ops if op in users]  # type: ignore[union-attr]
        reads = [op for op in here if isinstance(op, slcv.GetOp)]
        widths = {slcv.width_of(value) for value in (accumulator.result, last.row, *(read.result for read in reads))}
        if here[-1] is last and here[:-1] == reads and len(reads) == 1 and len(widths) == 1:
            callback = _callback(last)
            reads[0].clear = UnitAttr()
            Rewriter.erase_op(last)
            _remove_unused(callback)


def _elide_useless(accumulator: slcv.AccumulatorOp) -> None:
    """Leave out what sets it to +0.0 where it is empty, if it is empty behind its only nest too."""
    users = [use.operation for use in accumulator.result.uses]
    nests = {id(nest): nest for nest in map(_nest, users)}
    if len(nests) != 1 or any(_is_compared(op) for op in users):
        return
    (nest,) = nests.values()
    for zero in [op for op in users if isinstance(op, slcv.SetOp) and is_zero(op.row)]:
        if isinstance(nest, slc.ForOp) and is_empty_already(zero, nest):
            callback = _callback(zero)
            Rewriter.erase_op(zero)
            _remove_unused(callback)


def _remove_unused(callback: slc.CallbackOp) -> None:
    for op in reversed(list(callback.body.block.ops)):
        if isinstance(op, vector.BroadcastOp) and op.vector.first_use is None:
            Rewriter.erase_op(op)
    if callback.body.block.first_op is None:
        Rewriter.erase_op(callback)


@dataclass(frozen=True)
class ElideInitialization(ModulePass):
    """See the module; ``needed``: only accumulators that need it."""

    name = "elide-initialization"

    needed: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every accumulator."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                for accumulator in list(function.body.block.ops):
                    if isinstance(accumulator, slcv.AccumulatorOp) and (not self.needed or _has_first(accumulator)):
                        _elide(accumulator, list(function.walk()))
                        if not self.needed:
                            _elide_again(accumulator)
                            _elide_useless(accumulator)
                _check_first(function)
