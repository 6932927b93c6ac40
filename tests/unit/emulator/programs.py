"""Programs written by hand, word by word, and what it takes to run them on a target."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from daedal.driver.memory.regions import EVERYWHERE
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.instructions import OperandKind, VectorOp
from daedal.hw.isa.launch import (
    LAUNCH_ALIGNMENT,
    LAUNCH_HEADER_WORDS,
    RECORD_WORDS,
    Cause,
    Counter,
    EmulatedCause,
    LaunchWord,
    Queue,
    RecordHead,
    RecordWord,
    State,
    cause_of,
)
from daedal.hw.isa.program import Program, Word, unpack
from daedal.hw.isa.registers import Register
from daedal.hw.isa.words import (
    AluOp,
    CallbackField,
    CheckKind,
    ControlField,
    Destination,
    EventField,
    EventKind,
    FetchQueue,
    InstructionField,
    LengthField,
    LevelField,
    LoadIndex,
    Predicate,
    Sense,
    Source,
    StepField,
)

QUEUE0 = {"kind": OperandKind.QUEUE, "number": 0}
QUEUE1 = {"kind": OperandKind.QUEUE, "number": 1}
SCALAR = {"kind": OperandKind.SCALAR}


class Target(Protocol):
    """What every target can do."""

    def csr_read(self, address: int) -> int: ...
    def csr_write(self, address: int, value: int) -> None: ...
    def mem_read(self, address: int, size: int) -> bytes: ...
    def mem_write(self, address: int, data: bytes) -> None: ...
    def wait(self, timeout_s: float | None = None) -> bool: ...


@dataclass(frozen=True)
class Record:
    """A completion record, decoded."""

    head: dict[str, int]
    words: tuple[int, ...]

    @property
    def state(self) -> State:
        return State(self.head["state"])

    @property
    def cause(self) -> Cause | EmulatedCause:
        return cause_of(self.head["cause"])

    @property
    def queue(self) -> Queue:
        return Queue(self.head["queue"])

    @property
    def value(self) -> int:
        return self.words[RecordWord.VALUE.value]

    @property
    def address(self) -> int:
        return self.words[RecordWord.ADDRESS.value]

    def register(self, number: int) -> int:
        return self.words[RecordWord.REGISTER0.value + number]

    def counter(self, counter: Counter) -> int:
        return self.words[RecordWord.COUNTERS.value + counter.value]


@dataclass
class Bench:
    """A target with a bump allocator: memory is handed out in whole launch alignments from ``next`` on."""

    target: Target
    config: Config
    next: int = 4096
    launches: int = 0
    records: list[int] = field(default_factory=list)

    def place(self, data: bytes | np.ndarray[Any, Any]) -> int:
        """The address to which these bytes were written."""
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        address = self.reserve(len(raw))
        self.target.mem_write(address, raw)
        return address

    def reserve(self, size: int) -> int:
        address = self.next
        self.next += -(-max(size, 1) // LAUNCH_ALIGNMENT) * LAUNCH_ALIGNMENT
        return address

    def queue(
        self, program: bytes, arguments: Sequence[int] = (), *, record: int | None = None, window: int = EVERYWHERE
    ) -> int:
        """Ring the doorbell for a launch; the address of its record."""
        record = self.reserve(RECORD_WORDS * 8) if record is None else record
        words = [0] * (LAUNCH_HEADER_WORDS + self.config.arguments)
        self.launches += 1
        words[LaunchWord.PROGRAM.value] = self.place(program)
        words[LaunchWord.RECORD.value] = record
        words[LaunchWord.LAUNCH.value] = self.launches
        words[LaunchWord.WINDOW.value] = window
        for k, argument in enumerate(arguments):
            words[LaunchWord.ARGUMENTS.value + k] = argument % (1 << 64)
        block = self.place(np.array(words, dtype=np.uint64))
        self.ring(block)
        return record

    def ring(self, block: int) -> None:
        self.target.csr_write(Register.LAUNCH_LOW.value, block & 0xFFFFFFFF)
        self.target.csr_write(Register.LAUNCH_HIGH.value, block >> 32)
        self.target.csr_write(Register.DOORBELL.value, 1)

    def read_record(self, address: int) -> Record:
        raw = np.frombuffer(self.target.mem_read(address, RECORD_WORDS * 8), dtype=np.uint64)
        words = tuple(int(word) for word in raw)
        return Record(unpack(RecordHead, words[RecordWord.HEAD.value]), words)

    def run(
        self, body: Iterable[Word], arguments: Sequence[int] = (), timeout_s: float = 60, *, window: int = EVERYWHERE
    ) -> Record:
        """Launch a program of these words, wait for its end, read its record."""
        record = self.queue(Program(self.config.hash, body).to_bytes(), arguments, window=window)
        assert self.target.wait(timeout_s)
        return self.read_record(record)

    def floats(self, address: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        raw = self.target.mem_read(address, int(np.prod(shape)) * BINARY32.bytes)
        return np.frombuffer(raw, dtype=np.float32).reshape(shape)


def row_pitch(config: Config, dim: int) -> int:
    """Bytes from row to row: a row starts at a line or lies within one."""
    size = dim * BINARY32.bytes
    if size <= config.bus_bytes:
        return 1 << (size - 1).bit_length()
    return -(-size // config.bus_bytes) * config.bus_bytes


def place_table(bench: Bench, table: np.ndarray[Any, Any]) -> int:
    """Write a table in the layout of its pitch; its address."""
    pitch = row_pitch(bench.config, table.shape[1]) // BINARY32.bytes
    padded = np.full((len(table), pitch), 777, dtype=np.float32)
    padded[:, : table.shape[1]] = table
    return bench.place(padded)


def instruction(index: int, op: VectorOp, **members: Any) -> Word:
    return Word.packed(InstructionField.CODE, index, op=op, **members)


def level(index: int, **control: Any) -> list[Word]:
    return [Word.packed(LevelField.CONTROL, index, enable=1, **control), Word(LevelField.STEP, index, 1)]


def load(level: int, slot: int, base: int, element_bytes: int, *, limit: int = 0, **control: Any) -> list[Word]:
    name = f"LOAD{slot}"
    size = element_bytes.bit_length() - 1
    return [
        Word.packed(LevelField[name], level, enable=1, size=size, **control),
        Word(LevelField[f"{name}_BASE"], level, base),
        Word(LevelField[f"{name}_LIMIT"], level, limit),
    ]


def run_nest() -> Word:
    return Word(ControlField.RUN)


@dataclass(frozen=True)
class Bag:
    """An embedding bag as a program: where its arrays are and what it does with them (addresses in bytes)."""

    table: int
    rows: int
    dim: int
    indices: int
    index_bytes: int
    index_count: int
    offsets: int
    offset_bytes: int
    bags: int
    out: int
    mode: str = "sum"
    weights: int | None = None
    padding: int | None = None

    def words(self, config: Config) -> list[Word]:
        """One nest per tile of at most ``vl_max`` columns."""
        lengths = sorted({min(config.vl_max, self.dim - at) for at in range(0, self.dim, config.vl_max)})
        words = [word for k, length in enumerate(lengths) for word in self._execute(k, length)]
        for first in range(0, self.dim, config.vl_max):
            length = min(config.vl_max, self.dim - first)
            words += [
                *self._levels(),
                *self._events(config, lengths.index(length), first, length),
                run_nest(),
            ]
        return words

    def _execute(self, k: int, length: int) -> list[Word]:
        code, common = 4 * k, {"length": k}
        accumulate = {
            "sum": {"op": VectorOp.ADD}, "mean": {"op": VectorOp.ADD}, "max": {"op": VectorOp.MAX},
        }[self.mode]  # fmt: skip
        if self.weights is not None:
            accumulate = {"op": VectorOp.FMA if self.padding is None else VectorOp.MUL_ADD, "b": SCALAR}
        words = [
            Word(LengthField.ELEMENTS, k, length),
            Word(CallbackField.START, 2 * k, code),
            Word(CallbackField.START, 2 * k + 1, code + 1),
            Word.packed(InstructionField.CODE, code, a=QUEUE0, c=0, destination=0, last=1, **accumulate, **common),
        ]
        if self.mode != "mean":
            return [*words, instruction(code + 1, VectorOp.STORE, a={"number": 0}, clear=1, last=1, **common)]
        return [
            *words,
            instruction(code + 1, VectorOp.STORE_QUOTIENT, a={"number": 0}, last=1, **common),
        ]

    def _levels(self) -> list[Word]:
        stop = self.offsets + self.bags * self.offset_bytes
        index_end = self.indices + self.index_count * self.index_bytes
        offset = {"is_signed": 1, "index": LoadIndex.INDUCTION, "limit": stop + self.offset_bytes}
        words = [
            *level(0, induction=Destination.R0),
            Word(LevelField.LOWER, 0, 0),
            Word(LevelField.UPPER, 0, self.bags),
            *load(0, 0, self.offsets, self.offset_bytes, destination=Destination.R1, **offset),
            *load(
                0,
                1,
                self.offsets + self.offset_bytes,
                self.offset_bytes,
                destination=Destination.R2,
                **offset,
            ),
            Word.packed(LevelField.CHECK, 0, enable=1, load=1, kind=CheckKind.OFFSET),
            Word(LevelField.CHECK_LIMIT, 0, self.index_count + 1),
            *level(1, lower=Source.R1, upper=Source.R2),
            *load(1, 0, self.indices, self.index_bytes, limit=index_end, is_signed=1, destination=Destination.R3),
            Word.packed(LevelField.CHECK, 1, enable=1, load=0, kind=CheckKind.INDEX),
            Word(LevelField.CHECK_LIMIT, 1, self.rows),
        ]
        if self.weights is not None:
            end = self.weights + self.index_count * BINARY32.bytes
            words += load(1, 1, self.weights, BINARY32.bytes, limit=end, destination=Destination.R4)
        if self.padding is not None:
            words += [
                Word.packed(
                    LevelField.ALU0,
                    1,
                    op=AluOp.NOT_EQUAL,
                    a=Source.R3,
                    b=Source.CONST,
                    destination=Destination.R1,
                ),
                Word(LevelField.ALU0_B, 1, self.padding),
            ]
        counted = Predicate.ALWAYS if self.padding is None else Predicate.R1
        return [
            *words,
            Word.packed(LevelField.COUNT, 1, enable=1, predicate=counted, destination=Destination.R5),
        ]

    def _events(self, config: Config, k: int, first: int, length: int) -> list[Word]:
        predicate = Predicate.ALWAYS if self.padding is None else Predicate.R1
        at = first * BINARY32.bytes
        size = length * BINARY32.bytes
        return [
            Word.packed(
                EventField.CONTROL, 4 + EventKind.ITER.value, first=0, count=1,
                predicate=predicate, sense=Sense.NONZERO,
            ),
            Word.packed(EventField.CONTROL, 4 + EventKind.END.value, first=1, count=1),
            Word.packed(
                StepField.CONTROL, 0, token_enable=1, fetch_enable=1, queue=FetchQueue.VECTOR0,
                fetch_index=Source.R3, scalar_enable=self.weights is not None, scalar=Source.R4,
            ),
            Word(StepField.TOKEN, 0, 2 * k),
            Word(StepField.FETCH_BASE, 0, self.table + at),
            Word(StepField.FETCH_PITCH, 0, row_pitch(config, self.dim)),
            Word(StepField.FETCH_SIZE, 0, size),
            Word.packed(
                StepField.CONTROL, 1, token_enable=1, store_enable=1, store_index=Source.R0,
                scalar_enable=self.mode == "mean", scalar=Source.R5,
            ),
            Word(StepField.TOKEN, 1, 2 * k + 1),
            Word(StepField.STORE_BASE, 1, self.out + at),
            Word(StepField.STORE_PITCH, 1, self.dim * BINARY32.bytes),
            Word(StepField.STORE_SIZE, 1, size),
        ]  # fmt: skip


def gather(config: Config, table: int, rows: int, dim: int, indices: int, count: int, out: int) -> list[Word]:
    """``out[i] = table[indices[i]]`` by a store stream; int32 indices; addresses in bytes."""
    size = dim * BINARY32.bytes
    return [
        *level(0, induction=Destination.R0),
        Word(LevelField.LOWER, 0, 0),
        Word(LevelField.UPPER, 0, count),
        *load(0, 0, indices, 4, limit=indices + 4 * count, is_signed=1, destination=Destination.R1),
        Word.packed(LevelField.CHECK, 0, enable=1, load=0, kind=CheckKind.INDEX),
        Word(LevelField.CHECK_LIMIT, 0, rows),
        Word.packed(EventField.CONTROL, EventKind.ITER.value, first=0, count=1),
        Word.packed(
            StepField.CONTROL, 0, store_enable=1, stream=1, fetch_enable=1, queue=FetchQueue.STORE,
            store_index=Source.R0, fetch_index=Source.R1,
        ),
        Word(StepField.STORE_BASE, 0, out),
        Word(StepField.STORE_PITCH, 0, size),
        Word(StepField.STORE_SIZE, 0, size),
        Word(StepField.FETCH_BASE, 0, table),
        Word(StepField.FETCH_PITCH, 0, row_pitch(config, dim)),
        Word(StepField.FETCH_SIZE, 0, size),
        run_nest(),
    ]  # fmt: skip
