"""Completion records: what a launch did, decoded, and what a fault in it means to the user."""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from amaranth.lib import data

from daedal.errors import (
    DaedalError,
    DeviceHang,
    IndexOutOfRange,
    InvalidOffsets,
    LaunchCancelled,
    MemoryFault,
    ProgramError,
    ReadAfterStore,
)
from daedal.hw.config.core import WATCHDOG_CYCLES, Config
from daedal.hw.isa.launch import (
    RECORD_WORDS,
    Cause,
    Counter,
    EmulatedCause,
    Queue,
    RecordHead,
    RecordWord,
    State,
)
from daedal.hw.isa.program import unpack

RECORD_BYTES = 8 * RECORD_WORDS


@cache
def _head(bits: int) -> dict[str, int]:
    """The members of word HEAD."""
    return unpack(RecordHead, bits)


def _named(prefix: str) -> tuple[tuple[str, Counter], ...]:
    """The counters whose names begin so, with the rest of their names as users see it."""
    return tuple((c.name.removeprefix(prefix).lower(), c) for c in Counter if c.name.startswith(prefix))


_STALLS, _MARKS = _named("STALL_"), _named("MARK_")
_STATES = {one.value: one for one in State}
_CAUSES: dict[int, Cause | EmulatedCause] = {one.value: one for one in (*Cause, *EmulatedCause)}
_QUEUES = {one.value: one for one in Queue}
_HEAD, _VALUE, _ADDRESS, _REGISTERS, _FIRST = (
    int(word.value)
    for word in (
        RecordWord.HEAD, RecordWord.VALUE, RecordWord.ADDRESS, RecordWord.REGISTER0, RecordWord.COUNTERS,
    )
)  # fmt: skip
"""Looked up once, for a record is decoded in every launch."""

_WORDS = struct.Struct(f"<{RECORD_WORDS}Q")
_LAUNCH = data.Layout.cast(RecordHead)["launch"].offset
_OF_ALL = (1 << _LAUNCH) - 1
"""The bits of word HEAD below the launch's number, which is the last member: those that many launches have."""


class Counters(Mapping[Counter, int]):
    """The counters in the words of a record, taken out when they are asked for."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self._words = words

    def __getitem__(self, counter: Counter) -> int:
        word: int = self._words[_FIRST + counter.value]
        return word

    def __iter__(self) -> Iterator[Counter]:
        return iter(Counter)

    def __len__(self) -> int:
        return len(Counter)


@dataclass(repr=False)
class Stats:
    """What one launch, or several together, did. Printed it has – for the cycles of a target that counts none.

    Attributes
    ----------
    cycles
        Clock cycles from the doorbell to the last acknowledged write, summed over launches; 0 of a target without a
        clock, as the emulator.
    launches
        How many launches these figures are of.
    rows, lookups
        Row fetches, and indices that were checked.
    lines_read, lines_written
        Bus words moved on the memory ports, all traffic but completion records.
    bytes_read
        ``lines_read`` in bytes.
    bytes_written
        Bytes strobed in the lines written.
    bounds_warnings
        Lookups of an index outside its table that took row 0 instead (bounds ``warn`` and ``ignore``).
    stalls
        Cause -> cycles in which a unit had work and could not go on; causes overlap.
    marks
        Queue -> the most entries it has held.
    predicted, checked
        Whether cycles, stalls and marks are computed by the target ``model`` instead of counted by a machine; and what
        it was compared with on this configuration and memory, with what error, empty if with nothing.
    """

    cycles: int = 0
    launches: int = 0
    rows: int = 0
    lookups: int = 0
    lines_read: int = 0
    lines_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bounds_warnings: int = 0
    stalls: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    predicted: bool = False
    checked: str = ""

    def __repr__(self) -> str:
        figures = [f"{name}={'–' if name == 'cycles' and not self.has_clock else repr(self[name])}" for name in self]
        return f"{type(self).__name__}({', '.join(figures)})"

    @property
    def has_clock(self) -> bool:
        """Whether the cycles are those of a clock: each launch takes some."""
        return bool(self.cycles) or not self.launches

    def keys(self) -> list[str]:
        """The names of the figures: ``stats["cycles"]`` is ``stats.cycles``, and ``dict(stats)`` has them all."""
        return [item.name for item in fields(self)]

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __add__(self, other: "Stats") -> "Stats":
        if not self.launches:
            return other
        names = [
            "cycles",
            "launches",
            "rows",
            "lookups",
            "lines_read",
            "lines_written",
            "bytes_read",
            "bytes_written",
            "bounds_warnings",
        ]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Stats(
            **sums,
            stalls={k: self.stalls.get(k, 0) + other.stalls.get(k, 0) for k in {**self.stalls, **other.stalls}},
            marks={k: max(self.marks.get(k, 0), other.marks.get(k, 0)) for k in {**self.marks, **other.marks}},
            predicted=self.predicted or other.predicted,
            checked=self.checked if self.predicted else other.checked,
        )

    @property
    def line_share(self) -> float:
        """Lines read and written per cycle; 1 is all that one line per cycle allows."""
        return (self.lines_read + self.lines_written) / self.cycles if self.cycles else 0.0

    @property
    def main_stall(self) -> str:
        """The cause with the most stalled cycles, or an empty text.

        That the execute unit has no token says only that the access unit is slower, so it counts last.
        """
        found = {cause: cycles for cause, cycles in self.stalls.items() if cycles}
        others = {cause: cycles for cause, cycles in found.items() if cause != "token_empty"} or found
        return max(others, key=others.__getitem__, default="")


class Record(NamedTuple):
    """A completion record; for a fault, what went wrong and where (fields as in RecordWord).

    ``checked`` is None for a machine that counts its cycles, else as in :class:`Stats`.
    """

    launch: int
    state: State
    cause: Cause | EmulatedCause
    nest: int
    level: int
    queue: Queue
    value: int
    address: int
    registers: tuple[int, ...]
    counters: Mapping[Counter, int]
    bus_bytes: int
    checked: str | None = None

    @staticmethod
    def decode(raw: bytes, config: Config, checked: str | None = None) -> "Record":
        """The record in these bytes; DaedalError if they cannot be one."""
        words = _WORDS.unpack(raw)
        head = _head(words[_HEAD] & _OF_ALL) | {"launch": words[_HEAD] >> _LAUNCH}
        try:
            return Record(
                launch=head["launch"],
                state=_STATES[head["state"]],
                cause=_CAUSES[head["cause"]],
                nest=head["nest"],
                level=head["level"],
                queue=_QUEUES[head["queue"]],
                value=words[_VALUE],
                address=words[_ADDRESS],
                registers=words[_REGISTERS : _REGISTERS + config.registers],
                counters=Counters(words),
                bus_bytes=config.bus_bytes,
                checked=checked,
            )
        except KeyError as error:
            raise DaedalError(
                f"the completion record must be one of this machine's, not with state {head['state']}, cause "
                f"{head['cause']} and queue {head['queue']}"
            ) from error

    @property
    def signed_value(self) -> int:
        """``value`` as a signed 64-bit number, which indices and offsets are."""
        return self.value - (1 << 64) if self.value >> 63 else self.value

    @property
    def stats(self) -> Stats:
        """The counters by the names that users see."""
        count = self.counters
        return Stats(
            cycles=count[Counter.CYCLES],
            launches=1,
            rows=count[Counter.ROWS],
            lookups=count[Counter.LOOKUPS],
            lines_read=count[Counter.LINES_READ],
            lines_written=count[Counter.LINES_WRITTEN],
            bytes_read=count[Counter.LINES_READ] * self.bus_bytes,
            bytes_written=count[Counter.BYTES_WRITTEN],
            bounds_warnings=count[Counter.BOUNDS_WARNINGS],
            stalls={name: count[counter] for name, counter in _STALLS},
            marks={name: count[counter] for name, counter in _MARKS},
            predicted=self.checked is not None,
            checked=self.checked or "",
        )


def _hang(record: Record) -> DaedalError:
    queue = record.queue.name.lower().replace("_", " ")
    return DeviceHang(
        f"launch {record.launch} made no progress: it waits for the {queue} queue. If the compiler made the "
        "program this is a defect of Daedal's: please report it with the program"
    )


def _memory(record: Record) -> DaedalError:
    if record.cause is Cause.MEMORY_SILENT:
        return MemoryFault(
            f"memory did not answer in launch {record.launch} for as long as the watchdog waits, {WATCHDOG_CYCLES:,} "
            "cycles: check the memory, or give it less latency"
        )
    return MemoryFault(
        f"memory answered with an error at address {record.address:#x} in launch {record.launch}: "
        "check that every buffer lies inside device memory"
    )


def _order(record: Record, what: str) -> DaedalError:
    return ReadAfterStore(
        f"launch {record.launch} reads and stores the byte at {record.address:#x}{what} (nest {record.nest}, level "
        f"{record.level}), and hardware may do either first: read each row before its only store, with row numbers of "
        "which none is there twice, or do it in two launches"
    )


def _program(record: Record) -> DaedalError:
    texts: dict[Cause | EmulatedCause, str] = {
        Cause.PROGRAM: f"word, token or instruction {record.value} does not exist on this machine, or is an END "
        "whose checksum is not that of the program",
        Cause.FRAMING: f"a row of {record.value} bytes was to be stored, and has another number of them"
        if record.queue in (Queue.STORE_DATA, Queue.STREAM)
        else f"a callback expected a row of {record.value} elements and got another number",
        Cause.ALIGNMENT: f"the row at {record.address:#x} touches more lines than its {record.value} bytes "
        "fill, or is no multiple of what can be fetched or stored",
        Cause.STORE_WINDOW: f"a store at {record.address:#x} is outside of the memory that launch {record.launch} may "
        "write, as was said when it was submitted",
    }
    what = texts[record.cause]
    return ProgramError(f"{what} (nest {record.nest}, level {record.level}): compile or assemble the program again")


def fault_exception(record: Record, table_at: Callable[[int], str | None] = lambda address: None) -> DaedalError:
    """The exception for a record that does not say DONE; it carries the record as ``.record``.

    ``table_at`` tells which table is at an address.
    """
    where = f"(nest {record.nest}, level {record.level})"
    error: DaedalError
    if record.state is State.CANCELLED:
        error = LaunchCancelled(
            f"launch {record.launch} was cancelled because one before it had a fault: submit it again"
        )
    elif record.state is State.RUNNING:
        error = MemoryFault(
            "the launch ended, but its completion record did not reach the memory, which does not answer in time: "
            "check the memory, or give it less latency"
        )
    elif record.cause is Cause.INDEX:
        error = IndexOutOfRange(
            f"index {record.signed_value} is out of range for its table {where}: correct the indices and run again"
        )
    elif record.cause is Cause.OFFSET:
        error = InvalidOffsets(
            f"offset {record.signed_value} points outside the indices {where}: correct the offsets and run again"
        )
    elif record.cause is Cause.BOUNDS_ORDER:
        error = InvalidOffsets(
            f"offsets must not decrease, but {record.signed_value} is below the one before it {where}: "
            "correct the offsets and run again"
        )
    elif record.cause in (Cause.PROGRAM, Cause.FRAMING, Cause.ALIGNMENT, Cause.STORE_WINDOW):
        error = _program(record)
    elif record.cause is EmulatedCause.READ_AFTER_STORE:
        name = table_at(record.address)
        error = _order(record, f" of table {name!r}" if name else "")
    elif record.cause in (Cause.MEMORY_ERROR, Cause.MEMORY_SILENT):
        error = _memory(record)
    elif record.cause is Cause.HANG:
        error = _hang(record)
    else:
        error = DaedalError(f"launch {record.launch} ended in state {record.state.name} without a cause")
    error.record = record
    return error
