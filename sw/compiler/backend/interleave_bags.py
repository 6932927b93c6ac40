"""Whether a nest's activations may, and should, run side by side.

The machine's adder takes ``Config.accumulate_cycles``: rows of fewer beats leave it idle unless rows of several bags
take turns. The order of additions within a bag stays; only the order in which bags end can change.
"""

from enum import Enum

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.backend.accumulator_registers import carries
from daedal.compiler.backend.levels import Level
from daedal.compiler.backend.select_instructions import field_of, whole_width
from daedal.compiler.dialects import dlc, slc, slcv
from daedal.compiler.dialects.narrow_packed import AffineOp, UnpackOp
from daedal.hw.config.core import Config


class Turns(Enum):
    """How activations take turns."""

    NONE = "one after the other"
    SHORT = "dealt out by the event unit, so that short ones share lines of indices"
    LONG = "each with a stream of indices of its own, however long it is"


def pays(root: slc.ForOp, config: Config) -> bool:
    """Whether all rows that the nest's callbacks pop and push fit into a context, and some of those that they pop are
    shorter than the adder.
    """
    popped: list[int] = []
    pushed: list[int] = []
    for callback in _callbacks(root):
        for op in callback.body.block.ops:
            if isinstance(op, dlc.PopOp):
                popped.append(_popped_beats(op.result, config))
            elif isinstance(op, dlc.PushOp):
                pushed.append(_beats(op.row, config))
    return bool(popped) and max(popped + pushed) <= config.context_beats and min(popped) < config.accumulate_cycles


def is_apart(root: slc.ForOp) -> bool:
    """Whether callbacks of the nest have all that they read in registers from the same activation: each has its own."""
    access, programs = _programs(root)
    pushes = [op for nests in access for op in nests.walk() if isinstance(op, dlc.PushTokenOp)]
    events = {op.token.value.data: event for op in pushes if isinstance(event := op.parent_op(), dlc.EventOp)}
    return not any(carries(root, program, events) for program in programs)


def _callbacks(root: slc.ForOp) -> list[dlc.CallbackOp]:
    """The callbacks that a nest starts."""
    tokens = {op.token for op in root.walk() if isinstance(op, dlc.PushTokenOp)}
    ops = [op for program in _programs(root)[1] for op in program.body.block.ops]
    return [op for op in ops if isinstance(op, dlc.CallbackOp) and op.token in tokens]


def _programs(root: slc.ForOp) -> tuple[list[dlc.AccessOp], list[dlc.ExecuteOp]]:
    """The access and the execute program that the nest is part of."""
    access = root.parent_op()
    assert access is not None
    assert access.parent is not None
    ops = list(access.parent.ops)
    return [op for op in ops if isinstance(op, dlc.AccessOp)], [op for op in ops if isinstance(op, dlc.ExecuteOp)]


def _popped_beats(popped: SSAValue, config: Config) -> int:
    """Beats in registers of a row that is popped: of words with a head, those of the integers in them."""
    for use in popped.uses:
        if isinstance(use.operation, UnpackOp | AffineOp):
            return _beats(use.operation.results[-1], config)
    return -(-whole_width(popped, field_of(popped)) // config.lanes)


def _beats(row: SSAValue, config: Config) -> int:
    """Beats of a row, or of a single number, in registers."""
    return -(-slcv.width_of(row) // config.lanes) if isinstance(row.type, VectorType) else 1


def allowed(levels: list[Level]) -> bool:
    """Whether nothing that the nest does depends on activations of its innermost loop following each other.

    Events may be those of the innermost loop, which work on the registers of one activation, or happen once for
    each of them; what is stored must differ in address from one to the next.
    """
    if len(levels) < 2 or any(level.is_padding for level in levels):
        return False
    *outer, parent, inner = levels
    if any(level.events for level in outer) or any(event.event.data != "iteration" for event in parent.events):
        return False
    if constant_of(inner.loop.step) != 1:
        return False
    stores = [op for event in (*parent.events, *inner.events) for op in event.body.block.ops
              if isinstance(op, dlc.PushStoreOp)]  # fmt: skip
    in_iterations = any(
        isinstance(op, dlc.PushStoreOp)
        for event in inner.events
        if event.event.data == "iteration"
        for op in event.body.block.ops
    )
    return not in_iterations and all(_differs(op, parent, outer) for op in stores)


def _differs(store: dlc.PushStoreOp, parent: Level, outer: list[Level]) -> bool:
    """Whether each activation stores at an address of its own: rows of an array, by the loop around it.

    The arrays may be those of a list, one after the other: they do not overlap (see ``place.memref``).
    """
    is_row = store.index is parent.loop.induction and constant_of(store.pitch) != 0
    if not is_row or len(outer) > 1:
        return False
    return _is_of_list(store.base, outer[0]) if outer else not _is_stream(store.base)


def _is_of_list(address: SSAValue, level: Level) -> bool:
    """Whether an address was loaded from an array, a new element in each iteration: a ``place.memref`` had it."""
    load = address.owner
    return isinstance(load, dlc.LoadOp) and load.parent is level.loop.body.block and load.index is level.loop.induction


def _is_stream(value: SSAValue) -> bool:
    return isinstance(value.type, slc.StreamType)
