"""Program words of a nest in ``mach``: levels, events and steps."""

from enum import Enum

from xdsl.backend.register_type import RegisterType
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.dialects import mach_access as mach
from daedal.compiler.dialects.mach_types import named
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.program import FIELD_STRUCTS, Word, pack
from daedal.hw.isa.words import (
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
    event_index,
)

EVENT_KINDS = {"begin": EventKind.BEGIN, "iteration": EventKind.ITER, "end": EventKind.END}


def number_of(value: SSAValue) -> int:
    """The number that a word has for a register; UnsupportedOperation if it has not been allocated."""
    register = value.type
    if not isinstance(register, RegisterType) or not isinstance(register.index, IntAttr) or register.index.data < 0:
        raise UnsupportedOperation(f"{named(value)} must have a register, not {value.type}: allocate registers first")
    return register.index.data


def nest_words(nest: mach.NestOp) -> list[Word]:
    """The words of a nest, without RUN; its steps follow one another from step 0 on."""
    writer = _NestWriter()
    for op in nest.body.block.ops:
        writer.write(op)
    return writer.words


class _NestWriter:
    """Writes the words of a nest, operation by operation."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self._steps = 0

    def write(self, op: Operation) -> None:
        """Add the words of an operation in a nest; a constant's are those of what uses it."""
        match op:
            case mach.ConstantOp():
                pass
            case mach.LevelOp():
                self._level(op)
            case mach.LoadOp():
                self._load(op)
            case mach.CheckOp():
                self._check(op)
            case mach.ComputeOp():
                self._alu(op)
            case mach.CountOp():
                condition = self._predicate(op.condition)
                count = {"enable": 1, "predicate": condition, "destination": Destination(number_of(op.result))}
                self._pack(LevelField.COUNT, op.level.value.data, **count)
            case mach.EventOp():
                self._event(op)
            case _:
                raise UnsupportedOperation(f"{op.name} has no words in a nest")

    def _source(self, value: SSAValue, field: Enum, index: int) -> Source:
        """The source of an operand; if it is a constant, its word is written."""
        if isinstance(value.owner, mach.ConstantOp):
            self._constant(value, field, index)
            return Source.CONST
        return Source(number_of(value))

    def _constant(self, value: SSAValue, field: Enum, index: int) -> None:
        constant = value.owner
        assert isinstance(constant, mach.ConstantOp)
        argument = None if constant.argument is None else constant.argument.value.data
        self.words.append(Word(field, index, constant.value.value.data, argument))

    def _predicate(self, condition: SSAValue | None) -> Predicate:
        return Predicate.ALWAYS if condition is None else Predicate(number_of(condition))

    def _pack(self, where: Enum, number: int, /, **values: object) -> None:
        self.words.append(Word(where, number, pack(FIELD_STRUCTS[where], values)))

    def _level(self, op: mach.LevelOp) -> None:
        level = op.level.value.data
        self._pack(
            LevelField.CONTROL,
            level,
            enable=1,
            induction=Destination(number_of(op.result)),
            lower=self._source(op.lower, LevelField.LOWER, level),
            upper=self._source(op.upper, LevelField.UPPER, level),
            interleave=int(op.interleave is not None),
            deal=int(op.deal is not None),
        )
        step = op.step.owner
        assert isinstance(step, mach.ConstantOp)
        if step.value.value.data != 1 or step.argument is not None:  # it is 1 without a word
            self._constant(op.step, LevelField.STEP, level)

    def _load(self, op: mach.LoadOp) -> None:
        level, slot = op.level.value.data, op.slot.value.data
        self._pack(
            LevelField[f"LOAD{slot}"],
            level,
            enable=1,
            size=op.bytes.value.data.bit_length() - 1,
            is_signed=int(op.signed is not None),
            index=LoadIndex.INDUCTION if op.is_of_induction else LoadIndex(number_of(op.index)),
            base=self._source(op.base, LevelField[f"LOAD{slot}_BASE"], level),
            destination=Destination(number_of(op.result)),
        )
        self._constant(op.limit, LevelField[f"LOAD{slot}_LIMIT"], level)

    def _check(self, op: mach.CheckOp) -> None:
        load, level = op.value.owner, op.level.value.data
        assert isinstance(load, mach.LoadOp)
        limit = self._source(op.limit, LevelField.CHECK_LIMIT, level)
        kind, mode = CheckKind[op.kind.data.upper()], CheckMode[op.mode.data.upper()]
        self._pack(LevelField.CHECK, level, enable=1, load=load.slot.value.data, kind=kind, mode=mode, limit=limit)

    def _alu(self, op: mach.ComputeOp) -> None:
        level, slot = op.level.value.data, op.slot.value.data
        self._pack(
            LevelField[f"ALU{slot}"],
            level,
            op=AluOp[op.operation.data.upper()],
            a=self._source(op.a, LevelField[f"ALU{slot}_A"], level),
            b=self._source(op.b, LevelField[f"ALU{slot}_B"], level),
            destination=Destination(number_of(op.result)),
        )

    def _event(self, op: mach.EventOp) -> None:
        self._pack(
            EventField.CONTROL,
            event_index(op.level.value.data, EVENT_KINDS[op.event.data]),
            first=self._steps,
            count=len(op.steps),
            predicate=self._predicate(op.condition),
        )
        for step in op.steps:
            self._step(self._steps, step)
            self._steps += 1

    def _step(self, n: int, step: mach.StepOp) -> None:
        control: dict[str, object] = {}
        for op in step.body.block.ops:
            match op:
                case mach.PushScalarOp():
                    control |= {"scalar_enable": 1, "scalar": self._source(op.value, StepField.SCALAR, n)}
                case mach.PushTokenOp():
                    control["token_enable"] = 1
                    if op.offset is not None:
                        control["token"] = Source(number_of(op.offset))
                    else:
                        self.words.append(Word(StepField.TOKEN, n, op.token.value.data))
                case mach.PushStoreOp():
                    control |= {"store_enable": 1, "stream": int(op.stream is not None)}
                    control |= self._address("store", n, op)
                case mach.FetchOp():
                    control |= {"fetch_enable": 1, "queue": FetchQueue[op.queue.data.upper()]}
                    control |= self._address("fetch", n, op)
                case _:
                    pass
        self._pack(StepField.CONTROL, n, **control)

    def _address(self, what: str, n: int, op: mach.PushStoreOp | mach.FetchOp) -> dict[str, object]:
        fields = {part: StepField[f"{what.upper()}_{part.upper()}"] for part in ("base", "index", "pitch", "size")}
        self.words.append(Word(fields["size"], n, op.bytes.value.data))
        return {
            f"{what}_base": self._source(op.base, fields["base"], n),
            f"{what}_index": self._source(op.index, fields["index"], n),
            f"{what}_pitch": self._source(op.pitch, fields["pitch"], n),
        }
