"""Program words of the access unit: levels, events and steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.backend.allocate_stream_registers import allocate
from daedal.compiler.backend.arguments import ArgumentTable
from daedal.compiler.backend.interleave_bags import allowed, pays
from daedal.compiler.backend.levels import Level, place_levels, read_levels, slot_of
from daedal.compiler.dialects import dlc, slc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.program import FIELD_STRUCTS, Word, pack
from daedal.hw.isa.words import (
    PITCH_BITS,
    SIZE_BITS,
    AluOp,
    CheckKind,
    CheckMode,
    Destination,
    EventField,
    EventKind,
    FetchQueue,
    LevelField,
    LoadIndex,
    Predicate,
    Source,
    StepField,
)

EVENT_KINDS = {"begin": EventKind.BEGIN, "iteration": EventKind.ITER, "end": EventKind.END}
EVENTS_PER_LEVEL = 4
"""Words of unit EVENT from one level to the next (see EventKind)."""

_RANKS: tuple[type[Operation], ...] = (dlc.PushScalarOp, dlc.PushStoreOp, dlc.PushTokenOp, dlc.FetchOp)
"""The order within a step."""


def _register(enum: type[Enum], register: int) -> Enum:
    return enum[f"R{register}"]


@dataclass
class NestCode:
    """Generates the words of one nest; ``tokens`` as in ``ExecuteCode``, ``interleaves`` as in ``generate``.

    ``choices`` is filled by ``run``, as in ``Generated``.
    """

    root: slc.ForOp
    config: Config
    arguments: ArgumentTable
    tokens: Mapping[int, int]
    interleaves: bool = True
    choices: list[str] = field(default_factory=list)
    _registers: dict[SSAValue, int] = field(default_factory=dict)
    _words: list[Word] = field(default_factory=list)
    _steps: int = 0
    _interleaved: int | None = None

    def run(self) -> list[Word]:
        """The words, without RUN."""
        levels, self._interleaved = self._levels()
        if self._interleaved is not None:
            outer, inner = levels[-2:]
            count = self.config.contexts[self._interleaved]
            self.choices.append(f"{inner.name}: its runs for up to {count} iterations of {outer.name} come in turn")
        self._registers = allocate(levels, self.config)
        for level in levels:
            self._level(level)
        for level in levels:
            for event in level.events:
                self._event(level, event)
        return self._words

    def _levels(self) -> tuple[list[Level], int | None]:
        """The loops on levels, and the one of these that interleaves its activations."""
        levels = place_levels(self.root, self.config)
        level = self.config.context_level if self.interleaves else None
        if level is None or level < len(levels) - 1 or not (pays(self.root, self.config) and allowed(levels)):
            return levels, None
        try:
            return read_levels(self.root, self.config, level - len(levels) + 1, may_pad=False), level
        except UnsupportedOperation:  # these levels have less than those further out
            return levels, None

    # ------------------------------------------------------------------ operands

    def _source(self, value: SSAValue, field: Enum, index: int) -> Source:
        """The source of an operand; if it is a constant, its word is written."""
        if value in self._registers:
            return Source[f"R{self._registers[value]}"]
        self._constant(value, field, index)
        return Source.CONST

    def _constant(self, value: SSAValue, field: Enum, index: int) -> None:
        constant = self.arguments.constant(value)
        self._words.append(Word(field, index, constant.value, constant.argument))

    def _destination(self, value: SSAValue) -> Enum:
        if value not in self._registers:
            return Destination.NONE
        return _register(Destination, self._registers[value])

    def _predicate(self, condition: SSAValue | None) -> Enum:
        return Predicate.ALWAYS if condition is None else _register(Predicate, self._registers[condition])

    def _pack(self, where: Enum, number: int, /, **values: object) -> None:
        self._words.append(Word(where, number, pack(FIELD_STRUCTS[where], values)))

    # ------------------------------------------------------------------ levels

    def _level(self, level: Level) -> None:
        n, loop = level.number, level.loop
        self._pack(
            LevelField.CONTROL,
            n,
            enable=1,
            induction=self._destination(loop.induction),
            lower=self._source(loop.lower, LevelField.LOWER, n),
            upper=self._source(loop.upper, LevelField.UPPER, n),
            interleave=int(n == self._interleaved),
        )
        self._constant(loop.step, LevelField.STEP, n)
        first_random = self.config.sequential_loads[n]
        for slot, load in enumerate(level.sequential):
            self._load(level, slot, load)
        for slot, load in enumerate(level.random, first_random):
            self._load(level, slot, load)
        if level.check is not None:
            self._check(level, level.check, slot_of(level, level.check.value, first_random))
        for slot, op in enumerate(level.alus):
            self._alu(n, slot, op)
        if level.count is not None:
            self._pack(
                LevelField.COUNT,
                n,
                enable=1,
                predicate=self._predicate(level.count.condition),
                destination=self._destination(level.count.result),
            )

    def _load(self, level: Level, slot: int, load: dlc.LoadOp) -> None:
        n = level.number
        index: Enum = LoadIndex.INDUCTION
        if load.index is not level.loop.induction:
            index = _register(LoadIndex, self._registers[load.index])
        self._pack(
            LevelField[f"LOAD{slot}"],
            n,
            enable=1,
            size=load.bytes.value.data.bit_length() - 1,
            is_signed=int(load.signed is not None),
            index=index,
            base=self._source(load.base, LevelField[f"LOAD{slot}_BASE"], n),
            destination=self._destination(load.result),
        )
        self._constant(load.end, LevelField[f"LOAD{slot}_LIMIT"], n)

    def _check(self, level: Level, check: slc.CheckOp, slot: int | None) -> None:
        assert slot is not None
        limit = self._source(check.limit, LevelField.CHECK_LIMIT, level.number)
        kind = CheckKind[check.kind.data.upper()]
        mode = CheckMode.FATAL if check.mode is None else CheckMode[check.mode.data.upper()]
        self._pack(LevelField.CHECK, level.number, enable=1, load=slot, kind=kind, mode=mode, limit=limit)

    def _alu(self, n: int, slot: int, op: slc.AluOp) -> None:
        a, b = op.a, op.b
        if op.kind.data == "mul" and a not in self._registers:
            a, b = b, a
        factor = constant_of(b) if op.kind.data == "mul" else None
        if factor is not None and not 0 <= factor < 1 << PITCH_BITS:
            raise UnsupportedOperation(
                f"the constant factor of a product, or the bytes from one element of a dimension to the next, must be "
                f"from 0 to {(1 << PITCH_BITS) - 1}, not {factor}"
            )
        self._pack(
            LevelField[f"ALU{slot}"],
            n,
            op=AluOp[op.kind.data.upper()],
            a=self._source(a, LevelField[f"ALU{slot}_A"], n),
            b=self._source(b, LevelField[f"ALU{slot}_B"], n),
            destination=self._destination(op.result),
        )

    # ------------------------------------------------------------------ events

    def _event(self, level: Level, event: dlc.EventOp) -> None:
        steps = _group(list(event.body.block.ops))
        if self._steps + len(steps) > self.config.steps:
            raise UnsupportedOperation(
                f"{level.name}: its events need more than the {self.config.steps} steps of configuration "
                f"{self.config.name}: take a configuration with more, or do less in the loop"
            )
        kind = EVENT_KINDS[event.event.data]
        self._pack(
            EventField.CONTROL,
            level.number * EVENTS_PER_LEVEL + kind.value,
            first=self._steps,
            count=len(steps),
            predicate=self._predicate(event.condition),
        )
        for step in steps:
            self._step(self._steps, step)
            self._steps += 1

    def _step(self, n: int, step: list[Operation]) -> None:
        control: dict[str, object] = {}
        for op in step:
            match op:
                case dlc.PushScalarOp():
                    control["scalar_enable"] = 1
                    control["scalar"] = self._source(op.value, StepField.SCALAR, n)
                case dlc.PushTokenOp():
                    control["token_enable"] = 1
                    self._words.append(Word(StepField.TOKEN, n, self.tokens[op.token.value.data]))
                case dlc.PushStoreOp():
                    control["store_enable"] = 1
                    control["stream"] = int(op.stream is not None)
                    control |= self._address("store", n, op)
                case dlc.FetchOp():
                    control["fetch_enable"] = 1
                    control["queue"] = FetchQueue[op.queue.data.upper()]
                    control |= self._address("fetch", n, op)
                case _:
                    raise UnsupportedOperation(f"{op.name} cannot stand in an event")
        self._pack(StepField.CONTROL, n, **control)

    def _address(self, what: str, n: int, op: dlc.PushStoreOp | dlc.FetchOp) -> dict[str, object]:
        fields = {part: StepField[f"{what.upper()}_{part.upper()}"] for part in ("base", "index", "pitch", "size")}
        size = op.bytes.value.data
        if size >= 1 << SIZE_BITS:
            raise UnsupportedOperation(f"a row must be shorter than {1 << SIZE_BITS} bytes, not {size}")
        pitch = constant_of(op.pitch)
        if pitch is not None and not 0 <= pitch < 1 << PITCH_BITS:
            raise UnsupportedOperation(
                f"rows must be less than {1 << PITCH_BITS} bytes apart, not {pitch}: take some columns at a time"
            )
        self._words.append(Word(fields["size"], n, size))
        return {
            f"{what}_base": self._source(op.base, fields["base"], n),
            f"{what}_index": self._source(op.index, fields["index"], n),
            f"{what}_pitch": self._source(op.pitch, fields["pitch"], n),
        }


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
