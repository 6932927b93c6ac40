"""A loop whose runs can be joined, as the access unit sees it."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.dialects import dlc, slc

ITERATION, JOINT, NOTHING, ENDS = range(4)
"""The order of the callbacks of a loop whose runs are joined: that of an iteration, of the one that ends the run
before, of nothing at all, and of the ends of runs that have not so many iterations.
"""


@dataclass(frozen=True)
class Joint:
    """A loop whose runs can be joined, as far as the access unit is concerned.

    Attributes
    ----------
    outer, loop
        The nest's outermost loop, and the one in it.
    begin
        The event of each iteration of ``outer``, if there is one.
    iteration, end
        The events of ``loop``.
    """

    outer: slc.ForOp
    loop: slc.ForOp
    begin: dlc.EventOp | None
    iteration: dlc.EventOp
    end: dlc.EventOp

    @staticmethod
    def of(loop: slc.ForOp, events: Iterable[dlc.EventOp]) -> "Joint | None":
        """That of an innermost loop and the events of its nest; None if the order of its events matters."""
        outer = loop.parent_op()
        if not isinstance(outer, slc.ForOp) or not isinstance(outer.parent_op(), dlc.AccessOp) or loop.inner:
            return None
        named: dict[tuple[bool, str], dlc.EventOp] = {}
        for event in [op for op in outer.walk() if isinstance(op, dlc.EventOp)]:
            key = event.parent_op() is loop, event.event.data
            if key in named or event.condition is not None or event not in events:
                return None
            named[key] = event
        begin = named.pop((False, "iteration"), None)
        iteration, end = (named.pop((True, event), None) for event in ("iteration", "end"))
        if named or iteration is None or end is None:
            return None
        joint = Joint(outer, loop, begin, iteration, end)
        return joint if joint._can_store_later() and joint._begins_at_zero() else None

    def _begins_at_zero(self) -> bool:
        """Whether row 0 is stored by the first run, and what a run's iteration is follows from where it begins."""
        return constant_of(self.outer.lower) == 0 and constant_of(self.loop.step) == 1

    def _can_store_later(self) -> bool:
        """Whether the end only stores a row of the outer loop's, in an array that the nest does not read."""
        starts = [event for event in (self.begin, self.iteration) if event is not None]
        kinds = [type(op) for event in starts for op in event.body.block.ops]
        if {*kinds} - {dlc.PushScalarOp, dlc.PushTokenOp, dlc.FetchOp} or kinds.count(dlc.PushTokenOp) != len(starts):
            return False
        if [type(op) for op in self.end.body.block.ops] != [dlc.PushStoreOp, dlc.PushTokenOp]:
            return False
        store, own = self._store, _buffers(self._store.base)
        read = [op.base for op in self.outer.walk() if isinstance(op, dlc.LoadOp | dlc.FetchOp)]
        others = [_buffers(base) for base in read]
        return (
            store.stream is None
            and store.index is self.outer.induction
            and bool(constant_of(store.pitch))
            and own is not None
            and all(other is not None and not own & other for other in others)
        )

    @property
    def _store(self) -> dlc.PushStoreOp:
        (store,) = (op for op in self.end.body.block.ops if isinstance(op, dlc.PushStoreOp))
        return store

    def rewrite(self, token: int, late: int) -> None:
        """Change the events: each run's iteration ``late`` ends the run before, or its own end if it is shorter.

        Callbacks from ``token`` on are, in ``JoinedRuns``'s order, those of an iteration, of that one, of nothing, and
        of the ends of runs shorter by 0 iterations or more.
        """
        lower, store = self.loop.lower, self._store
        place = slc.AluOp("add", lower, _constant(late)).result if late else lower
        behind = slc.AluOp("add", place, _constant(ENDS))
        left = slc.AluOp("sub", behind, self.loop.upper)
        # It is not 0 in any iteration of the outer loop; where that has none, registers are, and nothing is to end.
        end = slc.AluOp("max", left, _constant(NOTHING))
        is_joint = slc.AluOp("equal", self.loop.induction, place)
        first, own = store.clone(), store.clone()
        first.operands[1] = _constant(0)
        others = [] if self.begin is None else [op.clone() for op in self.begin.body.block.ops]
        rows = [op.clone() for op in self.iteration.body.block.ops if not isinstance(op, dlc.PushTokenOp)]
        ends = dlc.EventOp("end", None, [dlc.PushTokenOp(token, end.result)])
        iterates = dlc.EventOp("iteration", None, [dlc.PushTokenOp(token, is_joint.result), *rows])
        self.outer.body.block.insert_ops_before([*_made(place, late), behind, left, end], self.loop)
        self.outer.body.block.add_ops(
            [
                dlc.EventOp("begin", end.result, [first]), dlc.EventOp("iteration", None, [own, *others]),
                dlc.EventOp("end", end.result, [dlc.PushTokenOp(token + ENDS + late)]),
            ]
        )  # fmt: skip
        self.loop.body.block.add_ops([is_joint, iterates, ends])
        for event in (self.begin, self.iteration, self.end):
            if event is not None:
                event.detach()


def _made(place: SSAValue, late: int) -> list[Operation]:
    """What makes the place, if it is not where the run begins."""
    return [place.owner] if late and isinstance(place.owner, Operation) else []


def _constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


def _buffers(base: SSAValue) -> set[str] | None:
    """The arrays in which an address lies; None if the launch does not fix it."""
    match base.owner:
        case dlc.ArgumentOp():
            return {base.owner.buffer.data}
        case arith.ConstantOp():
            return set()
        case arith.AddiOp():
            parts = [_buffers(operand) for operand in base.owner.operands]
            return None if None in parts else set().union(*(part for part in parts if part is not None))
        case _:
            return None
