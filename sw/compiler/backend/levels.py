"""A nest as the access unit sees it: what each level loads, computes, checks and counts, and its events."""

from contextlib import suppress
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import loop_name
from daedal.compiler.dialects import dlc, slc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config


@dataclass
class Level:
    """One loop of a nest. Loads are in slot order: ``sequential`` from slot 0, ``random`` after all
    sequential slots.
    """

    number: int
    loop: slc.ForOp
    sequential: list[dlc.LoadOp] = field(default_factory=list)
    random: list[dlc.LoadOp] = field(default_factory=list)
    alus: list[slc.AluOp] = field(default_factory=list)
    check: slc.CheckOp | None = None
    count: slc.CountOp | None = None
    events: list[dlc.EventOp] = field(default_factory=list)
    is_padding: bool = False

    @property
    def name(self) -> str:
        """How messages call it."""
        return loop_name(self.loop)


def place_levels(root: slc.ForOp, config: Config) -> list[Level]:
    """The levels of a nest, outermost first, on those levels of the machine that suit it best.

    Inner loops have more iterations, so serial levels are rather for outer ones. Raises UnsupportedOperation, as
    ``read_levels``, if the nest does not fit anywhere.
    """
    if not any(config.serial):
        return read_levels(root, config)
    found = []
    for first in range(config.levels):
        with suppress(UnsupportedOperation):
            found.append(read_levels(root, config, first))
    if not found:
        return read_levels(root, config)  # says what is missing

    def cost(levels: list[Level]) -> tuple[list[bool], int]:
        return [config.serial[level.number] for level in reversed(levels)], levels[0].number

    return min(found, key=cost)


def read_levels(root: slc.ForOp, config: Config, first: int = 0, *, may_pad: bool = True) -> list[Level]:
    """The levels of a nest, outermost first, from level ``first`` of the machine on.

    If loops have more arithmetic than their levels, levels that are left over do it, with ``may_pad``. Raises
    UnsupportedOperation, naming the loop and what there is too little of, if the nest does not fit.
    """
    try:
        return _fit(root, config, first, may_pad=False)
    except UnsupportedOperation:
        if may_pad:
            with suppress(UnsupportedOperation):
                return _fit(root, config, first, may_pad=True)
        raise


def _fit(root: slc.ForOp, config: Config, first: int, *, may_pad: bool) -> list[Level]:
    levels: list[Level] = []
    loop: slc.ForOp | None = root
    while loop is not None:
        if first + len(levels) == config.levels:
            raise UnsupportedOperation(
                f"{loop_name(loop)} is loop {len(levels) + 1} of its nest; configuration {config.name} has "
                f"{config.levels} levels"
            )
        levels.append(_read(Level(first + len(levels), loop)))
        loop = loop.inner
    position = 0
    while position < len(levels):
        level = levels[position]
        _sink(level, levels[position + 1] if position + 1 < len(levels) else None, config)
        is_left = may_pad and first + len(levels) < config.levels
        if len(level.alus) > config.alus[level.number] and is_left:
            levels.insert(position + 1, _padding(level.number + 1))
            for inner in levels[position + 2 :]:
                inner.number += 1
            _sink(level, levels[position + 1], config)
        _place_loads(level, config)
        _verify(level, config)
        position += 1
    return levels


def _padding(number: int) -> Level:
    """A loop of one iteration that only does arithmetic for the loops around it."""
    zero, one = (arith.ConstantOp(IntegerAttr(n, IndexType())).result for n in (0, 1))
    return Level(number, slc.ForOp(zero, one, one), is_padding=True)


def _read(level: Level) -> Level:
    for op in level.loop.body.block.ops:
        match op:
            case dlc.LoadOp():
                is_sequential = op.index is level.loop.induction
                (level.sequential if is_sequential else level.random).append(op)
            case slc.AluOp():
                level.alus.append(op)
            case slc.CheckOp():
                if level.check is not None:
                    raise UnsupportedOperation(f"{level.name}: there can be one check in a loop, not two")
                level.check = op
            case slc.CountOp():
                if level.count is not None and level.count.condition is not op.condition:
                    raise UnsupportedOperation(f"{level.name}: there can be one count in a loop, not two")
                level.count = op
            case dlc.EventOp():
                level.events.append(op)
            case _:
                pass
    return level


def _sink(level: Level, inner: Level | None, config: Config) -> None:
    """Hand ALU operations that only inner levels need to the next one, if there are too many."""
    for op in reversed(list(level.alus)):
        if len(level.alus) <= config.alus[level.number] or inner is None:
            return
        users = [use.operation for use in op.result.uses]
        if all(_is_below(user, level, inner) for user in users):
            level.alus.remove(op)
            inner.alus.insert(0, op)


def _is_below(user: Operation, level: Level, inner: Level) -> bool:
    """Whether an ALU operation of ``level`` may run a level further in, as far as ``user`` goes.

    There it is not done for an activation without iterations, which has events of ``level`` all the same, and its own
    begin and end.
    """
    event = user.parent_op()
    if isinstance(user, dlc.EventOp):
        event = user
    if isinstance(event, dlc.EventOp) and not inner.is_padding:
        loop = event.parent_op()
        if loop is level.loop or (loop is inner.loop and event.event.data != "iteration"):
            return False
    here = (*level.sequential, *level.random, *level.alus, level.check, level.count)
    early = (inner.loop, *inner.sequential, *inner.random, inner.check)
    return not any(user is op for op in (*here, *early))


def _place_loads(level: Level, config: Config) -> None:
    """Sequential loads that find no sequential slot take random ones."""
    slots = config.sequential_loads[level.number]
    while len(level.sequential) > slots:
        level.random.insert(0, level.sequential.pop())


def _verify(level: Level, config: Config) -> None:
    n = level.number
    available = (
        ("random loads", len(level.random), config.random_loads[n]),
        ("ALU operations", len(level.alus), config.alus[n]),
    )
    for what, needed, there in available:
        if needed > there:
            loads = f" beside {config.sequential_loads[n]} sequential ones" if what == "random loads" else ""
            raise UnsupportedOperation(
                f"{level.name} needs {needed} {what}{loads}; level {n} of configuration {config.name} has {there}"
            )
    for op in level.alus:
        if op.kind.data.startswith("shift") and not config.shifters[n]:
            raise UnsupportedOperation(
                f"{level.name} shifts; level {n} of configuration {config.name} cannot: multiply instead"
            )
    _verify_order(level)


def _verify_order(level: Level) -> None:
    own = [op.result for op in level.alus]
    for load in (*level.sequential, *level.random):
        if load.base in own or load.index in own:
            raise UnsupportedOperation(
                f"{level.name}: a load must not depend on arithmetic in the same iteration; compute its "
                "index in the "
                "loop around it"
            )
    if level.check is not None and slot_of(level, level.check.value) is None:
        raise UnsupportedOperation(f"{level.name}: a check must be of a value loaded in the same iteration")


def slot_of(level: Level, value: SSAValue, first_random: int = 0) -> int | None:
    """The load slot that gives ``value``, where random slots are numbered from ``first_random``; None if none
    does.
    """
    for first, loads in ((0, level.sequential), (first_random, level.random)):
        for position, load in enumerate(loads):
            if load.result is value:
                return first + position
    return None
