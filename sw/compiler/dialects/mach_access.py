"""Operations of ``mach`` for the access program: nests, with what each level does and the steps of their events.

A nest is one straight line of writes and reads of stream registers, level by level; events read at the very end
(``Lifetimes``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.backend.register_type import RegisterType
from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.dlc import number
from daedal.compiler.dialects.mach_types import CONSTANT, NO_REGISTER, ConstantType, StreamRegister, named
from daedal.compiler.dialects.slc import EVENTS
from daedal.hw.isa.words import AluOp, CheckKind, CheckMode, FetchQueue

UNALLOCATED = StreamRegister.unallocated()
SOURCE = StreamRegister | ConstantType


def _names(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in codes)


KINDS = ("sequential", "random")
"""Load slots: those that read ahead, at the induction variable, and those that take any index."""

OPERATIONS = tuple(name for name in _names(AluOp.__members__) if name != AluOp.NONE.name.lower())
SLOTS = 4
"""Loads, or ALU operations, of a level."""

CHECKED = _names(CheckKind.__members__)
CHECK_MODES = _names(CheckMode.__members__)
QUEUES = _names(FetchQueue.__members__)


def _verify_name(what: str, name: StringAttr, known: Sequence[str]) -> None:
    if name.data not in known:
        raise VerifyException(f"{what} must be one of {', '.join(known)}, not {name.data!r}")


def _verify_slot(slot: IntegerAttr) -> None:
    if not 0 <= slot.value.data < SLOTS:
        raise VerifyException(f"slot must be from 0 to {SLOTS - 1}, not {slot.value.data}")


def _verify_body(body: Region, known: tuple[type[Operation], ...]) -> None:
    for op in body.block.ops:
        if not isinstance(op, known):
            raise VerifyException(f"{op.name} must not stand here, only {', '.join(kind.name for kind in known)}")


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """The number in a program word: ``value``, to which the launch argument ``argument`` is added, if there is one."""

    name = "mach.constant"
    value = prop_def(IntegerAttr[I64])
    argument = opt_prop_def(IntegerAttr[I64])
    result = result_def(ConstantType)
    assembly_format = "$value (`plus` `argument` $argument^)? attr-dict `:` type($result)"

    def __init__(self, value: int, argument: int | None) -> None:
        super().__init__(
            properties={"value": number(value), "argument": None if argument is None else number(argument)},
            result_types=[CONSTANT],
        )


@irdl_op_definition
class LevelOp(IRDLOperation):
    """A level: its induction variable runs from ``lower`` in steps of ``step`` while below ``upper``.

    With ``interleave`` its activations run side by side; with ``deal`` the event unit takes a bundle of each in turn.
    """

    name = "mach.level"
    level = prop_def(IntegerAttr[I64])
    lower = operand_def(SOURCE)
    upper = operand_def(SOURCE)
    step = operand_def(ConstantType)
    interleave = opt_prop_def(UnitAttr)
    deal = opt_prop_def(UnitAttr)
    result = result_def(StreamRegister)
    assembly_format = (
        "$level `from` $lower `to` $upper `step` $step (`interleave` $interleave^)? (`deal` $deal^)? attr-dict `:` "
        "type($lower) `,` type($upper) `,` type($step) `->` type($result)"
    )

    def __init__(self, level: int, bounds: Sequence[SSAValue], *, interleave: bool, deal: bool) -> None:
        super().__init__(
            operands=bounds,
            properties={
                "level": number(level),
                "interleave": UnitAttr() if interleave else None,
                "deal": UnitAttr() if deal else None,
            },
            result_types=[UNALLOCATED],
        )

    @property
    def loop(self) -> str:
        """How messages call the loop on this level."""
        return f"loop {named(self.result)}" if self.result.name_hint else "a loop"


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Load slot ``slot`` of a level: the element of ``bytes`` bytes at ``base + index * bytes``, of an array that ends
    before ``limit``.
    """

    name = "mach.load"
    level = prop_def(IntegerAttr[I64])
    slot = prop_def(IntegerAttr[I64])
    kind = prop_def(StringAttr)
    base = operand_def(SOURCE)
    index = operand_def(StreamRegister)
    limit = operand_def(ConstantType)
    bytes = prop_def(IntegerAttr[I64])
    signed = opt_prop_def(UnitAttr)
    result = result_def(StreamRegister)
    assembly_format = (
        "$level `slot` $slot $kind $base `[` $index `]` `until` $limit `bytes` $bytes (`signed` $signed^)? attr-dict "
        "`:` type($base) `,` type($index) `,` type($limit) `->` type($result)"
    )

    def __init__(
        self, where: tuple[int, int], kind: str, operands: Sequence[SSAValue], size: int, *, signed: bool
    ) -> None:
        level, slot = where
        super().__init__(
            operands=operands,
            properties={
                "level": number(level),
                "slot": number(slot),
                "kind": StringAttr(kind),
                "bytes": number(size),
                "signed": UnitAttr() if signed else None,
            },
            result_types=[UNALLOCATED],
        )

    @property
    def is_of_induction(self) -> bool:
        """Whether its index is the induction variable of its level, which it takes from no register."""
        owner = self.index.owner
        return isinstance(owner, LevelOp) and owner.level == self.level

    def verify_(self) -> None:
        _verify_name("kind", self.kind, KINDS)
        _verify_slot(self.slot)
        if self.bytes.value.data not in (1, 2, 4, 8):
            raise VerifyException(f"bytes must be 1, 2, 4 or 8, not {self.bytes.value.data}")
        if self.kind.data == "sequential" and not self.is_of_induction:
            raise VerifyException("the index of a sequential load must be the induction variable of its level")


@irdl_op_definition
class CheckOp(IRDLOperation):
    """What a load of a level gives must be from 0 to ``limit`` - 1."""

    name = "mach.check"
    level = prop_def(IntegerAttr[I64])
    kind = prop_def(StringAttr)
    mode = prop_def(StringAttr)
    value = operand_def(StreamRegister)
    limit = operand_def(SOURCE)
    assembly_format = "$level $kind $mode $value `below` $limit attr-dict `:` type($value) `,` type($limit)"

    def __init__(self, level: int, kind: str, mode: str, value: SSAValue, limit: SSAValue) -> None:
        properties = {"level": number(level), "kind": StringAttr(kind), "mode": StringAttr(mode)}
        super().__init__(operands=[value, limit], properties=properties)

    def verify_(self) -> None:
        _verify_name("kind", self.kind, CHECKED)
        _verify_name("mode", self.mode, CHECK_MODES)
        owner = self.value.owner
        if not isinstance(owner, LoadOp) or owner.level != self.level:
            raise VerifyException("the value must be that of a load of the same level")


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """ALU operation ``slot`` of a level."""

    name = "mach.alu"
    level = prop_def(IntegerAttr[I64])
    slot = prop_def(IntegerAttr[I64])
    operation = prop_def(StringAttr)
    a = operand_def(SOURCE)
    b = operand_def(SOURCE)
    result = result_def(StreamRegister)
    assembly_format = "$level `slot` $slot $operation $a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, where: tuple[int, int], operation: str, a: SSAValue, b: SSAValue) -> None:
        level, slot = where
        super().__init__(
            operands=[a, b],
            properties={"level": number(level), "slot": number(slot), "operation": StringAttr(operation)},
            result_types=[UNALLOCATED],
        )

    def verify_(self) -> None:
        _verify_name("operation", self.operation, OPERATIONS)
        _verify_slot(self.slot)


@irdl_op_definition
class CountOp(IRDLOperation):
    """Counts the iterations of a level in which ``condition`` holds."""

    name = "mach.count"
    level = prop_def(IntegerAttr[I64])
    condition = opt_operand_def(StreamRegister)
    result = result_def(StreamRegister)
    assembly_format = "$level (`when` $condition^ `:` type($condition))? attr-dict `->` type($result)"

    def __init__(self, level: int, condition: SSAValue | None) -> None:
        super().__init__(operands=[condition], properties={"level": number(level)}, result_types=[UNALLOCATED])


@irdl_op_definition
class EventOp(IRDLOperation):
    """The steps at an event of a level, if ``condition`` holds."""

    name = "mach.event"
    level = prop_def(IntegerAttr[I64])
    event = prop_def(StringAttr)
    condition = opt_operand_def(StreamRegister)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$level $event (`when` $condition^ `:` type($condition))? $body attr-dict"

    def __init__(self, level: int, event: str, condition: SSAValue | None, steps: Sequence[Operation]) -> None:
        super().__init__(
            operands=[condition],
            properties={"level": number(level), "event": StringAttr(event)},
            regions=[Region(Block(steps))],
        )

    @property
    def steps(self) -> list["StepOp"]:
        """The steps, in order."""
        return [op for op in self.body.block.ops if isinstance(op, StepOp)]

    def verify_(self) -> None:
        _verify_name("event", self.event, EVENTS)
        _verify_body(self.body, (StepOp,))


@irdl_op_definition
class StepOp(IRDLOperation):
    """What goes into queues in one step: at most one of each, in the machine's order."""

    name = "mach.step"
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), HasParent(EventOp))
    assembly_format = "$body attr-dict"

    def __init__(self, parts: Sequence[Operation]) -> None:
        super().__init__(regions=[Region(Block(parts))])

    def verify_(self) -> None:
        kinds = [type(op) for op in self.body.block.ops]
        if not kinds or kinds != [part for part in PARTS if part in kinds]:
            listed = ", ".join(part.name for part in PARTS)
            raise VerifyException(f"a step must have one or more of {listed}, each once and in this order")


@irdl_op_definition
class PushScalarOp(IRDLOperation):
    """Puts a value into the scalar queue."""

    name = "mach.push_scalar"
    value = operand_def(SOURCE)
    traits = traits_def(HasParent(StepOp))
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class PushTokenOp(IRDLOperation):
    """Starts callback ``token``, or the one that is ``offset`` behind callback 0."""

    name = "mach.push_token"
    token = prop_def(IntegerAttr[I64])
    offset = opt_operand_def(StreamRegister)
    traits = traits_def(HasParent(StepOp))
    assembly_format = "$token (`plus` $offset^ `:` type($offset))? attr-dict"

    def __init__(self, token: int, offset: SSAValue | None = None) -> None:
        super().__init__(operands=[offset], properties={"token": number(token)})

    def verify_(self) -> None:
        if self.offset is not None and self.token.value.data:
            raise VerifyException(f"a token with an offset must be 0, not {self.token.value.data}")


@irdl_op_definition
class PushStoreOp(IRDLOperation):
    """Tells the store unit that a row of ``bytes`` bytes goes to ``base + index * pitch``."""

    name = "mach.push_store"
    base = operand_def(SOURCE)
    index = operand_def(SOURCE)
    pitch = operand_def(SOURCE)
    bytes = prop_def(IntegerAttr[I64])
    stream = opt_prop_def(UnitAttr)
    traits = traits_def(HasParent(StepOp))
    assembly_format = (
        "$base `[` $index `*` $pitch `]` `bytes` $bytes (`stream` $stream^)? attr-dict `:` type($base) `,` "
        "type($index) `,` type($pitch)"
    )

    def __init__(self, address: Sequence[SSAValue], size: int, *, stream: bool) -> None:
        properties = {"bytes": number(size), "stream": UnitAttr() if stream else None}
        super().__init__(operands=address, properties=properties)


@irdl_op_definition
class FetchOp(IRDLOperation):
    """Fetches the row of ``bytes`` bytes at ``base + index * pitch`` to a queue."""

    name = "mach.fetch"
    queue = prop_def(StringAttr)
    base = operand_def(SOURCE)
    index = operand_def(SOURCE)
    pitch = operand_def(SOURCE)
    bytes = prop_def(IntegerAttr[I64])
    traits = traits_def(HasParent(StepOp))
    assembly_format = (
        "$queue $base `[` $index `*` $pitch `]` `bytes` $bytes attr-dict `:` type($base) `,` type($index) `,` "
        "type($pitch)"
    )

    def __init__(self, queue: str, address: Sequence[SSAValue], size: int) -> None:
        super().__init__(operands=address, properties={"queue": StringAttr(queue), "bytes": number(size)})

    def verify_(self) -> None:
        _verify_name("queue", self.queue, QUEUES)


PARTS: tuple[type[Operation], ...] = (PushScalarOp, PushStoreOp, PushTokenOp, FetchOp)
"""The parts of a step, in the machine's order."""


@irdl_op_definition
class NestOp(IRDLOperation):
    """A nest: its levels, outermost first, each with what it does; then the events. The access unit runs it."""

    name = "mach.nest"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$body attr-dict"

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(regions=[Region(Block(operations))])

    def verify_(self) -> None:
        _verify_body(self.body, IN_NESTS)
        life = Lifetimes.of(self)
        held: dict[RegisterType, list[SSAValue]] = {}
        for value in life.written:
            register = value.type
            if not isinstance(register, StreamRegister) or not register.is_allocated:
                continue
            if register == NO_REGISTER:
                if value in life.last_read:
                    raise VerifyException(f"{named(value)} must have a register, as it is read")
                continue
            for other in held.setdefault(register, []):
                if life.written[value] <= life.last_read.get(other, -1):
                    name = register.register_name.data
                    raise VerifyException(f"{name} must hold {named(other)} up to its last read, not {named(value)}")
            held[register].append(value)


IN_NESTS = (ConstantOp, LevelOp, LoadOp, CheckOp, ComputeOp, CountOp, EventOp)
"""What can stand in a nest."""


@dataclass
class Lifetimes:
    """The straight line of a nest: at which time each stream is written and last read.

    Bounds, bases of sequential loads and limits of checks read what the level around has left, so they read before the
    level writes anything.
    """

    written: dict[SSAValue, int] = field(default_factory=dict)
    last_read: dict[SSAValue, int] = field(default_factory=dict)
    _time: int = 0

    @staticmethod
    def of(nest: NestOp) -> "Lifetimes":
        """Those of a nest."""
        life = Lifetimes()
        ops = list(nest.body.block.ops)
        for op in ops:
            match op:
                case LevelOp():
                    life._level(op, [other for other in ops if getattr(other, "level", None) == op.level])
                case LoadOp(kind=StringAttr(data="random")):
                    life._use(*([] if op.is_of_induction else [op.index]), op.base)
                case ComputeOp():
                    life._use(op.a, op.b)
                case CountOp():
                    life._use(op.condition)
                case _:
                    continue
            if not isinstance(op, LevelOp):
                life._write(op.results[0])
        life._use(
            *(operand for op in ops if isinstance(op, EventOp) for part in op.walk() for operand in part.operands)
        )
        return life

    def _level(self, op: LevelOp, mine: Sequence[Operation]) -> None:
        loads = [other for other in mine if isinstance(other, LoadOp) and other.kind.data == "sequential"]
        limits = [other.limit for other in mine if isinstance(other, CheckOp)]
        self._use(op.lower, op.upper, *(load.base for load in loads), *limits)
        self._write(op.result)
        for load in loads:
            self._write(load.result)

    def _use(self, *values: SSAValue | None) -> None:
        self._time += 1
        for value in values:
            if value is not None and isinstance(value.type, StreamRegister):
                self.last_read[value] = self._time

    def _write(self, value: SSAValue) -> None:
        self._time += 1
        self.written[value] = self._time
