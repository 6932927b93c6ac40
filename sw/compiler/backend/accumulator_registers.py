"""Which vector registers accumulators have: those of different nests can have the same."""

import enum
from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from daedal.compiler.analysis.nest_walk import Event, NestWalk
from daedal.compiler.analysis.row_loops import root_of
from daedal.compiler.dialects import dlc, slc, slcv


class Holds(enum.IntEnum):
    """What a register may hold: nothing, which reads as +0.0; what its accumulator was set to; or what others left."""

    NOTHING = 0
    OWN = 1
    OTHERS = 2


class Rows(enum.Enum):
    """What rows an accumulator has."""

    EMPTY = "of one nest, which finds it empty and leaves it so"
    BEGUN = "of one nest, which sets it before it reads it"
    CARRIED = "of several nests, or of one that reads what a run before left"


def registers_of(program: dlc.ExecuteOp, events: Mapping[int, dlc.EventOp]) -> dict[SSAValue, int]:
    """Accumulator -> vector register; ``events``: those that start callbacks, by token.

    Accumulators of one nest that are empty behind it if they are before it share registers with such of other nests;
    so do those that are set before they are read. Callbacks that do the same are then alike.
    """
    found = [op.result for op in program.body.block.ops if isinstance(op, slcv.AccumulatorOp)]
    callbacks = {op.token.value.data: op for op in program.body.block.ops if isinstance(op, dlc.CallbackOp)}
    kinds: dict[Rows, dict[int, list[SSAValue]]] = {kind: {} for kind in Rows}
    for value in found:
        kind, number = _rows(value, callbacks, events)
        kinds[kind].setdefault(number, []).append(value)
    registers = {value: n for n, value in enumerate(kinds[Rows.CARRIED].get(0, []))}
    for kind in (Rows.BEGUN, Rows.EMPTY):
        first = len(set(registers.values()))
        registers |= {value: first + n for values in kinds[kind].values() for n, value in enumerate(values)}
    return registers


def carries(nest: slc.ForOp, program: dlc.ExecuteOp, events: Mapping[int, dlc.EventOp]) -> bool:
    """Whether a callback of the nest does something with an accumulator that has a row from before the nest, or from
    one run of its loop to the next. Arguments as of ``registers_of``.
    """
    callbacks = {op.token.value.data: op for op in program.body.block.ops if isinstance(op, dlc.CallbackOp)}
    here = [op for token, op in callbacks.items() if token in events and _nest(events[token]) is nest]
    values = [op.result for op in program.body.block.ops if isinstance(op, slcv.AccumulatorOp)]
    return any(
        _rows(value, callbacks, events)[0] is Rows.CARRIED
        for value in values
        if any(accesses(callback, value) for callback in here)
    )


def _rows(
    value: SSAValue, callbacks: Mapping[int, dlc.CallbackOp], events: Mapping[int, dlc.EventOp]
) -> tuple[Rows, int]:
    """What rows an accumulator has, and a number for the nest that they are of, if it is one."""
    tokens = [token for token, op in callbacks.items() if any(accesses(op, value))]
    nests = {id(nest): nest for nest in (_nest(events[token]) for token in tokens)}
    if len(nests) != 1:
        return Rows.CARRIED, 0
    ((number, nest),) = nests.items()
    walk = _Walk(value, {events[token]: callbacks[token] for token in tokens})
    if walk.loop(nest, Holds.NOTHING) is Holds.NOTHING:
        return Rows.EMPTY, number
    walk.loop(nest, Holds.OTHERS)
    return (Rows.CARRIED, 0) if walk.reads_others else (Rows.BEGUN, number)


def accesses(callback: dlc.CallbackOp, value: SSAValue) -> Sequence[slcv.GetOp | slcv.SetOp]:
    """What a callback does with an accumulator."""
    found = [op for op in callback.body.block.ops if isinstance(op, slcv.GetOp | slcv.SetOp)]
    return [op for op in found if op.accumulator is value]


class _Walk(NestWalk[Holds]):
    """With all that a register may hold; ``callbacks`` by their events."""

    def __init__(self, value: SSAValue, callbacks: Mapping[Event, dlc.CallbackOp]) -> None:
        self._value, self._callbacks = value, callbacks
        self.reads_others = False
        """Whether it may have been read as others left it."""

    def event(self, event: Event, holds: Holds) -> Holds:
        """What it may hold behind an event."""
        callback = self._callbacks.get(event)
        if callback is None:
            return holds
        width = slcv.width_of(self._value)
        for op in accesses(callback, self._value):
            is_whole = slcv.width_of(op.row if isinstance(op, slcv.SetOp) else op.result) == width
            if isinstance(op, slcv.SetOp):
                holds = Holds.OWN if is_whole else max(holds, Holds.OWN)
                continue
            self.reads_others |= holds is Holds.OTHERS
            if op.clear is not None:
                holds = Holds.NOTHING if is_whole else max(holds, Holds.OWN)
        return holds


def _nest(event: dlc.EventOp) -> slc.ForOp:
    loop = event.parent_op()
    assert isinstance(loop, slc.ForOp)
    return root_of(loop)
