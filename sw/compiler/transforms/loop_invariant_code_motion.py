"""Pass ``loop-invariant-code-motion``: what does not change along a row is moved out of the loop over the row."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from daedal.compiler.analysis.row_loops import is_row_loop
from daedal.compiler.dialects import check


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    block = owner.parent if isinstance(owner, Operation) else owner
    return block is not loop.body.block


def _may_move(op: Operation, loop: scf.ForOp) -> bool:
    if not all(_is_outside(value, loop) for value in op.operands):
        return False
    if isinstance(op, memref.LoadOp):
        stored = [other.memref for other in loop.walk() if isinstance(other, memref.StoreOp)]
        return op.memref not in stored
    return isinstance(op, check.BoundsOp) or (bool(op.results) and is_side_effect_free(op))


@dataclass(frozen=True)
class LoopInvariantCodeMotion(ModulePass):
    """See the module."""

    name = "loop-invariant-code-motion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Hoist in every loop over a row."""
        for loop in [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and is_row_loop(inner)]:
            for inner in list(loop.body.block.ops):
                if _may_move(inner, loop):
                    inner.detach()
                    assert loop.parent is not None
                    loop.parent.insert_op_before(inner, loop)
