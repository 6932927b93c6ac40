"""Pass ``remove-empty-loops``: loops that do nothing are taken out, so that the access unit does not walk them.

A loop does nothing if it stores nothing, checks nothing, and nobody uses what it carries; it may load and compute. A
function keeps its last loop.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free


def _does_nothing(op: Operation) -> bool:
    return isinstance(op, memref.LoadOp | scf.YieldOp) or (not op.regions and is_side_effect_free(op))


def _is_empty(loop: scf.ForOp) -> bool:
    is_unused = all(result.first_use is None for result in loop.results)
    return is_unused and all(_does_nothing(op) for op in loop.body.block.ops)


def _is_last(loop: scf.ForOp) -> bool:
    """Whether a function would have no loop without this one."""
    parent = loop.parent_op()
    if not isinstance(parent, func.FuncOp):
        return False
    return sum(isinstance(op, scf.ForOp) for op in parent.body.block.ops) == 1


@dataclass(frozen=True)
class RemoveEmptyLoops(ModulePass):
    """See the module."""

    name = "remove-empty-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Remove them in every function, inner loops first."""
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, scf.ForOp)]):
            if _is_empty(loop) and not _is_last(loop):
                Rewriter.erase_op(loop)
