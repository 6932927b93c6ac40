"""Lets the end of a loop's run come behind the beginning of its next run.

A loop that weighs rows by sums along them keeps some rows for later (``KeptRows``), and its end waits for the last
sum's tree. The loop around it has work of its own then that does not: its next row, and the first row of the next run.
So the end of each run is done by the callback of the next run's first iteration, or by that which stands for a run
without iterations; the last run's end comes at the end of the loop around. What the first of them stores, before there
is anything, goes to the first row, which is stored again later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.backend.operands import SCALAR, VECTOR, Code, mode, number, operands, reads_addend, written
from daedal.compiler.backend.row_pipelining import Parts
from daedal.compiler.dialects import dlc, slc
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode


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
        return joint if joint._can_store_later() and joint._counts_from_zero() else None

    def _counts_from_zero(self) -> bool:
        """Whether the outer loop says which of its iterations is the first, and no count is in use."""
        counts = any(isinstance(op, slc.CountOp) for op in self.loop.body.block.ops)
        return constant_of(self.outer.lower) == 0 and constant_of(self.outer.step) == 1 and not counts

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

    def rewrite(self, first: int, empty: int) -> None:
        """Change the events: ``first`` is the token of a run's first iteration, ``empty`` of one without any."""
        number_, lower, store, body = self.outer.induction, self.loop.lower, self._store, self.loop.body.block
        following = slc.AluOp("max", number_, _constant(1))
        is_empty = slc.AluOp("equal", lower, self.loop.upper)
        is_later, count = slc.AluOp("not_equal", self.loop.induction, lower), slc.CountOp(None)
        pitch = constant_of(store.pitch)
        assert pitch is not None
        base = arith.AddiOp(store.base, _constant(-pitch)).result
        begins, iterates = _without_token(self.begin), _without_token(self.iteration)

        def ending(token: int) -> list[Operation]:
            size = store.bytes.value.data
            return [
                dlc.PushStoreOp(base, following.result, store.pitch, size, stream=False), dlc.PushTokenOp(token),
            ]  # fmt: skip

        starts = dlc.EventOp("begin", count.result, [*ending(first), *begins, *iterates])
        others = dlc.EventOp("iteration", is_later.result, [op.clone() for op in self.iteration.body.block.ops])
        passes = dlc.EventOp("iteration", is_empty.result, [*ending(empty), *_without_token(self.begin)])
        # Where the outer loop has no iterations, its registers are 0, and there is nothing to end.
        ends = dlc.EventOp("end", following.result, [op.clone() for op in self.end.body.block.ops])
        self.outer.body.block.insert_ops_before([following, is_empty], self.loop)
        self.outer.body.block.add_ops([passes, ends])
        body.add_ops([is_later, count, starts, others])
        for event in (self.begin, self.iteration, self.end):
            if event is not None:
                event.detach()


@dataclass(frozen=True)
class JoinedRuns:
    """Joins the runs of a loop that keeps rows.

    Parameters
    ----------
    config
        The machine.
    constants
        How many scalar registers, the last ones, are constants.
    events
        Token of a callback -> the event that starts it.
    """

    config: Config
    constants: int
    events: Mapping[int, dlc.EventOp]

    @property
    def longest(self) -> int:
        """The most iterations by which the second use of a row can be delayed: weights have one name more."""
        return self.config.rotating_scalars - 2

    def joined(self, loop: slc.ForOp, parts: Parts, codes: dict[int, Code], distance: int) -> dict[int, Code] | None:
        """The callbacks, by token, for runs that are joined, and the events that start them changed.

        ``codes`` are those in which no row is kept. None, with nothing changed, if the runs cannot be joined.
        """
        joint = Joint.of(loop, self.events.values())
        if joint is None or not 1 <= distance <= self.longest:
            return None
        tokens = {event: token for token, event in self.events.items()}
        iteration, first = tokens[joint.iteration], max(codes) + 1
        begin, end = codes[tokens[joint.begin]] if joint.begin else [], codes[tokens[joint.end]]
        if not self._may_trade_places(parts, begin, end):
            return None
        new = codes | {
            iteration: parts.iteration(distance), tokens[joint.end]: parts.end(end, distance),
            first: parts.first_iteration(begin, end, distance), first + 1: parts.end(end, distance, begin),
        }  # fmt: skip
        if joint.begin:
            del new[tokens[joint.begin]]
        if sum(map(len, new.values())) > self.config.instructions or len(new) > self.config.callbacks:
            return None
        joint.rewrite(first, first + 1)
        return new

    def _may_trade_places(self, parts: Parts, begin: Code, end: Code) -> bool:
        """Whether a run's end may come behind what begins the next: they share no registers and no queue."""
        early, late = [*begin, *parts.first], [*parts.second(1), *end]
        is_plain = all(mode(code) is Mode.VECTOR and not code.get("rotate") for code in (*begin, *end))
        scalars = {n for code in (*begin, *end) for kind, n in operands(code) if kind is SCALAR}
        pops = any(kind not in (VECTOR, SCALAR) for code in end for kind, _ in operands(code))
        constants = range(self.config.scalars - self.constants, self.config.scalars)
        return is_plain and not pops and not scalars - {*constants} and not _vectors(early) & _vectors(late)


def root_of(loop: slc.ForOp) -> slc.ForOp:
    """The outermost loop around ``loop``."""
    around = loop.parent_op()
    while isinstance(around, slc.ForOp):
        loop, around = around, around.parent_op()
    return loop


def is_within(event: dlc.EventOp, loop: slc.ForOp) -> bool:
    """Whether an event is one of a loop or of a loop inside of it."""
    around = event.parent_op()
    while around is not None and around is not loop:
        around = around.parent_op()
    return around is loop


def _vectors(code: Code) -> set[int]:
    """The vector registers that it reads or writes."""
    found = {n for one in code for kind, n in (*operands(one), *written(one)) if kind is VECTOR}
    return found | {number(one, "c") for one in code if reads_addend(one) and mode(one) is Mode.VECTOR}


def _constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


def _without_token(event: dlc.EventOp | None) -> list[Operation]:
    """Copies of what an event does, but for its token."""
    ops = event.body.block.ops if event is not None else ()
    return [op.clone() for op in ops if not isinstance(op, dlc.PushTokenOp)]


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
