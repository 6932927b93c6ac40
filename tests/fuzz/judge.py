"""What must be equal between the specification, emulator and RTL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from daedal.cosim.emulator import TraceEntry
from daedal.errors import DaedalError
from daedal.hw.config.core import SMALLEST_GRANULE, Config
from daedal.hw.isa.address_mapping import memory_address
from daedal.hw.isa.launch import Cause, Counter, EmulatedCause, Queue, RecordWord, State
from daedal.hw.isa.spec.access import Fault, Fetch, NestTrace, Push, Read, Scalar, StoreAddress, Token, run_contract
from daedal.hw.isa.spec.launch_writes import run_launch, unordered
from daedal.hw.isa.words import FetchQueue
from tests.fuzz.machines import Machine, Outcome, Record
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.image import OUT, OUT_END, image

QUEUES = {
    FetchQueue.VECTOR0: Queue.VECTOR0,
    FetchQueue.VECTOR1: Queue.VECTOR1,
    FetchQueue.STORE: Queue.STREAM,
}

COUNTED = (Counter.ROWS, Counter.LOOKUPS, Counter.BUNDLES, Counter.TOKENS, Counter.BOUNDS_WARNINGS)
"""Counters that depend on the program and its data only."""


@dataclass
class Failure(Exception):
    """Two of the three disagree. ``kind`` is what a shrunken case must share with the one it comes from."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Expected:
    """What the emulator made of some cases, after a single one was compared with the contract."""

    outcome: Outcome
    overlapping: bool
    """Stores write some byte twice, so merging may save some."""

    @property
    def is_ordered(self) -> bool:
        """Whether the RTL must do the same: a program may read a byte before or after it stores it."""
        return self.record.cause is not EmulatedCause.READ_AFTER_STORE

    @property
    def record(self) -> Record:
        return self.outcome.records[-1]


def as_entry(push: Push) -> TraceEntry:
    """A push as the emulator traces it."""
    match push:
        case Token(callback, context):
            return TraceEntry(Queue.TOKEN, callback, context, False)
        case Scalar(value):
            return TraceEntry(Queue.SCALAR, value, 0, False)
        case StoreAddress(address, size, stream):
            return TraceEntry(Queue.STORE_ADDRESS, address, size, stream)
        case Fetch(queue, address, size):
            return TraceEntry(QUEUES[queue], address, size, False)


def expect(cases: Sequence[Case], emulator: Machine) -> Expected:
    """Launch cases on the emulator, one also by the contract; Failure if they differ, or a case does not end as it
    must.
    """
    try:
        outcome = emulator.run(*cases)
    except DaedalError as error:
        raise Failure(f"emulator {type(error).__name__}", str(error)) from error
    if len(cases) == 1 and cases[0].legal and _is_unordered(cases[0], outcome.records[0]):
        return Expected(outcome, overlapping=True)
    going_on = True
    for case, record in zip(cases, outcome.records, strict=True):
        state = State.CANCELLED if not going_on else State.DONE if case.legal else State.FAULTED
        if record.state is not state:
            raise Failure(
                "legal" if case.legal else "illegal", f"the emulator must say {state.name}, not {record.fault()}"
            )
        going_on &= state is State.DONE
    if len(cases) == 1:
        traces = contract(cases[0], outcome.records[0])
        if traces is not None:
            _compare_contract(traces, outcome, outcome.records[0])
            if outcome.records[0].state is State.DONE:
                _compare_results(cases[0], traces, outcome)
    return Expected(outcome, len(cases) > 1 or _overlap(outcome.trace))


def _is_unordered(case: Case, record: Record) -> bool:
    """Whether a legal program reads a byte before or after it stores it; Failure if the emulator says otherwise."""
    says = record.cause is EmulatedCause.READ_AFTER_STORE
    if not says and record.state is not State.DONE:
        return False
    read = _reader(case)
    try:
        traces = run_contract(case.raw, case.config, read, case.arguments)
        found = unordered(case.raw, case.config, read, case.arguments, traces)
    except (ValueError, IndexError) as error:
        raise Failure("specification", f"the specification does not know what to do: {error}") from error
    named = memory_address(record.words[RecordWord.ADDRESS.value], case.config)
    if says != bool(found) or (says and named not in found):
        first = hex(min(found)) if found else "none"
        raise Failure("order", f"of {len(found)} bytes, {first}, the order must be unknown, not of {named:#x}: {says}")
    return says


UNKNOWN_TO_CONTRACT = {Cause.PROGRAM, Cause.MEMORY_ERROR, Cause.FRAMING, Cause.HANG, Cause.STORE_WINDOW}


def contract(case: Case, record: Record) -> list[NestTrace] | None:
    """What the contract says; None for faults of which it knows nothing."""
    if record.cause in UNKNOWN_TO_CONTRACT:
        return None
    read = _reader(case)
    try:
        return run_contract(case.raw, case.config, read, case.arguments)
    except (ValueError, IndexError) as error:  # a step of 0, a register that is not there
        raise Failure("contract", f"the contract does not know what to do: {error}") from error


def _reader(case: Case) -> Read:
    """Reads the memory that the case begins with; Failure for what is not in it."""
    memory = image(case.image)

    def read(address: int, size: int) -> bytes:
        pieces = list(_pieces(address, size, case.config))
        if any(at + length > OUT_END for at, length in pieces):
            raise Failure("contract", f"a legal program must not load from {address:#x}")
        return b"".join(memory[at : at + length] for at, length in pieces)

    return read


def _pieces(address: int, size: int, config: Config) -> Iterator[tuple[int, int]]:
    """Where in memory these bytes are: addresses and sizes."""
    end = address + size
    while address < end:
        length = min(end, (address // SMALLEST_GRANULE + 1) * SMALLEST_GRANULE) - address
        yield memory_address(address, config), length
        address += length


def _compare_results(case: Case, traces: list[NestTrace], outcome: Outcome) -> None:
    """What a program has written must be what the specification of the execute unit writes."""
    memory = bytearray(image(case.image))
    try:
        for write in run_launch(case.raw, case.config, _reader(case), case.arguments, traces):
            done = 0
            for at, length in _pieces(write.address, len(write.data), case.config):
                memory[at : at + length] = write.data[done : done + length]
                done += length
    except (ValueError, IndexError) as error:
        raise Failure("specification", f"the specification does not know what to do: {error}") from error
    _compare_memory(bytes(memory), outcome.memory, "specification memory")


def _compare_contract(traces: list[NestTrace], outcome: Outcome, record: Record) -> None:
    pushes = tuple(as_entry(push) for trace in traces for push in trace.pushes)
    if pushes != outcome.trace:
        at = next((k for k, (a, b) in enumerate(zip(pushes, outcome.trace, strict=False)) if a != b), None)
        at = min(len(pushes), len(outcome.trace)) if at is None else at
        raise Failure(
            "contract trace", f"push {at} must be {pushes[at : at + 1]}, not {outcome.trace[at : at + 1]} (emulator)"
        )
    counted = {
        Counter.BUNDLES: sum(trace.bundles for trace in traces),
        Counter.LOOKUPS: sum(trace.lookups for trace in traces),
        Counter.TOKENS: sum(len(trace.tokens) for trace in traces),
        Counter.BOUNDS_WARNINGS: sum(trace.replaced for trace in traces),
        Counter.ROWS: sum(len(trace.fetches) for trace in traces),
    }
    fault = traces[-1].fault if traces else None
    if fault:
        counted.pop(Counter.LOOKUPS)  # of the poisoned bundles behind the fault the contract knows nothing
        _equal("contract fault", _fault_of(fault, len(traces) - 1), record.fault())
    for counter, value in counted.items():
        _equal(f"contract {counter.name}", value, record.counter(counter))


def _fault_of(fault: Fault, nest: int) -> dict[str, Any]:
    return {
        "state": State.FAULTED.name, "cause": fault.cause.name, "nest": nest, "level": fault.level,
        "queue": fault.queue.name, "value": fault.value, "address": fault.address, "registers": fault.registers,
    }  # fmt: skip


def _overlap(trace: tuple[TraceEntry, ...]) -> bool:
    stores = sorted((entry.value, entry.size) for entry in trace if entry.queue is Queue.STORE_ADDRESS)
    return any(first + size > second for (first, size), (second, _) in pairwise(stores))


def judge(cases: Sequence[Case], expected: Expected, machine: Machine) -> None:
    """Launch cases on the RTL; Failure if they do not end as on the emulator."""
    try:
        outcome = machine.run(*cases)
    except DaedalError as error:
        raise Failure(type(error).__name__, str(error)) from error
    faulted = False
    for case, wanted, got in zip(cases, expected.outcome.records, outcome.records, strict=True):
        if wanted.state is State.FAULTED:
            faulted = True
            _compare_faults(case, wanted, got)
            _equal("FAULT", got.cause, outcome.fault)
            continue
        _equal("record", wanted.fault(), got.fault())
        for counter in (*COUNTED, *((Counter.BYTES_WRITTEN,) if not expected.overlapping else ())):
            _equal(counter.name, wanted.counter(counter), got.counter(counter))
    if faulted and outcome.fault is not Cause.STORE_WINDOW:  # what it has stored so far is not specified
        _compare_memory(expected.outcome.memory[:OUT], outcome.memory[:OUT])
        return
    _compare_memory(expected.outcome.memory, outcome.memory)
    for name, value in (outcome.counted or {}).items() if len(cases) == 1 and not faulted else ():
        _equal(f"bus {name}", value, outcome.records[0].counter(Counter[name]))


ACCESS_FAULTS = {Cause.INDEX, Cause.OFFSET, Cause.BOUNDS_ORDER, Cause.ALIGNMENT}
"""Faults of the access unit: nothing of them depends on time."""

VECTOR_QUEUES = {Queue.VECTOR0.name, Queue.VECTOR1.name}
PAGE = 4096


def _compare_faults(case: Case, wanted: Record, got: Record) -> None:
    """A fault of the access unit or loader must be the same in every part.

    Of others, the access unit may be in a later nest by then, or, where queues are full, in an earlier one. Of two
    rows popped in lockstep either may be blamed. Of bursts that memory refuses it may be another one in the same page.
    Where nothing fits together the execute unit may find a wrong row ahead of a store that is still to be found wrong.
    """
    one, other = wanted.fault(), got.fault()
    if case.expect == "hang" and got.cause is Cause.HANG:
        return
    ahead = one["queue"] == Queue.STORE_DATA.name and other["queue"] in VECTOR_QUEUES
    if case.expect == "hang" and wanted.cause is got.cause is Cause.FRAMING and ahead:
        return
    if wanted.cause not in ACCESS_FAULTS:
        one["nest"] = other["nest"]
    if wanted.cause is Cause.HANG:
        one["queue"] = other["queue"]
    if wanted.cause is Cause.FRAMING and {one["queue"], other["queue"]} <= VECTOR_QUEUES:
        one["queue"] = other["queue"]
    if wanted.cause is Cause.MEMORY_ERROR:
        one |= {"registers": other["registers"], "level": other["level"]}
        one["address"] = other["address"] if one["address"] // PAGE == other["address"] // PAGE else one["address"]
    _equal(f"fault {wanted.cause.name}", one, other)


def _compare_memory(wanted: bytes, got: bytes, kind: str = "memory") -> None:
    if wanted != got:
        at = next(k for k, (a, b) in enumerate(zip(wanted, got, strict=True)) if a != b) & -4
        count = sum(a != b for a, b in zip(wanted, got, strict=True))
        raise Failure(
            kind,
            f"{at:#x} must be {wanted[at : at + 16].hex()}, not {got[at : at + 16].hex()}; {count} bytes differ",
        )


def _equal(kind: str, wanted: object, got: object) -> None:
    if wanted != got:
        raise Failure(kind, f"must be {wanted}, not {got}")
