"""Operations of ``mach`` for the access program: a nest's loops on levels, their work in slots, its events in steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.backend.arguments import ArgumentTable
from daedal.compiler.backend.interleave_bags import Turns, allowed, is_apart, pays
from daedal.compiler.backend.levels import Level, place_levels, read_levels
from daedal.compiler.dialects import dlc, mach_access, slc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.words import PITCH_BITS, SIZE_BITS

_RANKS: tuple[type[Operation], ...] = (dlc.PushScalarOp, dlc.PushStoreOp, dlc.PushTokenOp, dlc.FetchOp)
"""The order within a step."""

Defining = mach_access.LevelOp | mach_access.LoadOp | mach_access.ComputeOp | mach_access.CountOp
"""What gives a stream."""


@dataclass
class NestCode:
    """Generates the operations of one nest; ``tokens`` as in ``ExecuteCode``, ``turns`` as in ``generate``.

    ``choices`` is filled by ``run``, as in ``Generated``. Streams have no registers yet.
    """

    root: slc.ForOp
    config: Config
    arguments: ArgumentTable
    tokens: Mapping[int, int]
    turns: Turns = Turns.LONG
    choices: list[str] = field(default_factory=list)
    _values: dict[SSAValue, SSAValue] = field(default_factory=dict)
    _operations: list[Operation] = field(default_factory=list)
    _steps: int = 0
    _in_turn: int | None = None

    def run(self) -> mach_access.NestOp:
        """The nest."""
        levels, self._in_turn = self._levels()
        if self._in_turn is not None:
            outer, inner = levels[-2:]
            count = self.config.contexts[self._in_turn]
            self.choices.append(f"{inner.name}: its runs for up to {count} iterations of {outer.name} come in turn")
        for level in levels:
            self._level(level)
        for level in levels:
            for event in level.events:
                self._event(level, event)
        return mach_access.NestOp(self._operations)

    def _levels(self) -> tuple[list[Level], int | None]:
        """The loops on levels, and the one of these whose activations come in turn."""
        levels = place_levels(self.root, self.config)
        level = self.config.context_level if self.turns is not Turns.NONE else None
        if level is None or level < len(levels) - 1:
            return levels, None
        if not (pays(self.root, self.config) and allowed(levels) and is_apart(self.root)):
            return levels, None
        try:
            return read_levels(self.root, self.config, level - len(levels) + 1, may_pad=False), level
        except UnsupportedOperation:  # these levels have less than those further out
            return levels, None

    # ------------------------------------------------------------------ operands

    def _source(self, value: SSAValue) -> SSAValue:
        """The stream that an operand is, or a constant."""
        return self._values[value] if value in self._values else self._constant(value)

    def _constant(self, value: SSAValue) -> SSAValue:
        constant = self.arguments.constant(value)
        op = mach_access.ConstantOp(constant.value, constant.argument)
        op.result.name_hint = value.name_hint
        self._operations.append(op)
        return op.result

    def _condition(self, condition: SSAValue | None) -> SSAValue | None:
        return None if condition is None else self._values[condition]

    def _give(self, value: SSAValue, op: Defining) -> None:
        """Add an operation, whose result is the stream ``value``."""
        op.result.name_hint = value.name_hint
        self._operations.append(op)
        self._values[value] = op.result

    # ------------------------------------------------------------------ levels

    def _level(self, level: Level) -> None:
        n, loop = level.number, level.loop
        bounds = [self._source(loop.lower), self._source(loop.upper), self._constant(loop.step)]
        in_turn, deals = n == self._in_turn, self.turns is Turns.SHORT
        made = mach_access.LevelOp(n, bounds, interleave=in_turn and not deals, deal=in_turn and deals)
        self._give(loop.induction, made)
        first_random = self.config.sequential_loads[n]
        for slot, load in enumerate(level.sequential):
            self._load((n, slot), "sequential", load)
        for slot, load in enumerate(level.random, first_random):
            self._load((n, slot), "random", load)
        if level.check is not None:
            check, limit = level.check, self._source(level.check.limit)
            mode = "fatal" if check.mode is None else check.mode.data
            self._operations.append(mach_access.CheckOp(n, check.kind.data, mode, self._values[check.value], limit))
        plain = [op for op in level.alus if _is_plain_condition(op)]
        for slot, op in enumerate(op for op in level.alus if op not in plain):
            self._alu((n, slot), op)
        self._values |= {op.result: self._values[op.a] for op in plain}
        if level.count is not None:
            self._give(level.count.result, mach_access.CountOp(n, self._condition(level.count.condition)))

    def _load(self, where: tuple[int, int], kind: str, load: dlc.LoadOp) -> None:
        operands = [self._source(load.base), self._values[load.index], self._constant(load.end)]
        size, signed = load.bytes.value.data, load.signed is not None
        self._give(load.result, mach_access.LoadOp(where, kind, operands, size, signed=signed))

    def _alu(self, where: tuple[int, int], op: slc.AluOp) -> None:
        a, b = op.a, op.b
        if op.kind.data == "mul" and a not in self._values:
            a, b = b, a
        factor = constant_of(b) if op.kind.data == "mul" else None
        if factor is not None and not 0 <= factor < 1 << PITCH_BITS:
            raise UnsupportedOperation(
                f"the constant factor of a product, or the bytes from one element of a dimension to the next, must be "
                f"from 0 to {(1 << PITCH_BITS) - 1}, not {factor}"
            )
        new = mach_access.ComputeOp(where, op.kind.data, self._source(a), self._source(b))
        self._give(op.result, new)

    # ------------------------------------------------------------------ events

    def _event(self, level: Level, event: dlc.EventOp) -> None:
        groups = _group(list(event.body.block.ops))
        if self._steps + len(groups) > self.config.steps:
            raise UnsupportedOperation(
                f"{level.name}: its events need more than the {self.config.steps} steps of configuration "
                f"{self.config.name}: take a configuration with more, or do less in the loop"
            )
        steps = [mach_access.StepOp([self._part(op) for op in group]) for group in groups]
        condition = self._condition(event.condition)
        self._operations.append(mach_access.EventOp(level.number, event.event.data, condition, steps))
        self._steps += len(steps)

    def _part(self, op: Operation) -> Operation:
        """A part of a step."""
        match op:
            case dlc.PushScalarOp():
                return mach_access.PushScalarOp(self._source(op.value))
            case dlc.PushTokenOp():
                offset = None if op.offset is None else self._values[op.offset]
                return mach_access.PushTokenOp(self.tokens[op.token.value.data], offset)
            case dlc.PushStoreOp():
                stream = op.stream is not None
                return mach_access.PushStoreOp(self._address(op), op.bytes.value.data, stream=stream)
            case dlc.FetchOp():
                return mach_access.FetchOp(op.queue.data, self._address(op), op.bytes.value.data)
            case _:
                raise UnsupportedOperation(f"{op.name} cannot stand in an event")

    def _address(self, op: dlc.PushStoreOp | dlc.FetchOp) -> list[SSAValue]:
        """Base, index and pitch."""
        size = op.bytes.value.data
        if size >= 1 << SIZE_BITS:
            raise UnsupportedOperation(f"a row must be shorter than {1 << SIZE_BITS} bytes, not {size}")
        pitch = constant_of(op.pitch)
        if pitch is not None and not 0 <= pitch < 1 << PITCH_BITS:
            raise UnsupportedOperation(
                f"rows must be less than {1 << PITCH_BITS} bytes apart, not {pitch}: take some columns at a time"
            )
        return [self._source(op.base), self._source(op.index), self._source(op.pitch)]


def _is_plain_condition(op: slc.AluOp) -> bool:
    """Whether a comparison only decides events, by a number being another than 0: a predicate is of a number itself."""
    is_compared = op.kind.data == "not_equal" and isinstance(op.a.type, slc.StreamType) and constant_of(op.b) == 0
    return is_compared and all(isinstance(use.operation, dlc.EventOp) for use in op.result.uses)


def _group(operations: list[Operation]) -> list[list[Operation]]:
    """The operations of an event as steps, each with its parts in the machine's order."""
    steps: list[list[Operation]] = []
    last = len(_RANKS)
    for op in operations:
        rank = _RANKS.index(type(op))
        if rank <= last:
            steps.append([])
        steps[-1].append(op)
        last = rank
    return steps
