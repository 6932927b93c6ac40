"""Where accumulators are empty, whichever way the loops go."""

import enum
from math import copysign

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from daedal.compiler.analysis.nest_walk import Event, NestWalk
from daedal.compiler.dialects import slc, slcv


class Holds(enum.IntEnum):
    """What an accumulator may hold: nothing, which reads as +0.0; +0.0 in all elements; or anything."""

    NOTHING = 0
    ZERO = 1
    ANYTHING = 2


def is_zero(row: SSAValue) -> bool:
    """Whether ``row`` is +0.0 in all elements."""
    spread = row.owner
    if not isinstance(spread, vector.BroadcastOp) or not isinstance(spread.source.owner, arith.ConstantOp):
        return False
    value = spread.source.owner.value
    return isinstance(value, FloatAttr) and value.value.data == 0.0 and copysign(1.0, value.value.data) > 0


def is_empty_already(zero: slcv.SetOp, nest: slc.ForOp) -> bool:
    """Whether the nest, without ``zero``, leaves that accumulator empty if it finds it so, and has it empty wherever
    ``zero`` stands.
    """
    walk = _Walk(zero)
    return walk.loop(nest, Holds.NOTHING) is Holds.NOTHING and walk.before is Holds.NOTHING


class _Walk(NestWalk[Holds]):
    """With what the accumulator may hold; what else than to find +0.0 there would come of ``zero`` is left out."""

    def __init__(self, zero: slcv.SetOp) -> None:
        self._zero, self._accumulator = zero, zero.accumulator
        self.before = Holds.NOTHING
        """What the accumulator may hold where ``zero`` stands."""

    def event(self, event: Event, holds: Holds) -> Holds:
        """What it may hold behind an event."""
        width = slcv.width_of(self._accumulator)
        for op in event.body.block.ops:
            if op is self._zero:
                self.before = max(self.before, holds)
            elif isinstance(op, slcv.GetOp) and op.accumulator is self._accumulator and op.clear is not None:
                holds = Holds.NOTHING if slcv.width_of(op.result) == width else Holds.ANYTHING
            elif isinstance(op, slcv.SetOp) and op.accumulator is self._accumulator:
                holds = Holds.ZERO if is_zero(op.row) and slcv.width_of(op.row) == width else Holds.ANYTHING
        return holds
